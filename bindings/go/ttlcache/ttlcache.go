// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package ttlcache is a cache whose entries end when their time to live has passed. Nothing is
// scanned, and nothing runs while nothing ends. To postpone the end of an entry is a store in memory.
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
// to make room for another one: if the wheel is full, Set returns an error and changes nothing. Only
// one case ends a value early: Touch postponed it just when its timer fired, and there is no memory or
// room in the wheel for a new timer. Then it expires.
//
// # Calls of ended
//
// The cache makes calls for the values of one key one after another, in the order in which the values
// were set. Calls for different keys can run at the same time, in up to 64 goroutines of the cache. So a
// slow call delays only calls for its key, unless 64 calls are slow at the same time. It never delays
// another cache. Calls that wait are kept in memory, without a limit on their number.
package ttlcache

import (
	"time"

	"timerwheel"
	"timerwheel/internal/shrink"
	"timerwheel/internal/timers"
)

// Cache is a cache. Its methods may be called by any number of goroutines at once. Its memory is in
// proportion to the number of entries: it shrinks after a burst.
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

// New makes a cache. It calls ended for each value that expires; see above. ended can use the cache,
// but must not close it. ended can be nil. options are the options of the wheel, or nil. Resident has
// no effect. Errors are the errors of [timerwheel.Open].
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

// expire has ended called for a value. The lock is held, so that calls for a key are in order.
func (c *Cache[K, V]) expire(e entry[K, V]) {
	if c.ended != nil {
		c.ended.Add(e.key, e)
	}
}

// expired reports whether the time of an entry has passed, although its event is still to come.
func (c *Cache[K, V]) expired(it *timers.Item[entry[K, V]]) bool {
	return it.Deadline() <= c.timers.Wheel().Now()
}

// Set sets an entry, with a time to live. If the time is not positive the entry ends at once, and Get
// does not return it. If Set fails, the entry stays as it was. Errors: [timerwheel.ErrClosed]; ENOSPC
// (the wheel is full), EDQUOT or ENOMEM (there is no memory).
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

// Touch is Get, and restarts the time to live. It returns false, and changes nothing, if the wheel
// needs memory for that and there is none.
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

// Delete deletes an entry. It returns true if there was one whose time had not passed: ended is not
// called for it. If its time had passed, Delete returns false, and ended is called.
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
// have expired. After that, ended is not called any more. Error: [timerwheel.ErrClosed] if the cache
// was closed before.
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
