// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timingwheel

import (
	"fmt"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"timerwheel"
	"timerwheel/internal/timers"
)

func eachBackend(t *testing.T, test func(t *testing.T, o *timerwheel.Options)) {
	t.Run("process", func(t *testing.T) { test(t, &timerwheel.Options{Backend: timerwheel.Process}) })
	t.Run("device", func(t *testing.T) {
		if _, err := os.Stat("/dev/timerwheel"); err != nil && os.Getenv("TIMERWHEEL_BACKEND") != "device" {
			t.Skip("no device")
		}
		test(t, &timerwheel.Options{Backend: timerwheel.Device})
	})
}

func TestArguments(t *testing.T) {
	run := func(any, any) {}
	for _, bad := range []func() (*TimingWheel, error){
		func() (*TimingWheel, error) { return NewTimingWheel(0, 1, run) },
		func() (*TimingWheel, error) { return NewTimingWheel(1, 0, run) },
		func() (*TimingWheel, error) { return NewTimingWheel(1, 1, nil) },
	} {
		if tw, err := bad(); tw != nil || err == nil {
			t.Fatal(tw, err)
		}
	}
	tw, err := NewTimingWheel(time.Millisecond, 10, run)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range []error{tw.SetTimer(nil, 1, 1), tw.SetTimer(1, 1, 0), tw.SetTimer(1, 1, -1),
		tw.MoveTimer(nil, 1), tw.MoveTimer(1, 0), tw.RemoveTimer(nil)} {
		if err != ErrArgument {
			t.Fatal(i, err)
		}
	}
	if tw.MoveTimer("none", time.Hour) != nil || tw.RemoveTimer("none") != nil {
		t.Fatal("of a key that does not exist")
	}
	tw.Stop()
	tw.Stop()
	for i, err := range []error{tw.SetTimer(1, 1, 1), tw.MoveTimer(1, 1), tw.RemoveTimer(1), tw.Drain(run)} {
		if err != ErrClosed {
			t.Fatal(i, err)
		}
	}
}

// Set tasks, move them to later and to earlier times, replace and remove them. Each task that was not
// removed runs once, with its last value, and not early.
func TestTasks(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		type state struct {
			value   int
			due     time.Time
			removed bool
			ran     int
		}
		const count = 2000
		var mu sync.Mutex
		states := make([]state, count)
		var left sync.WaitGroup
		tw, err := newTimingWheel(o, time.Millisecond, func(key, value any) {
			mu.Lock()
			defer mu.Unlock()
			s := &states[key.(int)]
			s.ran++
			if s.ran > 1 || s.removed || value != s.value || time.Now().Before(s.due) {
				t.Errorf("%v: %v, %+v", key, value, s)
			}
			left.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Stop()
		for i := range states {
			set := func(f func(d time.Duration) error, d time.Duration) {
				// Read the time first, so that a task that runs immediately does not seem early.
				states[i].due = time.Now().Add(d)
				if err := f(d); err != nil {
					t.Fatal(err)
				}
			}
			mu.Lock()
			left.Add(1)
			states[i].value = i
			set(func(d time.Duration) error { return tw.SetTimer(i, i, d) }, time.Second+time.Duration(i))
			switch i % 5 {
			case 1:
				set(func(d time.Duration) error { return tw.MoveTimer(i, d) }, 1500*time.Millisecond)
			case 2:
				set(func(d time.Duration) error { return tw.MoveTimer(i, d) }, 700*time.Millisecond)
			case 3:
				states[i].value = -i
				set(func(d time.Duration) error { return tw.SetTimer(i, -i, d) }, 1100*time.Millisecond)
			case 4:
				states[i].removed = true
				left.Done()
				if err := tw.RemoveTimer(i); err != nil {
					t.Fatal(err)
				}
			}
			mu.Unlock()
		}
		left.Wait()
		time.Sleep(10 * time.Millisecond)
		if tw.tasks.Len() != 0 {
			t.Fatal(tw.tasks.Len(), "are left")
		}
	})
}

// Move and remove tasks while tasks run. No task is lost, and no task runs after its removal.
func TestRaces(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		const workers, rounds = 4, 1500
		var ran, removed [workers]int64
		tw, err := newTimingWheel(o, time.Microsecond, func(key, value any) {
			if atomic.LoadInt64(value.(*int64)) != 0 {
				t.Error("it runs after its removal")
			}
			atomic.AddInt64(&ran[key.(int)%workers], 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Stop()
		var all sync.WaitGroup
		for worker := 0; worker < workers; worker++ {
			all.Add(1)
			go func(worker int) {
				defer all.Done()
				for i := 0; i < rounds; i++ {
					key := i*workers + worker
					gone := new(int64)
					tw.SetTimer(key, gone, time.Duration(rand.Intn(int(2*time.Millisecond)))+1)
					for j := 0; j < 3; j++ {
						if tw.MoveTimer(key, time.Duration(rand.Intn(int(2*time.Millisecond)))+1) != nil {
							t.Error("move")
						}
					}
					if i%2 == 0 {
						continue
					}
					// Record the removal under the same lock as RemoveTimer.
					tw.timers.Lock()
					if it := tw.tasks.Get(key); it != nil {
						it.Owner.done = true
						tw.tasks.Delete(key)
						tw.timers.Disarm(it)
						atomic.StoreInt64(gone, 1)
						removed[worker]++
					}
					tw.timers.Unlock()
				}
			}(worker)
		}
		all.Wait()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			var sum int64
			for i := range ran {
				sum += atomic.LoadInt64(&ran[i]) + removed[i]
			}
			if sum == workers*rounds {
				break
			}
			if sum > workers*rounds || time.Now().After(end) {
				t.Fatal(sum, "of", workers*rounds)
			}
		}
	})
}

// Tasks whose time has come wait, because the maximum number of running tasks is blocked. A task that is
// removed now does not start. A task that is moved runs once, later. A task that is set runs with the old
// value, and later with the new one. While fewer tasks are blocked, no slow task delays others.
func TestChangesBeforeStart(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		o.Clock = timerwheel.Manual
		begin := make(chan struct{})
		ran := make(chan task, 10)
		tw, err := newTimingWheel(o, time.Nanosecond, func(key, value any) {
			ran <- task{key: key, value: value}
			if value == "blocked" {
				<-begin
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Stop()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		advance := func() {
			t.Helper()
			_, err := tw.timers.Wheel().Advance(time.Second)
			check(err)
		}
		expect := func(want ...task) {
			t.Helper()
			for _, w := range want {
				if got := <-ran; got.key != w.key || got.value != w.value {
					t.Fatal(got, "not", w)
				}
			}
		}
		for i := 0; i < timers.Workers; i++ {
			check(tw.SetTimer("fast", i, time.Millisecond))
			advance()
			expect(task{key: "fast", value: i})
			check(tw.SetTimer(i, "blocked", time.Millisecond))
			advance()
			expect(task{key: i, value: "blocked"})
		}
		for _, key := range []string{"removed", "set", "moved"} {
			check(tw.SetTimer(key, 1, time.Millisecond))
		}
		advance()
		for stats := (timerwheel.Stats{}); stats.Delivered < 2*timers.Workers+3; time.Sleep(10 * time.Millisecond) {
			stats, err = tw.timers.Wheel().Stats()
			check(err)
		}
		// The lock is free after the events were handled.
		check(tw.RemoveTimer("removed"))
		check(tw.SetTimer("set", 2, time.Millisecond))
		check(tw.MoveTimer("moved", time.Millisecond))
		close(begin)
		expect(task{key: "set", value: 1})
		time.Sleep(50 * time.Millisecond)
		if len(ran) != 0 {
			t.Fatal(<-ran, "has run")
		}
		advance()
		if a, b := <-ran, <-ran; (a != task{key: "set", value: 2} || b != task{key: "moved", value: 1}) &&
			(b != task{key: "set", value: 2} || a != task{key: "moved", value: 1}) {
			t.Fatal(a, b)
		}
	})
}

// After SetTimer for a task whose time has come, but whose event was not read yet, both tasks run.
func TestSetDue(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		o.Clock = timerwheel.Manual
		ran := make(chan task, 10)
		tw, err := newTimingWheel(o, time.Nanosecond, func(key, value any) { ran <- task{key: key, value: value} })
		if err != nil {
			t.Fatal(err)
		}
		defer tw.Stop()
		w := tw.timers.Wheel()
		tw.SetTimer("key", 1, time.Millisecond)
		// The wheel loses the timer, so its event cannot come first.
		if n, err := w.Drain(make([]timerwheel.Entry, 1), false); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		w.Advance(time.Second)
		tw.SetTimer("key", 2, time.Millisecond)
		if got := <-ran; got.value != 1 {
			t.Fatal(got)
		}
		w.Advance(time.Second)
		if got := <-ran; got.value != 2 || len(ran) != 0 {
			t.Fatal(got, len(ran))
		}
		// After Stop no task starts.
		tw.SetTimer("key", 3, time.Millisecond)
		tw.timers.Lock()
		it := tw.tasks.Get("key")
		tw.timers.Disarm(it)
		tw.timers.Unlock()
		tw.Stop()
		if _, starts := tw.start(it); starts {
			t.Fatal("it starts")
		}
	})
}

func TestDrain(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		ran := make(chan any, 1)
		tw, err := newTimingWheel(o, time.Millisecond, func(key, value any) { ran <- key })
		if err != nil {
			t.Fatal(err)
		}
		const count = 3000
		for i := 0; i < count; i++ {
			tw.SetTimer(i, -i, time.Hour)
		}
		var mu sync.Mutex
		seen := map[any]int{}
		var all sync.WaitGroup
		all.Add(count)
		err = tw.Drain(func(key, value any) {
			mu.Lock()
			seen[key]++
			mu.Unlock()
			if value != -key.(int) {
				t.Error(key, value)
			}
			// The wheel can be used, and the keys are free.
			if key.(int)%100 == 0 && tw.SetTimer(key, key, time.Hour) != nil {
				t.Error("set")
			}
			all.Done()
			if key == 7 {
				panic("only a test")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if len(seen) != count {
			t.Fatal(len(seen))
		}
		if tw.tasks.Len() != count/100 {
			t.Fatal(tw.tasks.Len(), "are left")
		}
		tw.MoveTimer(100, time.Millisecond)
		if key := <-ran; key != 100 {
			t.Fatal(key)
		}
		tw.Stop()
	})
}

func Example() {
	done := make(chan bool)
	tw, err := NewTimingWheel(10*time.Millisecond, 300, func(key, value any) {
		fmt.Println(key, value)
		done <- true
	})
	if err != nil {
		panic(err)
	}
	defer tw.Stop()
	tw.SetTimer("session", 7, time.Minute)
	tw.SetTimer("other", 8, time.Minute)
	tw.RemoveTimer("other")
	tw.MoveTimer("session", 20*time.Millisecond)
	<-done
	// Output: session 7
}
