// SPDX-License-Identifier: MIT OR GPL-2.0-only

package shrink

import (
	"math/rand"
	"runtime"
	"testing"
)

// heap is the memory in use after a collection, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Compare a Map with a map of Go, while both grow and shrink several times.
func TestModel(t *testing.T) {
	var m Map[int, int]
	model := map[int]int{}
	for i := 0; i < 200000; i++ {
		key := rand.Intn(20000)
		// Of each 50,000 steps, the second half deletes.
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
		value, has := model[key]
		if m.Len() != len(model) || m.Get(key) != value || m.Has(key) != has {
			t.Fatal(i, key, m.Len(), len(model))
		}
	}
	seen := 0
	m.Each(func(key, value int) {
		if v, has := model[key]; !has || v != value {
			t.Fatal(key, value)
		}
		seen++
	})
	if seen != len(model) {
		t.Fatal(seen, "of", len(model))
	}
	m.Clear()
	if m.Len() != 0 || m.Has(1) {
		t.Fatal(m.Len())
	}
}

// After a burst of a million elements the memory comes back, although some elements are left.
func TestMemory(t *testing.T) {
	const count = 1000000
	var m Map[int, int]
	before := heap()
	for i := 0; i < count; i++ {
		m.Set(i, i)
	}
	peak := heap() - before
	for i := 0; i < count-100; i++ {
		m.Delete(i)
	}
	if left := int64(heap() - before); left > int64(peak/20) {
		t.Fatalf("%d of %d bytes are still in use", left, peak)
	}
	if m.Len() != 100 || m.Get(count-1) != count-1 {
		t.Fatal(m.Len())
	}
}
