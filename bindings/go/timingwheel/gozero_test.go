// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timingwheel

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"timerwheel"
)

// go-zero's TimingWheel also passes the tests in this file, except for the differences that the package
// documentation lists.

// manual is a Ticker that the test advances.
type manual struct {
	ticks   chan time.Time
	stopped chan struct{}
}

func newManual() *manual { return &manual{make(chan time.Time), make(chan struct{})} }

func (m *manual) Chan() <-chan time.Time { return m.ticks }

func (m *manual) Stop() { close(m.stopped) }

const interval = time.Minute

// rig is a wheel with such a ticker.
type rig struct {
	*TimingWheel
	t      *testing.T
	ticker *manual
	ran    chan string
	runs   uint64 // tasks that have run
}

func newRig(t *testing.T, o *timerwheel.Options) *rig {
	t.Helper()
	r := &rig{t: t, ticker: newManual(), ran: make(chan string, 1000)}
	var err error
	r.TimingWheel, err = newWithTicker(o, interval, func(key, value any) { r.ran <- fmt.Sprint(key, "=", value) }, r.ticker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Stop()
		<-r.ticker.stopped
	})
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// expect waits for these tasks, in any order. No other task is due.
//
// The number of timers that fired is calculated from counters that only calls change, because an
// event that is being read is neither due nor delivered for a moment.
func (r *rig) expect(tasks ...string) {
	r.t.Helper()
	left := map[string]int{}
	for _, task := range tasks {
		left[task]++
	}
	r.timers.Lock()
	stats, err := r.timers.Wheel().Stats()
	r.timers.Unlock()
	r.ok(err)
	fired := stats.Armed - stats.Removed - stats.Drained - stats.Pending
	if r.runs += uint64(len(tasks)); fired != r.runs {
		r.t.Fatalf("%d tasks were due instead of %d", fired, r.runs)
	}
	for range tasks {
		task := <-r.ran
		if left[task]--; left[task] < 0 {
			r.t.Fatalf("%s has run instead of %v", task, left)
		}
	}
}

// tick lets an interval pass, and expects these tasks to run.
func (r *rig) tick(tasks ...string) {
	r.t.Helper()
	r.timers.Lock()
	ticks := r.ticks
	r.timers.Unlock()
	r.ticker.ticks <- time.Now()
	for done := false; !done; time.Sleep(10 * time.Microsecond) {
		r.timers.Lock()
		done = r.ticks == ticks+1
		r.timers.Unlock()
	}
	r.expect(tasks...)
}

func (r *rig) idle(ticks int) {
	r.t.Helper()
	for i := 0; i < ticks; i++ {
		r.tick()
	}
}

func TestTickerArguments(t *testing.T) {
	run := func(any, any) {}
	for i, bad := range []func() (*TimingWheel, error){
		func() (*TimingWheel, error) { return NewTimingWheelWithTicker(0, 1, run, newManual()) },
		func() (*TimingWheel, error) { return NewTimingWheelWithTicker(1, 0, run, newManual()) },
		func() (*TimingWheel, error) { return NewTimingWheelWithTicker(1, 1, nil, newManual()) },
		func() (*TimingWheel, error) { return NewTimingWheelWithTicker(1, 1, run, nil) },
	} {
		if tw, err := bad(); tw != nil || !errors.Is(err, ErrArgument) {
			t.Fatal(i, tw, err)
		}
	}
	ticker := newManual()
	var tw *TimingWheel
	tw, err := NewTimingWheelWithTicker(interval, 3, Execute(run), ticker)
	if err != nil {
		t.Fatal(err)
	}
	// A closed channel does not mean an endless number of ticks.
	close(ticker.ticks)
	if err := tw.SetTimer(1, 1, interval); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	tw.Stop()
	<-ticker.stopped
	if tw.ticks != 0 {
		t.Fatal(tw.ticks)
	}
	for i, err := range []error{tw.SetTimer(1, 1, 1), tw.MoveTimer(1, 1), tw.RemoveTimer(1), tw.Drain(run)} {
		if err != ErrClosed {
			t.Fatal(i, err)
		}
	}
}

func TestTickerSet(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		r := newRig(t, o)
		for elapsed := 0; elapsed < 3; elapsed++ {
			for _, ticks := range []int{1, 2, 5, 7, 10, 12} {
				r.ok(r.SetTimer("key", ticks, time.Duration(ticks)*interval))
				r.idle(ticks - 1)
				r.tick(fmt.Sprint("key=", ticks))
			}
			r.idle(elapsed)
		}
		// A delay shorter than the interval, a delay that is rounded up, and the longest delay.
		r.ok(r.SetTimer("short", 1, 1))
		r.ok(r.SetTimer("up", 2, interval+1))
		r.ok(r.SetTimer("never", 3, 1<<63-1))
		r.tick("short=1")
		r.tick("up=2")
		r.idle(2)
		// Set twice: the last value and the last delay apply.
		r.ok(r.SetTimer("twice", 1, 4*interval))
		r.ok(r.SetTimer("twice", 2, 7*interval))
		r.idle(6)
		r.tick("twice=2")
		r.ok(r.SetTimer("twice", 1, 7*interval))
		r.ok(r.SetTimer("twice", 2, 4*interval))
		r.idle(3)
		r.tick("twice=2")
		r.idle(4)
		for i, err := range []error{r.SetTimer("key", 1, 0), r.SetTimer("key", 1, -interval), r.SetTimer(nil, 1, 1)} {
			if err != ErrArgument {
				t.Fatal(i, err)
			}
		}
		r.idle(2)
	})
}

func TestTickerMove(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		r := newRig(t, o)
		for _, moves := range [][]int{{3, 5}, {3, 7}, {5, 12}, {4, 2}, {12, 1}, {7, 7}, {3, 5, 10}, {5, 12, 17},
			{3, 10, 4}, {9, 2, 6}} {
			last := 0
			for i, ticks := range moves {
				last = ticks
				if i == 0 {
					r.ok(r.SetTimer("key", last, time.Duration(ticks)*interval))
				} else {
					r.ok(r.MoveTimer("key", time.Duration(ticks)*interval))
				}
			}
			// A later move counts from its own time.
			if moves[0] == 9 {
				r.idle(4)
				r.ok(r.MoveTimer("key", time.Duration(last)*interval))
			}
			r.idle(last - 1)
			r.tick(fmt.Sprint("key=", moves[0]))
			r.idle(3)
		}
		// It runs immediately, and only once.
		r.ok(r.SetTimer("soon", 1, 4*interval))
		r.ok(r.MoveTimer("soon", interval/2))
		r.expect("soon=1")
		r.idle(5)
		r.ok(r.MoveTimer("none", interval))
		r.ok(r.SetTimer("key", 1, 2*interval))
		if r.MoveTimer("key", -interval) != ErrArgument || r.MoveTimer("key", 0) != ErrArgument ||
			r.MoveTimer(nil, interval) != ErrArgument {
			t.Fatal("wrong arguments")
		}
		r.idle(1)
		r.tick("key=1")
	})
}

func TestTickerRemove(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		r := newRig(t, o)
		r.ok(r.SetTimer("key", 1, interval))
		r.ok(r.RemoveTimer("key"))
		r.ok(r.RemoveTimer("key"))
		r.ok(r.RemoveTimer("none"))
		if r.RemoveTimer(nil) != ErrArgument {
			t.Fatal("nil")
		}
		r.idle(3)
		r.ok(r.SetTimer("key", 2, interval))
		r.ok(r.RemoveTimer("key"))
		r.ok(r.SetTimer("key", 3, 2*interval))
		r.idle(1)
		r.tick("key=3")
	})
}

func TestTickerDrain(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		r := newRig(t, o)
		r.ok(r.SetTimer("first", 3, 4*interval))
		r.ok(r.SetTimer("second", 5, 7*interval))
		r.ok(r.SetTimer("third", 7, 7*interval))
		r.ok(r.SetTimer("removed", 9, 7*interval))
		r.ok(r.RemoveTimer("removed"))
		drained := make(chan string, 10)
		fn := func(key, value any) { drained <- fmt.Sprint(key, "=", value) }
		r.ok(r.Drain(fn))
		got := map[string]bool{<-drained: true, <-drained: true, <-drained: true}
		if !got["first=3"] || !got["second=5"] || !got["third=7"] {
			t.Fatal(got)
		}
		r.ok(r.Drain(fn))
		r.idle(8)
		r.ok(r.SetTimer("first", 1, interval))
		r.tick("first=1")
		if len(drained) != 0 {
			t.Fatal(<-drained, "was drained again")
		}
	})
}

// Compare random operations with a model.
func TestTickerModel(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		seed := time.Now().UnixNano()
		t.Log("seed", seed)
		rnd := rand.New(rand.NewSource(seed))
		r := newRig(t, o)
		type state struct{ value, tick int }
		model := map[int]state{}
		for tick, step := 0, 0; step < 5000; step++ {
			key, ticks := rnd.Intn(20), 1+rnd.Intn(12)
			delay := time.Duration(ticks) * interval
			// Also use delays between whole intervals.
			if rnd.Intn(4) == 0 {
				delay -= time.Duration(rnd.Int63n(int64(interval)))
			}
			switch rnd.Intn(5) {
			case 0, 1:
				r.ok(r.SetTimer(key, step, delay))
				model[key] = state{step, tick + ticks}
			case 2:
				r.ok(r.MoveTimer(key, delay))
				s, there := model[key]
				switch {
				case there && delay < interval:
					delete(model, key)
					r.expect(fmt.Sprint(key, "=", s.value))
				case there:
					model[key] = state{s.value, tick + ticks}
				}
			case 3:
				r.ok(r.RemoveTimer(key))
				delete(model, key)
			case 4:
				tick++
				var want []string
				for key, s := range model {
					if s.tick == tick {
						want = append(want, fmt.Sprint(key, "=", s.value))
						delete(model, key)
					}
				}
				r.tick(want...)
			}
		}
	})
}
