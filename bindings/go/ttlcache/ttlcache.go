// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package ttlcache is a cache whose entries end when their time to live has passed. Nothing is
// scanned, and nothing runs while nothing ends. To postpone the end of an entry is a store in memory.
package ttlcache

import (
	"time"

	"timerwheel"
	"timerwheel/internal/timers"
)

// Cache is a cache. Its methods may be called by any number of goroutines at once.
type Cache[K comparable, V any] struct {
	timers  *timers.Timers[entry[K, V]]
	entries map[K]*timers.Item[entry[K, V]]
	closed  bool
}

type entry[K comparable, V any] struct {
	key   K
	value V
	ttl   time.Duration
}

// New makes a cache. ended is called for each entry whose time to live has passed, in a goroutine of
// the cache, and may use it, but not close it; it may be nil. options are those of the wheel; they
// may be nil. Resident has no effect.
func New[K comparable, V any](options *timerwheel.Options, ended func(key K, value V)) (*Cache[K, V], error) {
	c := &Cache[K, V]{entries: map[K]*timers.Item[entry[K, V]]{}}
	end := func(it *timers.Item[entry[K, V]]) { delete(c.entries, it.Owner.key) }
	var err error
	c.timers, err = timers.New(options, end, func(entries []entry[K, V]) {
		for _, e := range entries {
			if ended != nil {
				ended(e.key, e.value)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Set sets an entry, with a time to live. If that is not positive the entry ends at once, and Get
// does not return it. Errors: [timerwheel.ErrClosed]; the wheel is full, or there is no memory.
func (c *Cache[K, V]) Set(key K, value V, ttl time.Duration) error {
	c.timers.Lock()
	defer c.timers.Unlock()
	if c.closed {
		return timerwheel.ErrClosed
	}
	it := c.entries[key]
	if it == nil {
		it = &timers.Item[entry[K, V]]{}
	}
	if err := c.timers.Arm(it, c.timers.After(ttl)); err != nil {
		return err
	}
	it.Owner = entry[K, V]{key, value, ttl}
	c.entries[key] = it
	return nil
}

// Get returns the value of an entry, and false if there is none or its time has passed.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.timers.Lock()
	defer c.timers.Unlock()
	if it := c.live(key); it != nil {
		return it.Owner.value, true
	}
	var none V
	return none, false
}

// Touch is Get, and lets the time to live begin anew.
func (c *Cache[K, V]) Touch(key K) (V, bool) {
	c.timers.Lock()
	defer c.timers.Unlock()
	if it := c.live(key); it != nil && c.timers.Arm(it, c.timers.After(it.Owner.ttl)) == nil {
		return it.Owner.value, true
	}
	var none V
	return none, false
}

// live is the entry of a key; nil: there is none, or its time has passed and its event is to come.
func (c *Cache[K, V]) live(key K) *timers.Item[entry[K, V]] {
	it := c.entries[key]
	if it == nil || it.Deadline() <= c.timers.Wheel().Now() {
		return nil
	}
	return it
}

// Delete deletes an entry, for which ended is not called, and reports if there was one.
func (c *Cache[K, V]) Delete(key K) bool {
	c.timers.Lock()
	defer c.timers.Unlock()
	it := c.entries[key]
	if it == nil {
		return false
	}
	delete(c.entries, key)
	c.timers.Disarm(it)
	return true
}

// Len returns the number of entries, with those whose time has just passed.
func (c *Cache[K, V]) Len() int {
	c.timers.Lock()
	defer c.timers.Unlock()
	return len(c.entries)
}

// Close empties the cache and frees its wheel. When it returns, ended is not called any more.
func (c *Cache[K, V]) Close() error {
	c.timers.Lock()
	c.closed = true
	c.entries = nil
	c.timers.Unlock()
	return c.timers.Close()
}
