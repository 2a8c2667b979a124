// SPDX-License-Identifier: MIT OR GPL-2.0-only

package shrink

import (
	"math/rand"
	"runtime"
	"testing"
)

// kind has the methods of both kinds of maps.
type kind interface {
	Len() int
	Get(key int) int
	Set(key, value int)
	Delete(key int)
	Clear()
	sum() int
}

type ofInt struct{ Map[int, int] }

func (m *ofInt) sum() (n int) {
	m.Each(func(_, value int) { n += value })
	return n
}

type ofAny struct{ m Any[int] }

func (m *ofAny) Len() int           { return m.m.Len() }
func (m *ofAny) Get(key int) int    { return m.m.Get(key) }
func (m *ofAny) Set(key, value int) { m.m.Set(key, value) }
func (m *ofAny) Delete(key int)     { m.m.Delete(key) }
func (m *ofAny) Clear()             { m.m.Clear() }
func (m *ofAny) sum() (n int) {
	m.m.Each(func(value int) { n += value })
	return n
}

func eachKind(t *testing.T, test func(t *testing.T, m kind)) {
	t.Run("Map", func(t *testing.T) { test(t, new(ofInt)) })
	t.Run("Any", func(t *testing.T) { test(t, new(ofAny)) })
}

// Compare with a map of Go, while both grow and shrink several times.
func TestModel(t *testing.T) {
	eachKind(t, func(t *testing.T, m kind) {
		model := map[int]int{}
		for i := 1; i < 200000; i++ {
			key := rand.Intn(20000)
			// The second half of each 50,000 steps deletes elements.
			if i%50000 < 25000 {
				m.Set(key, i)
				model[key] = i
			} else {
				for j := 0; j < 3; j++ {
					m.Delete(key)
					delete(model, key)
					key = rand.Intn(20000)
				}
			}
			if m.Len() != len(model) || m.Get(key) != model[key] {
				t.Fatal(i, key, m.Len(), len(model))
			}
		}
		sum := 0
		for _, value := range model {
			sum += value
		}
		if m.sum() != sum {
			t.Fatal(m.sum(), sum)
		}
		m.Clear()
		if m.Len() != 0 || m.sum() != 0 {
			t.Fatal(m.Len())
		}
	})
}

// After a burst of elements, the map frees memory, although some elements are left.
func TestMemory(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	eachKind(t, func(t *testing.T, m kind) {
		const count = 300000
		before := heap()
		for i := 0; i < count; i++ {
			m.Set(i, i)
		}
		peak := heap() - before
		for i := 0; i < count-100; i++ {
			m.Delete(i)
		}
		if left := heap() - before; left > peak/20 {
			t.Fatalf("%d of %d bytes are still in use", left, peak)
		}
		if m.Len() != 100 || m.Get(count-1) != count-1 {
			t.Fatal(m.Len())
		}
	})
}
