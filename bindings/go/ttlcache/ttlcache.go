// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package ttlcache is a cache whose entries end when their time to live has passed. The cache never
// scans its entries, and runs no code while no entry ends. Postponing the end of an entry takes one
// compare-and-swap in memory.
//
// # How values end
//
// Each value that [Cache.Set] has stored ends exactly once, in one of these ways:
//
//   - Its time to live passes: it expires. The cache calls ended once, with the key and this value.
//     The cache also makes this call if, after that time and before the call, Set replaces the
//     value, Delete deletes the key, or Close closes the cache.
//   - Set replaces it, Delete deletes it or Close closes the cache before its time to live has
//     passed. The cache does not call ended for it.
//
// Get and Touch do not return a value whose time to live has passed. The cache never evicts a value
// to make room for another one: if the wheel is full, Set returns an error and changes nothing. A value
// expires early in only one case: Touch postpones it just when its timer fires, and there is no memory
// or no room in the wheel for a new timer.
//
// # Calls of ended
//
// The cache makes calls for the values of one key one after another, in the order in which the values
// were set. Calls for different keys can run at the same time, in up to 64 goroutines of the cache. A
// slow call therefore delays only calls for its key, unless 64 calls are slow at the same time. It never
// delays another cache. Waiting calls are kept in memory, without a limit on their number.
package ttlcache

import (
	"time"

	"timerwheel"
	"timerwheel/internal/shrink"
	"timerwheel/internal/timers"
)

// Cache is a cache. Any number of goroutines may call its methods at the same time. Its memory is
// proportional to the number of entries, and shrinks after a burst.
type Cache[K comparable, V any] struct {
	timers  *timers.Timers[entry[K, V]]
	entries shrink.Map[K, *timers.Item[entry[K, V]]]
	ended   *timers.Dispatcher[entry[K, V]]
	closed  bool
}

type entry[K comparable, V any] struct {
	key   K
	value V
	ttl   time.Duration
}

// New creates a cache. The cache calls ended for each value that expires; the package documentation has
// the details. ended may use the cache, but must not close it. ended may be nil. options are the options
// of the wheel, or nil. Resident has no effect. Errors: the errors of [timerwheel.Open].
func New[K comparable, V any](options *timerwheel.Options, ended func(key K, value V)) (*Cache[K, V], error) {
	c := &Cache[K, V]{}
	if ended != nil {
		c.ended = timers.NewDispatcher(func(e entry[K, V]) { ended(e.key, e.value) })
	}
	var err error
	c.timers, err = timers.New(options, func(it *timers.Item[entry[K, V]]) {
		// Close has accounted for all values.
		if !c.closed {
			c.entries.Delete(it.Owner.key)
			c.expire(it.Owner)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// expire schedules the call of ended for a value. The lock is held, so that calls for a key are in
// order.
func (c *Cache[K, V]) expire(e entry[K, V]) {
	if c.ended != nil {
		c.ended.Add(e.key, e)
	}
}

// expired reports whether the time of an entry has passed, although its event is still to come.
func (c *Cache[K, V]) expired(it *timers.Item[entry[K, V]]) bool {
	return it.Deadline() <= c.timers.Wheel().Now()
}

// Set sets an entry with a time to live. If the time is not positive, the entry ends immediately, and
// Get does not return it. If Set fails, it changes nothing. Errors: [timerwheel.ErrClosed], ENOSPC (the
// wheel is full), EDQUOT or ENOMEM (there is no memory).
func (c *Cache[K, V]) Set(key K, value V, ttl time.Duration) error {
	c.timers.Lock()
	defer c.timers.Unlock()
	if c.closed {
		return timerwheel.ErrClosed
	}
	var old entry[K, V]
	expired := false
	it := c.entries.Get(key)
	if it == nil {
		it = &timers.Item[entry[K, V]]{}
	} else {
		old, expired = it.Owner, c.expired(it)
	}
	if err := c.timers.Arm(it, c.timers.After(ttl)); err != nil {
		return err
	}
	if expired {
		c.expire(old)
	}
	it.Owner = entry[K, V]{key, value, ttl}
	c.entries.Set(key, it)
	return nil
}

// Get returns the value of an entry, or false if there is no entry or its time has passed.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.timers.Lock()
	defer c.timers.Unlock()
	if it := c.live(key); it != nil {
		return it.Owner.value, true
	}
	var none V
	return none, false
}

// Touch is Get, and also restarts the time to live. If the wheel needs memory for that and there is
// none, it returns false and changes nothing.
func (c *Cache[K, V]) Touch(key K) (V, bool) {
	c.timers.Lock()
	defer c.timers.Unlock()
	if it := c.live(key); it != nil && c.timers.Arm(it, c.timers.After(it.Owner.ttl)) == nil {
		return it.Owner.value, true
	}
	var none V
	return none, false
}

// live returns the entry of a key, or nil if there is none or its time has passed.
func (c *Cache[K, V]) live(key K) *timers.Item[entry[K, V]] {
	it := c.entries.Get(key)
	if it == nil || c.expired(it) {
		return nil
	}
	return it
}

// Delete deletes an entry. It returns true if there was an entry whose time had not passed; the cache
// does not call ended for it. If the time had passed, Delete returns false, and the cache calls ended.
func (c *Cache[K, V]) Delete(key K) bool {
	c.timers.Lock()
	defer c.timers.Unlock()
	it := c.entries.Get(key)
	if it == nil {
		return false
	}
	expired := c.expired(it)
	c.entries.Delete(key)
	c.timers.Disarm(it)
	if expired {
		c.expire(it.Owner)
	}
	return !expired
}

// Len returns the number of entries. It counts entries whose time has passed until their event is
// read, some milliseconds later.
func (c *Cache[K, V]) Len() int {
	c.timers.Lock()
	defer c.timers.Unlock()
	return c.entries.Len()
}

// Close empties the cache and frees its wheel. It waits until ended has returned for all values that
// have expired. The cache does not call ended after that. Error: [timerwheel.ErrClosed] if the cache was
// closed before.
func (c *Cache[K, V]) Close() error {
	c.timers.Lock()
	c.closed = true
	c.entries.Each(func(_ K, it *timers.Item[entry[K, V]]) {
		if c.expired(it) {
			c.expire(it.Owner)
		}
	})
	c.entries.Clear()
	c.timers.Unlock()
	err := c.timers.Close()
	if c.ended != nil {
		c.ended.Wait()
	}
	return err
}
