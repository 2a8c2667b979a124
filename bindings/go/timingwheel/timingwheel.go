// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package timingwheel has the interface of go-zero's TimingWheel (core/collection), on a wheel of
// timerwheel. Replace the import:
//
//	import collection "timerwheel/timingwheel"
//
// It has all names of TimingWheel that go-zero exports: [TimingWheel] with SetTimer, MoveTimer,
// RemoveTimer, Drain and Stop, [NewTimingWheel], [NewTimingWheelWithTicker], [Execute], [ErrClosed] and
// [ErrArgument]. The rest of go-zero's package (Cache, Queue, Ring, RollingWindow, SafeMap, Set) is not
// here.
//
// # Differences from go-zero
//
//   - A task never runs early, and runs at most a millisecond late. go-zero rounds delays down to whole
//     intervals, and counts the current interval as a whole one. With a ticker, delays are rounded up
//     to whole ticks. Moved tasks are as exact as others; go-zero runs some of them a turn of the
//     wheel early or late.
//   - MoveTimer with a delay below the interval moves the task, or with a ticker runs it at once.
//     go-zero runs it at once, and again at its old time.
//   - A task whose time has come, but that has not started, can still be moved by MoveTimer, removed
//     by RemoveTimer and drained by Drain. go-zero runs it in any case. SetTimer does the same as in
//     go-zero: the task runs with its old value, and the new value gets a task of its own.
//   - After RemoveTimer has returned, the current task of the key does not start. A task whose key
//     SetTimer has given to a new task, as above, still runs.
//   - Up to 64 tasks of a wheel run at the same time. Tasks of one key run one after another, in their
//     order. A slow task therefore delays only its own key, unless 64 tasks are slow. go-zero runs the
//     tasks of a slot one after another.
//   - Drain frees the keys, and fn can use the wheel. In go-zero the wheel stands still until all calls
//     of fn have returned, and a drained key may not be armed again.
//   - Stop can be called more than once. It frees the wheel, and its goroutines end. go-zero panics at
//     the second call.
//   - After Stop no task starts. go-zero still runs the tasks of a slot that has begun.
//   - SetTimer and MoveTimer return an error if there is no memory, or the wheel is full.
//   - A ticker whose channel is closed no longer ticks.
//   - NewTimingWheelWithTicker returns an error for invalid arguments.
package timingwheel

import (
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"timerwheel"
	"timerwheel/internal/shrink"
	"timerwheel/internal/timers"
)

var (
	// ErrClosed is the error of each method after Stop.
	ErrClosed = errors.New("timingwheel: the wheel was stopped")
	// ErrArgument is the error of each method if the delay is not positive or the key is nil.
	ErrArgument = errors.New("timingwheel: the delay is not positive, or the key is nil")
)

// Execute is a function that the wheel calls, in its own goroutines, with the key and the value of
// each task whose time has come. The wheel logs a panic of the function.
type Execute func(key, value any)

// Ticker is go-zero's timex.Ticker.
type Ticker interface {
	// Chan returns a channel that receives a value each interval.
	Chan() <-chan time.Time
	// Stop ends the ticker.
	Stop()
}

// TimingWheel is a wheel of tasks. Any number of goroutines may call its methods at the same time.
type TimingWheel struct {
	interval time.Duration
	timers   *timers.Timers[task]
	tasks    shrink.Any[*timers.Item[task]] // the tasks whose keys are not free
	started  *timers.Dispatcher[*timers.Item[task]]
	ticks    int64 // number of ticks of the ticker
	ticker   Ticker
	stop     chan struct{}
	stopped  bool
}

type task struct {
	key, value any
	done       bool // it has started, or will not start
}

// NewTimingWheel creates a wheel. SetTimer extends shorter delays to the interval. The number of slots
// must be positive, but has no effect. Errors: [ErrArgument] (the interval or the number of slots is
// not positive, or execute is nil), and the errors of [timerwheel.Open].
func NewTimingWheel(interval time.Duration, numSlots int, execute Execute) (*TimingWheel, error) {
	if interval <= 0 || numSlots <= 0 || execute == nil {
		return nil, fmt.Errorf("timingwheel: interval %v, %d slots: %w", interval, numSlots, ErrArgument)
	}
	return newTimingWheel(nil, interval, execute)
}

// NewTimingWheelWithTicker creates a wheel whose time advances by the interval with each value from the
// channel of the ticker. It is meant for tests. Delays are rounded up to whole intervals. Stop also
// stops the ticker. Errors: [ErrArgument] also if the ticker is nil, and the errors of NewTimingWheel.
func NewTimingWheelWithTicker(interval time.Duration, numSlots int, execute Execute, ticker Ticker) (*TimingWheel, error) {
	if interval <= 0 || numSlots <= 0 || execute == nil || ticker == nil {
		return nil, fmt.Errorf("timingwheel: interval %v, %d slots, ticker %v: %w", interval, numSlots,
			ticker, ErrArgument)
	}
	return newWithTicker(nil, interval, execute, ticker)
}

func newTimingWheel(options *timerwheel.Options, interval time.Duration, execute Execute) (*TimingWheel, error) {
	tw := &TimingWheel{interval: interval, stop: make(chan struct{})}
	tw.started = timers.NewDispatcher(func(it *timers.Item[task]) {
		if t, starts := tw.start(it); starts {
			safely(execute, t)
		}
	})
	var err error
	// The key of a task whose timer has ended is not free until the task starts.
	tw.timers, err = timers.New(options, func(it *timers.Item[task]) { tw.started.Add(it.Owner.key, it) })
	if err != nil {
		return nil, err
	}
	return tw, nil
}

// With a ticker, the underlying wheel has the clock Manual. A tick of the ticker takes coarse ns of this
// clock. That is a power of two, so that deadlines in the deadline table are exact, and several ticks of
// the wheel, which take fine ns each. Deadlines are at the beginning of a tick of the ticker, and the
// clock is in the middle of one.
const (
	fine   = 1 << 20
	coarse = 16 * fine
)

func newWithTicker(options *timerwheel.Options, interval time.Duration, execute Execute, ticker Ticker) (*TimingWheel, error) {
	o := timerwheel.Options{}
	if options != nil {
		o = *options
	}
	o.Clock, o.Tick = timerwheel.Manual, fine
	tw, err := newTimingWheel(&o, interval, execute)
	if err != nil {
		return nil, err
	}
	tw.ticker = ticker
	go tw.run()
	return tw, nil
}

// run handles the ticks of a ticker.
func (tw *TimingWheel) run() {
	defer tw.ticker.Stop()
	ticks := tw.ticker.Chan()
	for {
		select {
		case _, open := <-ticks:
			if !open {
				ticks = nil
				continue
			}
			tw.timers.Lock()
			tw.ticks++
			tw.timers.Wheel().AdvanceTo(tw.ticks*coarse + coarse/2)
			tw.timers.Unlock()
		case <-tw.stop:
			return
		}
	}
}

// after returns the deadline for a delay.
func (tw *TimingWheel) after(delay time.Duration) int64 {
	if tw.ticker == nil {
		return tw.timers.After(delay)
	}
	ticks := int64(delay / tw.interval)
	if ticks > 0 && delay%tw.interval != 0 {
		ticks++
	}
	if ticks >= timerwheel.TimeMax/coarse-tw.ticks {
		return timerwheel.TimeMax
	}
	return (tw.ticks + ticks) * coarse
}

// due reports whether the time of a task has come.
func (tw *TimingWheel) due(it *timers.Item[task]) bool {
	if tw.ticker == nil {
		return it.Deadline() <= tw.timers.Wheel().Now()
	}
	return it.Deadline() <= tw.ticks*coarse
}

// start takes a task whose timer has ended, unless the task was removed or moved since.
func (tw *TimingWheel) start(it *timers.Item[task]) (task, bool) {
	tw.timers.Lock()
	defer tw.timers.Unlock()
	t := it.Owner
	if tw.stopped || t.done || it.Armed() {
		return task{}, false
	}
	it.Owner.done = true
	if tw.tasks.Get(t.key) == it {
		tw.tasks.Delete(t.key)
	}
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

// SetTimer sets a task that runs after the delay, or after the interval if that is longer. If a task has
// the key, it gets the new value and delay. If the time of that task has come, it also runs with its old
// value. Errors: [ErrArgument], [ErrClosed], ENOSPC (the wheel is full), EDQUOT or ENOMEM (there is no
// memory). If SetTimer fails, nothing changes.
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
	old := tw.tasks.Get(key)
	it := old
	if old == nil || tw.due(old) {
		it = &timers.Item[task]{}
	}
	if err := tw.timers.Arm(it, tw.after(delay)); err != nil {
		return err
	}
	if old != nil && it != old && old.Armed() {
		// Its event has not been read yet.
		tw.timers.Disarm(old)
		tw.started.Add(key, old)
	}
	it.Owner = task{key: key, value: value}
	tw.tasks.Set(key, it)
	return nil
}

// MoveTimer changes the time at which a task runs: after the delay from now. It can also move a task
// whose time has come but that has not started. If no task has the key, it does nothing. It returns the
// same errors as SetTimer.
func (tw *TimingWheel) MoveTimer(key any, delay time.Duration) error {
	if delay <= 0 || key == nil {
		return ErrArgument
	}
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	it := tw.tasks.Get(key)
	if it == nil {
		return nil
	}
	return tw.timers.Arm(it, tw.after(delay))
}

// RemoveTimer removes a task. After it has returned, the task does not start. If no task has the key, it
// does nothing. Errors: [ErrArgument], [ErrClosed].
func (tw *TimingWheel) RemoveTimer(key any) error {
	if key == nil {
		return ErrArgument
	}
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	it := tw.tasks.Get(key)
	if it == nil {
		return nil
	}
	it.Owner.done = true
	tw.tasks.Delete(key)
	return tw.timers.Disarm(it)
}

// drainWorkers is the number of goroutines that call the function of a Drain.
const drainWorkers = 8

// Drain removes all tasks. Up to 8 goroutines call fn for each of them; Drain does not wait for them.
// Error: [ErrClosed].
func (tw *TimingWheel) Drain(fn func(key, value any)) error {
	tw.timers.Lock()
	defer tw.timers.Unlock()
	if tw.stopped {
		return ErrClosed
	}
	if err := tw.timers.Drain(); err != nil {
		return err
	}
	all := make([]task, 0, tw.tasks.Len())
	tw.tasks.Each(func(it *timers.Item[task]) {
		all = append(all, it.Owner)
		it.Owner.done = true
	})
	tw.tasks.Clear()
	var next sync.Mutex // protects all, from which the goroutines take tasks
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

// Stop stops the wheel and its ticker. After that no task starts. Tasks that have started continue.
func (tw *TimingWheel) Stop() {
	tw.timers.Lock()
	if !tw.stopped {
		close(tw.stop)
	}
	tw.stopped = true
	tw.timers.Unlock()
	tw.timers.Close()
}
