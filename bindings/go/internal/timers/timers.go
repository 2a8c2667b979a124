// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package timers has the code that the packages on top of timerwheel share: timers that belong to
// objects of the program and are postponed in memory, a goroutine that reads their events, and a
// [Dispatcher] that calls functions of the program.
package timers

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"timerwheel"
	"timerwheel/internal/shrink"
)

// Item is the timer of an object, which contains it. The zero value is not armed.
type Item[T any] struct {
	Owner    T
	id       uint64 // 0: not armed
	handle   timerwheel.Handle
	deadline int64
}

// Deadline returns the time at which the item ends, in ns of the wheel's clock.
func (it *Item[T]) Deadline() int64 { return it.deadline }

// Armed reports whether the item is armed. An item that has ended is not armed.
func (it *Item[T]) Armed() bool { return it.id != 0 }

// Timers has the timers of one kind of object. The caller of its methods holds its lock.
type Timers[T any] struct {
	sync.Mutex
	w    *timerwheel.Wheel
	last uint64
	// By the keys of the wheel. Each arming by a call gets a new key. If an event was read but not
	// handled when its timer was changed, its key therefore belongs to no item.
	items   shrink.Map[uint64, *Item[T]]
	stopped sync.WaitGroup
}

// New opens a wheel whose timers are not resident, and starts to read its events. It calls end, with the
// lock held, for each item that has ended. end must not block.
func New[T any](options *timerwheel.Options, end func(*Item[T])) (*Timers[T], error) {
	o := timerwheel.Options{}
	if options != nil {
		o = *options
	}
	o.Table = true
	// A resident timer would stay in the wheel after its event, but would never be armed again,
	// because each arming uses a new key.
	o.Resident = false
	w, err := timerwheel.Open(&o)
	if err != nil {
		return nil, err
	}
	t := &Timers[T]{w: w}
	t.stopped.Add(1)
	go t.run(end)
	return t, nil
}

// Wheel returns the wheel.
func (t *Timers[T]) Wheel() *timerwheel.Wheel { return t.w }

// After returns the time that is d from now.
func (t *Timers[T]) After(d time.Duration) int64 {
	now := t.w.Now()
	if int64(d) > timerwheel.TimeMax-now {
		return timerwheel.TimeMax
	}
	return now + int64(d)
}

// Arm arms an item, or changes its deadline: to a later one in memory.
func (t *Timers[T]) Arm(it *Item[T], deadline int64) error {
	if it.id != 0 {
		if deadline >= it.deadline && t.w.Table().Refresh(it.handle, deadline) == timerwheel.Done {
			it.deadline = deadline
			return nil
		}
		moves := []timerwheel.Move{{Key: it.id, Deadline: deadline, Flags: timerwheel.Abs}}
		if _, err := t.w.Move(moves); err != nil {
			return err
		}
		err := moves[0].Result.Err()
		if err == nil {
			it.deadline = deadline
		}
		// ENOENT means that its event was delivered but not handled yet.
		if !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	adds := []timerwheel.Add{{Key: t.last + 1, Deadline: deadline, Flags: timerwheel.Abs}}
	if _, err := t.w.Add(adds); err != nil {
		return err
	}
	if err := adds[0].Result.Err(); err != nil {
		return err
	}
	t.last++
	t.items.Delete(it.id)
	it.id, it.handle, it.deadline = t.last, adds[0].Handle, deadline
	t.items.Set(it.id, it)
	return nil
}

// Disarm disarms an item. After it has returned, the item does not end.
func (t *Timers[T]) Disarm(it *Item[T]) error {
	if it.id == 0 {
		return nil
	}
	t.items.Delete(it.id)
	_, err := t.w.Remove([]timerwheel.Remove{{Key: it.id}})
	it.id = 0
	return err
}

// Drain disarms all items.
func (t *Timers[T]) Drain() error {
	t.items.Each(func(_ uint64, it *Item[T]) { it.id = 0 })
	t.items.Clear()
	entries := make([]timerwheel.Entry, 1024)
	for {
		n, err := t.w.Drain(entries, false)
		if n == 0 || err != nil {
			return err
		}
	}
}

// Close closes the wheel. Call it without the lock. After it has returned, end is not called.
func (t *Timers[T]) Close() error {
	err := t.w.Close()
	t.stopped.Wait()
	return err
}

func (t *Timers[T]) run(end func(*Item[T])) {
	defer t.stopped.Done()
	events := make([]timerwheel.Event, 256)
	for {
		n, err := t.w.Read(context.Background(), events)
		if err != nil {
			return
		}
		t.ended(events[:n], end)
	}
}

// ended calls end for the items that have ended.
func (t *Timers[T]) ended(events []timerwheel.Event, end func(*Item[T])) {
	t.Lock()
	defer t.Unlock()
	for _, e := range events {
		it := t.items.Get(e.Key)
		if it == nil {
			continue
		}
		t.items.Delete(it.id)
		it.id = 0
		end(it)
	}
}
