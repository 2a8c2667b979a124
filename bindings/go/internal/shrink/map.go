// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package shrink has a map that gives memory back. A map of Go keeps the memory of the most
// elements that it has ever had.
package shrink

// least is the number of elements up to which a map keeps its memory.
const least = 1024

// Map is a map whose memory is in proportion to its number of elements. The zero value is empty.
// It has no lock.
type Map[K comparable, V any] struct {
	m    map[K]V
	peak int // the largest number of elements since m was made
}

// Len returns the number of elements.
func (m *Map[K, V]) Len() int { return len(m.m) }

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) V { return m.m[key] }

// Has reports whether a key has a value.
func (m *Map[K, V]) Has(key K) bool {
	_, has := m.m[key]
	return has
}

// Set sets the value of a key.
func (m *Map[K, V]) Set(key K, value V) {
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[key] = value
	if len(m.m) > m.peak {
		m.peak = len(m.m)
	}
}

// Delete deletes a key. When less than a quarter of the elements is left, the others move to a new
// map. That costs less than one move for each element that was deleted.
func (m *Map[K, V]) Delete(key K) {
	delete(m.m, key)
	if m.peak <= least || len(m.m) >= m.peak/4 {
		return
	}
	old := m.m
	m.m = make(map[K]V, len(old))
	for key, value := range old {
		m.m[key] = value
	}
	m.peak = len(m.m)
}

// Each calls f for each element. f must not change the map.
func (m *Map[K, V]) Each(f func(key K, value V)) {
	for key, value := range m.m {
		f(key, value)
	}
}

// Clear deletes all elements.
func (m *Map[K, V]) Clear() { *m = Map[K, V]{} }
