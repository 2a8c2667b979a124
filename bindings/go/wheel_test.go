// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const (
	ms   = int64(time.Millisecond)
	tick = time.Millisecond
)

// eachBackend runs a test with each available back end. With TIMERWHEEL_BACKEND=device the device must
// be available.
func eachBackend(t *testing.T, test func(t *testing.T, b Backend)) {
	t.Run("process", func(t *testing.T) { test(t, Process) })
	t.Run("device", func(t *testing.T) {
		if os.Getenv("TIMERWHEEL_BACKEND") != "device" {
			if _, err := os.Stat("/dev/timerwheel"); err != nil {
				t.Skip("no device")
			}
		}
		test(t, Device)
	})
}

func open(t testing.TB, b Backend, o Options) *Wheel {
	t.Helper()
	o.Backend = b
	w, err := Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	if w.Backend() != b {
		t.Fatalf("back end %v, not %v", w.Backend(), b)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func add(t testing.TB, w *Wheel, adds ...Add) []Add {
	t.Helper()
	n, err := w.Add(adds)
	if n != len(adds) || err != nil {
		t.Fatalf("added %d of %d: %v", n, len(adds), err)
	}
	for _, a := range adds {
		if err := a.Result.Err(); err != nil {
			t.Fatalf("key %d: %v", a.Key, err)
		}
	}
	return adds
}

func move(t testing.TB, w *Wheel, m Move) Result {
	t.Helper()
	moves := []Move{m}
	if n, err := w.Move(moves); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	return moves[0].Result
}

func remove(t testing.TB, w *Wheel, r Remove) Result {
	t.Helper()
	removes := []Remove{r}
	if n, err := w.Remove(removes); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	return removes[0].Result
}

func get(t testing.TB, w *Wheel, key uint64) Entry {
	t.Helper()
	entries := []Entry{{Key: key}}
	if n, err := w.Get(entries); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	return entries[0]
}

// read reads n events, each within a minute.
func read(t testing.TB, w *Wheel, n int) []Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	events := make([]Event, n)
	for done := 0; done < n; {
		got, err := w.Read(ctx, events[done:])
		if err != nil {
			t.Fatalf("after %d events: %v", done, err)
		}
		done += got
	}
	for _, e := range events {
		if e.Fired < e.Deadline {
			t.Fatalf("key %d is %d ns early", e.Key, e.Deadline-e.Fired)
		}
	}
	return events
}

func none(t testing.TB, w *Wheel) {
	t.Helper()
	var events [4]Event
	if n, err := w.Take(events[:]); n != 0 || err != nil {
		t.Fatalf("%d events (%+v), %v", n, events[0], err)
	}
}

func expect[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, not %v", got, want)
	}
}

func isErrno(t testing.TB, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, not %v", err, want)
	}
}

func advance(t testing.TB, w *Wheel, to int64, expired int) {
	t.Helper()
	n, err := w.AdvanceTo(to)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, n, expired)
}

// balanced checks that each arming either has ended in exactly one way or still exists.
func balanced(t testing.TB, w *Wheel) {
	t.Helper()
	s, err := w.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Armed+s.Rearmed != s.Delivered+s.Removed+s.Replaced+s.Drained+s.Pending+s.Due+s.Parked {
		t.Fatalf("%+v", s)
	}
}

func TestOrder(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{})
		begin := time.Now()
		// Key 3 is removed in time, even if this goroutine pauses anywhere.
		add(t, w, Add{Key: 1, Value: 100, Deadline: 300 * ms}, Add{Key: 2, Value: 200, Deadline: 100 * ms},
			Add{Key: 3, Value: 300, Deadline: 3600e9})
		expect(t, remove(t, w, Remove{Key: 3}), WasPending)
		for _, want := range []Event{{Key: 2, Value: 200}, {Key: 1, Value: 100}} {
			e := read(t, w, 1)[0]
			expect(t, e.Key, want.Key)
			expect(t, e.Value, want.Value)
			if e.Deadline < begin.UnixNano() && time.Since(begin) < 100*time.Millisecond {
				t.Fatal("early")
			}
		}
		none(t, w)
		balanced(t, w)
	})
}

// At least the delay passes from before Add to after Read.
func TestNeverEarly(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, clock := range []Clock{Monotonic, Boottime, Realtime} {
			w := open(t, b, Options{Clock: clock})
			const count = 200
			var begin [count]time.Time
			var delay [count]int64
			adds := make([]Add, 1)
			for i := range delay {
				delay[i] = rand.Int63n(50*ms) + 1
				begin[i] = time.Now()
				adds[0] = Add{Key: uint64(i), Deadline: delay[i]}
				if i%2 == 1 {
					adds[0].Deadline += w.Now()
					adds[0].Flags = Abs
				}
				add(t, w, adds...)
			}
			var events [8]Event
			for left := count; left > 0; {
				n, err := w.Read(context.Background(), events[:])
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events[:n] {
					if took := int64(time.Since(begin[e.Key])); took < delay[e.Key] {
						t.Fatalf("clock %d: %d ns, not %d", clock, took, delay[e.Key])
					}
					if now := w.Now(); e.Fired > now || e.Fired < e.Deadline {
						t.Fatalf("fired %d, deadline %d, now %d", e.Fired, e.Deadline, now)
					}
				}
				left -= n
			}
			none(t, w)
		}
	})
}

// With a clock that the test advances, timers fire not early and at most a tick late.
func TestManual(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Clock: Manual})
		for i := int64(0); i < 100; i++ {
			add(t, w, Add{Key: uint64(i), Deadline: 10*ms + i*ms})
		}
		advance(t, w, 10*ms-1, 0)
		none(t, w)
		for i := int64(0); i < 100; i++ {
			if _, err := w.AdvanceTo(10*ms + i*ms + ms); err != nil {
				t.Fatal(err)
			}
			s, _ := w.Stats()
			if s.Due+s.Delivered < uint64(i+1) || s.Due+s.Delivered > uint64(i+2) {
				t.Fatalf("%d of %d", s.Due+s.Delivered, i)
			}
		}
		for i, e := range read(t, w, 100) {
			expect(t, e.Key, uint64(i))
			if e.Fired > e.Deadline+ms {
				t.Fatal("late")
			}
		}
		expect(t, w.Now(), 110*ms)
		if _, err := w.AdvanceTo(5); err == nil {
			t.Fatal("it went back")
		}
		_, err := w.Advance(-1)
		isErrno(t, err, syscall.EINVAL)
		if _, err := open(t, b, Options{}).Advance(1); err == nil {
			t.Fatal("CLOCK_MONOTONIC was advanced")
		}
	})
}

func TestPeriodic(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Clock: Manual, Tick: time.Microsecond})
		add(t, w, Add{Key: 1, Deadline: 10 * ms, Period: 3 * time.Millisecond})
		for at := 10 * ms; at < 40*ms; at += 3 * ms {
			advance(t, w, at+1000, 1)
			e := read(t, w, 1)[0]
			expect(t, e.Deadline, at)
			expect(t, e.Overruns, 0)
			expect(t, e.Flags, EventPeriodic)
		}
		advance(t, w, 100*ms, 1)
		e := read(t, w, 1)[0]
		expect(t, e.Deadline, 40*ms)
		expect(t, e.Overruns, 20)
		expect(t, get(t, w, 1).Deadline, 103*ms)
		balanced(t, w)
	})
}

// Times that have passed are due immediately, in each notation.
func TestPast(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{})
		for i, a := range []Add{{Deadline: 0}, {Deadline: -1}, {Deadline: -1 << 63}, {Deadline: 0, Flags: Abs},
			{Deadline: -5, Flags: Abs}, {Deadline: 1, Flags: Abs}} {
			a.Key = uint64(i)
			add(t, w, a)
			expect(t, get(t, w, a.Key).Result, WasDue)
			expect(t, read(t, w, 1)[0].Key, a.Key)
			add(t, w, Add{Key: a.Key, Deadline: 3600e9})
			expect(t, move(t, w, Move{Key: a.Key, Deadline: a.Deadline, Flags: a.Flags}), WasPending)
			expect(t, read(t, w, 1)[0].Key, a.Key)
			h := add(t, w, Add{Key: a.Key, Deadline: 3600e9})[0].Handle
			if n, err := w.MoveHandles([]MoveHandle{{a.Deadline, h}}, a.Flags); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			expect(t, read(t, w, 1)[0].Key, a.Key)
		}
		add(t, w, Add{Key: 1, Deadline: TimeMax}, Add{Key: 2, Deadline: TimeMax, Flags: Abs})
		expect(t, get(t, w, 1).Deadline, TimeMax)
		// A negative slack means none.
		add(t, w, Add{Key: 3, Deadline: 3600e9, Slack: -1, Flags: Slack})
		expect(t, get(t, w, 3).Slack, 0)
		none(t, w)
	})
}

func TestResults(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Capacity: 8, Slack: 2500 * time.Microsecond})
		const far = int64(3600e9)
		add(t, w, Add{Key: 1, Value: 5, Deadline: far})
		for i, test := range []struct {
			add  Add
			want error
		}{
			{Add{Key: 1, Deadline: far, Flags: Excl}, syscall.EEXIST},
			{Add{Key: 1, Deadline: far, Flags: Excl}, fs.ErrExist},
			{Add{Key: 1, Deadline: far, Flags: Match, Match: 4}, syscall.ESTALE},
			{Add{Key: 9, Deadline: far, Flags: Match, Match: 4}, syscall.ENOENT},
			{Add{Key: 9, Deadline: far, Flags: Match, Match: 4}, fs.ErrNotExist},
			{Add{Key: 9, Deadline: far, Flags: Excl | Match}, syscall.EINVAL},
			{Add{Key: 9, Deadline: far, Match: 1}, syscall.EINVAL},
			{Add{Key: 9, Deadline: far, Slack: 1}, syscall.EINVAL},
			{Add{Key: 9, Deadline: far, Period: -1}, syscall.EINVAL},
			{Add{Key: 9, Deadline: far, Period: 1, Flags: Linger}, syscall.EINVAL},
			{Add{Key: 9, Deadline: far, Flags: 1 << 9}, syscall.EINVAL},
		} {
			adds := []Add{test.add, {Key: 1, Value: 5, Deadline: far}}
			if n, err := w.Add(adds); n != 2 || err != nil {
				t.Fatal(n, err)
			}
			if err := adds[0].Result.Err(); !errors.Is(err, test.want) {
				t.Fatalf("%d: %v, not %v", i, err, test.want)
			}
			expect(t, adds[1].Result, WasPending)
		}
		isErrno(t, move(t, w, Move{Key: 9}).Err(), syscall.ENOENT)
		isErrno(t, move(t, w, Move{Key: 1, Flags: Match, Match: 1}).Err(), syscall.ESTALE)
		isErrno(t, move(t, w, Move{Key: 1, Flags: Excl}).Err(), syscall.EINVAL)
		isErrno(t, remove(t, w, Remove{Key: 9}).Err(), syscall.ENOENT)
		isErrno(t, remove(t, w, Remove{Key: 1, Flags: Abs}).Err(), syscall.EINVAL)
		isErrno(t, get(t, w, 9).Result.Err(), syscall.ENOENT)
		e := get(t, w, 1)
		expect(t, e.Value, 5)
		expect(t, e.Slack, 2*tick)
		if e.Left <= 0 || e.Left > time.Hour {
			t.Fatal(e.Left)
		}
		_, err := w.MoveHandles([]MoveHandle{{0, e.Handle}}, Match)
		isErrno(t, err, syscall.EINVAL)
		handles := []MoveHandle{{far, e.Handle}, {far, Handle{e.Handle.index, e.Handle.generation + 4}}}
		if n, err := w.MoveHandles(handles, 0); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		expect(t, handles[0].Result(), WasPending)
		isErrno(t, handles[1].Result().Err(), syscall.ENOENT)
		gone := []RemoveHandle{{0, e.Handle}, {0, e.Handle}}
		if n, err := w.RemoveHandles(gone); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		expect(t, gone[0].Value, 5)
		isErrno(t, gone[1].Result().Err(), syscall.ENOENT)
		full := make([]Add, 9)
		for i := range full {
			full[i] = Add{Key: uint64(i), Deadline: far}
		}
		if n, err := w.Add(full); n != 9 || err != nil {
			t.Fatal(n, err)
		}
		isErrno(t, full[8].Result.Err(), syscall.ENOSPC)
		if n, err := w.Drain(nil, true); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		adds := []Add{{Key: 1, Deadline: 1}}
		if n, err := w.Add(adds); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		isErrno(t, adds[0].Result.Err(), syscall.ESHUTDOWN)
		if text := adds[0].Result.Err().Error(); text != "timerwheel: timer: the wheel accepts no new timers" {
			t.Fatal(text)
		}
		balanced(t, w)
	})
}

func TestOptions(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for i, o := range []Options{{Clock: 4}, {Capacity: -1}, {Tick: -1}, {Tick: 1}, {Tick: 2 * time.Hour},
			{Slots: 1}, {Slots: 1 << 40}, {WakeEvents: 2}, {WakeEvents: -1}, {WakeAfter: -1}, {Slack: -1},
			{Ring: -1}, {Ring: 1 << 20}, {Capacity: 1 << 40}, {ClockSet: true}, {Alarm: true}} {
			o.Backend = b
			if w, err := Open(&o); !errors.Is(err, syscall.EINVAL) {
				t.Fatalf("%d: %v, %v", i, w, err)
			}
		}
		w := open(t, b, Options{Clock: Realtime, Capacity: 1000, Tick: 2 * time.Millisecond, Slack: 7})
		info, err := w.Info()
		if err != nil {
			t.Fatal(err)
		}
		expect(t, info.Clock, Realtime)
		expect(t, info.Tick, 2000000)
		expect(t, info.Slack, 7)
		if info.Capacity < 1000 || int64(info.Now) > w.Now() {
			t.Fatalf("%+v", info)
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TIMERWHEEL_DEVICE", "/dev/there-is-none")
	for value, want := range map[string]error{"": nil, "auto": nil, "process": nil, "device": syscall.ENOENT,
		"nonsense": syscall.EINVAL} {
		t.Setenv("TIMERWHEEL_BACKEND", value)
		w, err := Open(nil)
		if want != nil {
			if !errors.Is(err, want) {
				t.Fatalf("%q: %v", value, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		expect(t, w.Backend(), Process)
		w.Close()
	}
	t.Setenv("TIMERWHEEL_BACKEND", "auto")
	t.Setenv("TIMERWHEEL_DEVICE", "/dev/null")
	if _, err := Open(nil); !errors.Is(err, syscall.ENOTTY) {
		t.Fatal("/dev/null:", err)
	}
	_, err := Open(&Options{Backend: 7})
	isErrno(t, err, syscall.EINVAL)
}

// signals repeatedly sends the signal by which the runtime preempts goroutines.
func signals() (stop func()) {
	done := make(chan struct{})
	var end sync.WaitGroup
	end.Add(1)
	go func() {
		defer end.Done()
		for {
			select {
			case <-done:
				return
			default:
				syscall.Kill(syscall.Getpid(), syscall.SIGURG)
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	return func() { close(done); end.Wait() }
}

// Signals end calls early, but the counts are exact.
func TestSignals(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		defer signals()()
		w := open(t, b, Options{})
		const count = 70000
		adds := make([]Add, count)
		for i := range adds {
			adds[i] = Add{Key: uint64(i), Value: uint64(i) + 1, Deadline: 3600e9, Result: -1}
		}
		add(t, w, adds...)
		s, _ := w.Stats()
		expect(t, s.Armed, count)
		moves := make([]MoveHandle, count)
		for i := range moves {
			moves[i] = MoveHandle{7200e9, adds[i].Handle}
		}
		if n, err := w.MoveHandles(moves, 0); n != count || err != nil {
			t.Fatal(n, err)
		}
		seen := make([]int, count)
		entries := make([]Entry, 66000)
		var cursor Cursor
		for {
			n, err := w.List(entries, &cursor)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			for _, e := range entries[:n] {
				expect(t, e.Value, e.Key+1)
				seen[e.Key]++
			}
		}
		removes := make([]Remove, count/2)
		for i := range removes {
			removes[i] = Remove{Key: uint64(i), Result: -1}
		}
		if n, err := w.Remove(removes); n != len(removes) || err != nil {
			t.Fatal(n, err)
		}
		for i := range removes {
			expect(t, removes[i].Result, WasPending)
			expect(t, removes[i].Value, uint64(i)+1)
		}
		for {
			n, err := w.Drain(entries, false)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			for _, e := range entries[:n] {
				seen[e.Key]++
			}
		}
		for i := range seen {
			if want := 1 + i/(count/2); seen[i] != want {
				t.Fatalf("key %d was seen %d times", i, seen[i])
			}
		}
		balanced(t, w)
	})
}

// deep makes the stack grow and therefore move.
func deep(n int) int {
	var room [256]byte
	room[n%256] = 1
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(room[n%256])
}

// The kernel writes to arrays in local variables, even if the stack has moved.
func TestStack(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{})
		var all sync.WaitGroup
		for g := 0; g < 8; g++ {
			all.Add(1)
			go func(g uint64) {
				defer all.Done()
				for i := uint64(0); i < 200; i++ {
					var adds [3]Add
					for j := range adds {
						adds[j] = Add{Key: g<<32 | i<<8 | uint64(j), Value: i, Deadline: 3600e9, Result: -99}
					}
					done := make(chan int)
					go func() { done <- deep(int(i) * 4) }()
					n, err := w.Add(adds[:])
					deep(int(i))
					var entries [3]Entry
					for j := range entries {
						entries[j].Key = adds[j].Key
					}
					m, err2 := w.Get(entries[:])
					<-done
					for j := range adds {
						if n != 3 || m != 3 || err != nil || err2 != nil || adds[j].Result != WasNone ||
							entries[j].Value != i || entries[j].Handle != adds[j].Handle {
							t.Errorf("%d %v, %d %v, %+v, %+v", n, err, m, err2, adds[j], entries[j])
							return
						}
					}
				}
			}(uint64(g))
		}
		for i := 0; i < 20; i++ {
			runtime.GC()
		}
		all.Wait()
	})
}

func TestReadContext(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, ring := range []int{0, 16} {
			w := open(t, b, Options{Ring: ring})
			var events [4]Event
			ctx, cancel := context.WithCancel(context.Background())
			var readers sync.WaitGroup
			for i := 0; i < 3; i++ {
				readers.Add(1)
				go func() {
					defer readers.Done()
					var events [4]Event
					if n, err := w.Read(ctx, events[:]); n != 0 || err != context.Canceled {
						t.Errorf("%d %v", n, err)
					}
				}()
			}
			time.Sleep(20 * time.Millisecond)
			cancel()
			readers.Wait()
			if n, err := w.Read(ctx, events[:]); n != 0 || err != context.Canceled {
				t.Fatal(n, err)
			}
			for i := 0; i < 3; i++ {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				if n, err := w.Read(ctx, events[:]); n != 0 || err != context.DeadlineExceeded {
					t.Fatal(n, err)
				}
				if time.Since(begin) < 10*time.Millisecond {
					t.Fatal("early")
				}
				cancel()
			}
			// A context that is done later has no effect on later reads.
			add(t, w, Add{Key: 1, Deadline: 5 * ms})
			expect(t, read(t, w, 1)[0].Key, 1)
			add(t, w, Add{Key: 2, Deadline: 5 * ms})
			if n, err := w.Read(context.Background(), events[:]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if n, err := w.Read(ctx, nil); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
	})
}

func TestClose(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, o := range []Options{{}, {Ring: 16}, {Resident: true}, {Resident: true, Ring: 16}} {
			w := open(t, b, o)
			h := add(t, w, Add{Key: 1, Deadline: 3600e9})[0].Handle
			var readers sync.WaitGroup
			for i := 0; i < 3; i++ {
				readers.Add(1)
				go func(i int) {
					defer readers.Done()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if i == 0 {
						ctx = context.Background()
					}
					var events [4]Event
					if n, err := w.Read(ctx, events[:]); n != 0 || err != ErrClosed {
						t.Errorf("%d %v", n, err)
					}
				}(i)
			}
			// Other goroutines use it at the same time.
			stop := int32(0)
			for i := 0; i < 2; i++ {
				readers.Add(1)
				go func() {
					defer readers.Done()
					for atomic.LoadInt32(&stop) == 0 {
						if n, err := w.Move([]Move{{Key: 1, Deadline: 3600e9}}); n != 1 && err != ErrClosed {
							t.Errorf("%d %v", n, err)
							return
						}
						if w.Table() != nil {
							w.Table().Arm(h, TimeMax)
							w.Table().Cancel(h)
						}
					}
				}()
			}
			time.Sleep(20 * time.Millisecond)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			atomic.StoreInt32(&stop, 1)
			readers.Wait()
			if err := w.Close(); err != ErrClosed {
				t.Fatal(err)
			}
			var events [4]Event
			var cursor Cursor
			entries := make([]Entry, 4)
			for i, call := range []func() error{
				func() error { _, err := w.Add([]Add{{}}); return err },
				func() error { _, err := w.Remove([]Remove{{}}); return err },
				func() error { _, err := w.List(entries, &cursor); return err },
				func() error { _, err := w.Drain(entries, false); return err },
				func() error { _, err := w.Info(); return err },
				func() error { _, err := w.Stats(); return err },
				func() error { _, err := w.Take(events[:]); return err },
				func() error { _, err := w.Read(context.Background(), events[:]); return err },
			} {
				if err := call(); err != ErrClosed {
					t.Fatalf("%d: %v", i, err)
				}
			}
			if w.Table() != nil {
				expect(t, w.Table().Arm(h, TimeMax), Gone)
				expect(t, w.Table().Cancel(h), Gone)
			}
		}
	})
}

// With several readers and several writers, each event arrives exactly once.
func TestManyReaders(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, ring := range []int{0, 64} {
			w := open(t, b, Options{Ring: ring})
			const count, readers = 20000, 4
			seen := make([]int32, count)
			left := int32(count)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			var all sync.WaitGroup
			for i := 0; i < readers; i++ {
				all.Add(1)
				go func(i int) {
					defer all.Done()
					events := make([]Event, 1+i*20)
					for {
						n, err := w.Read(ctx, events)
						if err != nil {
							return
						}
						for _, e := range events[:n] {
							atomic.AddInt32(&seen[e.Key], 1)
						}
						if atomic.AddInt32(&left, -int32(n)) <= 0 {
							cancel()
						}
					}
				}(i)
			}
			for i := 0; i < count; i += 100 {
				adds := make([]Add, 100)
				for j := range adds {
					adds[j] = Add{Key: uint64(i + j), Deadline: int64(j%20) * ms}
				}
				add(t, w, adds...)
			}
			all.Wait()
			cancel()
			for i, n := range seen {
				if n != 1 {
					t.Fatalf("ring %d: key %d came %d times", ring, i, n)
				}
			}
			balanced(t, w)
		}
	})
}

// Other goroutines wake a waiting reader: by a timer that is due immediately, by an earlier timer, and by
// a clock that the test advances.
func TestWake(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, o := range []Options{{}, {Ring: 16}, {Clock: Manual}, {Resident: true}, {Clock: Realtime}} {
			w := open(t, b, o)
			add(t, w, Add{Key: 1, Deadline: 3600e9})
			for i := 0; i < 20; i++ {
				got := make(chan uint64)
				go func() {
					var events [1]Event
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if _, err := w.Read(ctx, events[:]); err != nil {
						t.Error(err)
					}
					got <- events[0].Key
				}()
				time.Sleep(time.Duration(i%4) * time.Millisecond)
				switch {
				case o.Clock == Manual:
					add(t, w, Add{Key: 2, Deadline: ms})
					if _, err := w.Advance(2 * tick); err != nil {
						t.Fatal(err)
					}
				case i%2 == 0:
					add(t, w, Add{Key: 2})
				default:
					add(t, w, Add{Key: 2, Deadline: ms})
				}
				expect(t, <-got, 2)
			}
		}
	})
}

// The reading of the clock may lag by more than the time that waking a reader takes. The reader then
// finds nothing due, and must be woken again or later.
func TestWakeBehindClock(t *testing.T) {
	w := open(t, Process, Options{})
	w.back.(*process).clock.behind -= 20 * ms
	add(t, w, Add{Key: 1, Deadline: 30 * ms})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var events [1]Event
	if _, err := w.Read(ctx, events[:]); err != nil {
		t.Fatal(err)
	}
}

// A ring that is much too small loses no event.
func TestRing(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Ring: 8, Clock: Manual})
		for round := int64(0); round < 20; round++ {
			for i := int64(0); i < 100; i++ {
				add(t, w, Add{Key: uint64(i), Value: uint64(round), Deadline: i * ms})
			}
			now := w.Now()
			if _, err := w.AdvanceTo(now + 200*ms); err != nil {
				t.Fatal(err)
			}
			for i, e := range read(t, w, 100) {
				expect(t, e.Key, uint64(i))
				expect(t, e.Value, uint64(round))
			}
			none(t, w)
		}
		balanced(t, w)
	})
}

func TestMonitor(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{})
		m, err := w.Monitor(0)
		if b == Process {
			isErrno(t, err, syscall.EOPNOTSUPP)
			_, err = w.File()
			isErrno(t, err, syscall.EOPNOTSUPP)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		add(t, w, Add{Key: 5, Value: 6, Deadline: ms})
		e := read(t, w, 1)[0]
		var copies [4]Event
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if n, err := m.Read(ctx, copies[:]); n != 1 || err != nil || copies[0] != e {
			t.Fatal(n, err, copies[0])
		}
		add(t, w, Add{Key: 5, Value: 6, Deadline: ms})
		read(t, w, 1)
		w.Close()
		if n, err := m.Read(ctx, copies[:]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := m.Read(ctx, copies[:]); n != 0 || err != io.EOF {
			t.Fatal(n, err)
		}
		if m.Close() != nil || m.Close() != ErrClosed {
			t.Fatal("close")
		}
	})
}

// If another owner makes the descriptor blocking, as os/exec does, reads work as before.
func TestShared(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		if b == Process {
			t.Skip("cannot be shared")
		}
		w := open(t, b, Options{Resident: true})
		h := add(t, w, Add{Key: 1, Value: 2, Deadline: 3600e9})[0].Handle
		f, err := w.File()
		if err != nil {
			t.Fatal(err)
		}
		f.Fd()
		none(t, w)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		var events [1]Event
		if n, err := w.Read(ctx, events[:]); n != 0 || err != context.DeadlineExceeded {
			t.Fatal(n, err)
		}
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		other, err := Adopt(fd, true)
		if err != nil {
			t.Fatal(err)
		}
		e := get(t, other, 1)
		expect(t, e.Value, 2)
		expect(t, e.Handle, h)
		expect(t, other.Table().Cancel(h), Done)
		expect(t, w.Table().Cancel(h), NotArmed)
		w.Close()
		expect(t, get(t, other, 1).Result, WasParked)
		expect(t, move(t, other, Move{Key: 1}), WasParked)
		expect(t, read(t, other, 1)[0].Key, 1)
		other.Close()
		null, err := syscall.Open("/dev/null", syscall.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Adopt(null, false)
		isErrno(t, err, syscall.ENOTTY)
		_, err = Adopt(-1, false)
		isErrno(t, err, syscall.EBADF)
	})
}

// Refuse settings of a later version, and settings that would lead outside of mapped memory.
func TestUnknown(t *testing.T) {
	size := uint32(unsafe.Sizeof(Event{}))
	for i, c := range []struct {
		info    Info
		unknown bool
	}{
		{Info{Clock: Monotonic, EventSize: size}, false},
		{Info{Clock: Manual, EventSize: size}, false},
		{Info{Clock: Manual + 1, EventSize: size}, true},
		{Info{Clock: 1<<32 - 1, EventSize: size, Ring: 8}, true},
		{Info{EventSize: size + 8}, true},
		{Info{EventSize: size + 8, Ring: 8}, false},
		{Info{EventSize: size - 8, Ring: 8}, true},
		{Info{EventSize: 0, Ring: 8}, true},
		{Info{EventSize: size + 4, Ring: 8}, true},
		{Info{EventSize: size, Ring: 65536}, false},
		{Info{EventSize: size, Ring: 7}, true},
		{Info{EventSize: size, Ring: 1<<32 - 1}, true},
	} {
		c.info.GenerationBits = 20
		if c.info.unknown(true) != c.unknown || c.info.unknown(false) != c.unknown {
			t.Error(i, c.info)
		}
	}
	for bits, unknown := range map[uint32]bool{0: true, 2: true, 3: false, 20: false, 32: false, 33: true, 64: true} {
		info := Info{EventSize: size, GenerationBits: bits}
		expect(t, info.unknown(true), unknown)
		expect(t, info.unknown(false), false)
	}
}

// Adopt refuses descriptors of other files before it makes a call on them.
func TestIsDevice(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	expect(t, isDevice(ends[0]), syscall.ENOTTY)
	expect(t, isDevice(-1), syscall.EBADF)
	for _, path := range []string{"/proc/self/maps", "/", "/dev/null"} {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/sys/dev/char/1:3/subsystem"); path != "/dev/null" || err == nil {
			expect(t, isDevice(fd), syscall.ENOTTY)
		}
		_, err = Adopt(fd, false)
		isErrno(t, err, syscall.ENOTTY)
	}
}

// No handle refers to memory outside of the table, even if a call has returned a wrong index.
func TestIndexOutside(t *testing.T) {
	table, errno := newTable(0, true, 100, 20)
	if errno != 0 {
		t.Fatal(errno)
	}
	table.learn(100)
	table.learn(1<<32 - 1)
	expect(t, table.exists(Handle{100, 1}), true)
	expect(t, table.exists(Handle{1 << 30, 1}), false)
	expect(t, table.Refresh(Handle{1 << 30, 1}, 1), Gone)
}

// mapped returns the number of mappings of a file in this process.
func mapped(t *testing.T, name string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), name+"\n")
}

// unmapped waits until the collector has reduced the mappings of a file to this number.
func unmapped(t *testing.T, name string, most int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); mapped(t, name) > most; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is still mapped")
		}
		runtime.GC()
	}
}

// A ring without references is unmapped exactly once. The test uses a ring in a file.
func TestDroppedRing(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "ring"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(mmapRing + 1<<16); err != nil {
		t.Skip(err)
	}
	size := uint32(unsafe.Sizeof(Event{}))
	mapRing := func() *ring {
		r, errno := newRing(f.Fd(), 8, size)
		expect(t, errno, 0)
		expect(t, mapped(t, f.Name()), 1)
		return r
	}
	mapRing().close()
	// It may be at the same address, and must not be unmapped a second time.
	r := mapRing()
	for i := 0; i < 5; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	expect(t, mapped(t, f.Name()), 1)
	var events [1]Event
	expect(t, r.take(events[:]), 0)
	r = nil
	unmapped(t, f.Name(), 0)
}

// A wheel without references that was not closed releases the device.
func TestDroppedWheel(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		if b == Process {
			t.Skip("it maps no file")
		}
		const name = "/dev/timerwheel"
		before := mapped(t, name)
		w, err := Open(&Options{Backend: b, Path: name, Ring: 16, Table: true})
		if err != nil {
			t.Fatal(err)
		}
		add(t, w, Add{Key: 1})
		read(t, w, 1)
		if n := mapped(t, name); n < 2 {
			t.Fatal(n)
		}
		w = nil
		unmapped(t, name, before)
	})
}

func TestQueue(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Clock: Manual})
		var failures []error
		q := w.NewQueue(10, func(key uint64, err error) {
			expect(t, key, 99)
			failures = append(failures, err)
		})
		if q.Remove(Remove{Key: 99}) != nil || q.Move(Move{Key: 99}) != nil || q.Flush() != nil {
			t.Fatal("flush")
		}
		expect(t, len(failures), 2)
		isErrno(t, failures[0], syscall.ENOENT)
		// Only the last operation on a key counts.
		model := map[uint64]int64{}
		for i := 0; i < 3000; i++ {
			key, deadline := uint64(rand.Intn(20)), rand.Int63n(1000)*ms
			_, there := model[key]
			var err error
			switch {
			case !there || rand.Intn(3) == 0:
				err = q.Add(Add{Key: key, Deadline: deadline, Flags: Abs})
				model[key] = deadline
			case rand.Intn(2) == 0:
				err = q.Move(Move{Key: key, Deadline: deadline, Flags: Abs})
				model[key] = deadline
			default:
				err = q.Remove(Remove{Key: key})
				delete(model, key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Flush(); err != nil {
			t.Fatal(err)
		}
		expect(t, len(failures), 2)
		for key := uint64(0); key < 20; key++ {
			e := get(t, w, key)
			deadline, there := model[key]
			if there != (e.Result >= 0) || (there && e.Deadline != deadline) {
				t.Fatalf("%d: %+v, not %d", key, e, deadline)
			}
		}
		w.Close()
		if q.Add(Add{Key: 1}) != nil || q.Flush() != ErrClosed || q.Flush() != ErrClosed {
			t.Fatal("flush after close")
		}
	})
}
