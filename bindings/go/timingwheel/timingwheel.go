// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package timingwheel has the interface of go-zero's TimingWheel (core/collection), on a wheel of
// timerwheel: replace the import. What is different:
//
//   - A task never runs early, and at most a millisecond late; delays are not rounded to intervals,
//     and moved tasks are as exact as others.
//   - MoveTimer with a delay below the interval moves the task, instead of running it twice.
//   - Drain frees the keys, and fn may use the wheel. It also gets tasks that are due and not yet
//     run.
//   - After RemoveTimer has returned, the task does not start.
//   - Stop may be called twice. It frees the wheel, and the goroutine ends.
//   - SetTimer and MoveTimer return an error if there is no memory, or the wheel is full.
package timingwheel

import (
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"timerwheel"
	"timerwheel/internal/timers"
)

var (
	// ErrClosed is the error of each method after Stop.
	ErrClosed = errors.New("timingwheel: the wheel was stopped")
	// ErrArgument is the error of a delay that is not positive, and of a key that is nil.
	ErrArgument = errors.New("timingwheel: the delay is not positive, or the key is nil")
)

// Execute is called with the key and the value of each task whose time has come, in goroutines of
// the wheel: one after the other for those that come together. If it panics that is logged.
type Execute func(key, value any)

// TimingWheel is a wheel of tasks. Its methods may be called by any number of goroutines at once.
type TimingWheel struct {
	interval time.Duration
	timers   *timers.Timers[task]
	tasks    map[any]*timers.Item[task]
	stopped  bool
}

type task struct {
	key, value any
	item       *timers.Item[task] // of the task
}

// NewTimingWheel makes a wheel. SetTimer extends shorter delays to the interval. The number of slots
// must be positive, and does not matter.
func NewTimingWheel(interval time.Duration, numSlots int, execute Execute) (*TimingWheel, error) {
	if interval <= 0 || numSlots <= 0 || execute == nil {
		return nil, fmt.Errorf("timingwheel: interval %v, %d slots: %w", interval, numSlots, ErrArgument)
	}
	return newTimingWheel(nil, interval, execute)
}

func newTimingWheel(options *timerwheel.Options, interval time.Duration, execute Execute) (*TimingWheel, error) {
	tw := &TimingWheel{interval: interval, tasks: map[any]*timers.Item[task]{}}
	// A task that has ended stays in tasks until it starts.
	end := func(*timers.Item[task]) {}
	var err error
	tw.timers, err = timers.New(options, end, func(ended []task) {
		go func() {
			for _, t := range ended {
				if t, starts := tw.start(t.item); starts {
					safely(execute, t)
				}
			}
		}()
	})
	if err != nil {
		return nil, err
	}
	return tw, nil
}

// start takes a task that has ended, unless it was removed, set or moved since.
func (tw *TimingWheel) start(it *timers.Item[task]) (task, bool) {
	tw.timers.Lock()
	defer tw.timers.Unlock()
	t := it.Owner
	if it.Armed() || tw.tasks[t.key] != it {
		return task{}, false
	}
	delete(tw.tasks, t.key)
	return t, true
}

func safely(f func(key, value any), t task) {
	defer func() {
		if p := recover(); p != nil {
			log.Printf("timingwheel: panic: %v\n%s", p, debug.Stack())
		}
	}()
	f(t.key, t.value)
}

// SetTimer sets a task. One that has the key gets the new value and time.
func (tw *TimingWheel) SetTimer(key, value any, delay time.Duration) error {
	if delay <= 0 || key == nil {
		return ErrArgument
	}
	if delay < tw.interval {
		delay = tw.interval
	}
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	it := tw.tasks[key]
	if it == nil {
		it = &timers.Item[task]{}
	}
	if err := tw.timers.Arm(it, tw.timers.After(delay)); err != nil {
		return err
	}
	it.Owner = task{key, value, it}
	tw.tasks[key] = it
	return nil
}

// MoveTimer changes when a task runs. A key that no task has is no error.
func (tw *TimingWheel) MoveTimer(key any, delay time.Duration) error {
	if delay <= 0 || key == nil {
		return ErrArgument
	}
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	it := tw.tasks[key]
	if it == nil {
		return nil
	}
	return tw.timers.Arm(it, tw.timers.After(delay))
}

// RemoveTimer removes a task. A key that no task has is no error.
func (tw *TimingWheel) RemoveTimer(key any) error {
	if key == nil {
		return ErrArgument
	}
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	it := tw.tasks[key]
	if it == nil {
		return nil
	}
	delete(tw.tasks, key)
	return tw.timers.Disarm(it)
}

// drainWorkers is how many goroutines call the function of a Drain.
const drainWorkers = 8

// Drain removes all tasks, and has fn called for each of them by up to 8 goroutines. It does not
// wait for these.
func (tw *TimingWheel) Drain(fn func(key, value any)) error {
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	if err := tw.timers.Drain(); err != nil {
		return err
	}
	all := make([]task, 0, len(tw.tasks))
	for _, it := range tw.tasks {
		all = append(all, it.Owner)
	}
	tw.tasks = map[any]*timers.Item[task]{}
	// for all, which the workers take from
	var next sync.Mutex
	for i, tasks := 0, len(all); i < drainWorkers && i < tasks; i++ {
		go func() {
			for {
				next.Lock()
				if len(all) == 0 {
					next.Unlock()
					return
				}
				t := all[0]
				all = all[1:]
				next.Unlock()
				safely(fn, t)
			}
		}()
	}
	return nil
}

// Stop stops the wheel. No task starts any more, but for those of a batch that has begun.
func (tw *TimingWheel) Stop() {
	tw.timers.Lock()
	tw.stopped = true
	tw.timers.Unlock()
	tw.timers.Close()
}
