// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package shrink has maps that free memory. A map of Go keeps the memory for the largest number of
// elements that it has ever had.
package shrink

// least is the number of elements up to which a map keeps its memory.
const least = 1024

// peak is the largest number of elements that a map of Go has had.
type peak int

func (p *peak) grown(n int) {
	if n > int(*p) {
		*p = peak(n)
	}
}

// shrinks reports whether less than a quarter of the elements is left. The caller then moves them to a
// new map, which takes less than one move for each deleted element.
func (p *peak) shrinks(n int) bool {
	if *p <= least || n >= int(*p)/4 {
		return false
	}
	*p = peak(n)
	return true
}

// Map is a map whose memory is proportional to its number of elements. The zero value is an empty map.
// It has no lock.
type Map[K comparable, V any] struct {
	m    map[K]V
	peak peak
}

// Len returns the number of elements.
func (m *Map[K, V]) Len() int { return len(m.m) }

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) V { return m.m[key] }

// Set sets the value of a key.
func (m *Map[K, V]) Set(key K, value V) {
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[key] = value
	m.peak.grown(len(m.m))
}

// Delete deletes a key.
func (m *Map[K, V]) Delete(key K) {
	delete(m.m, key)
	if m.peak.shrinks(len(m.m)) {
		old := m.m
		m.m = make(map[K]V, len(old))
		for key, value := range old {
			m.m[key] = value
		}
	}
}

// Each calls f for each element. f must not change the map.
func (m *Map[K, V]) Each(f func(key K, value V)) {
	for key, value := range m.m {
		f(key, value)
	}
}

// Clear deletes all elements.
func (m *Map[K, V]) Clear() { *m = Map[K, V]{} }

// Any is a Map with keys of type any. Before Go 1.20, any does not satisfy comparable, so Map cannot
// have such keys.
type Any[V any] struct {
	m    map[any]V
	peak peak
}

// Len returns the number of elements.
func (m *Any[V]) Len() int { return len(m.m) }

// Get returns the value of a key, or the zero value.
func (m *Any[V]) Get(key any) V { return m.m[key] }

// Set sets the value of a key.
func (m *Any[V]) Set(key any, value V) {
	if m.m == nil {
		m.m = map[any]V{}
	}
	m.m[key] = value
	m.peak.grown(len(m.m))
}

// Delete deletes a key.
func (m *Any[V]) Delete(key any) {
	delete(m.m, key)
	if m.peak.shrinks(len(m.m)) {
		old := m.m
		m.m = make(map[any]V, len(old))
		for key, value := range old {
			m.m[key] = value
		}
	}
}

// Each calls f for each value. f must not change the map.
func (m *Any[V]) Each(f func(value V)) {
	for _, value := range m.m {
		f(value)
	}
}

// Clear deletes all elements.
func (m *Any[V]) Clear() { *m = Any[V]{} }
