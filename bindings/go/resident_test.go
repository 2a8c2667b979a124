// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"context"
	"math/rand"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func TestTable(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Clock: Manual, Table: true})
		table := w.Table()
		a := add(t, w, Add{Key: 1, Deadline: 100 * ms})[0]
		for at := int64(200); at < 2000; at += 100 {
			expect(t, table.Refresh(a.Handle, at*ms), Done)
			advance(t, w, at*ms-2*ms, 0)
		}
		expect(t, table.Refresh(a.Handle, 2500*ms), Done)
		if got := get(t, w, 1).Deadline; got < 2500*ms || got >= 2501*ms {
			t.Fatal(got)
		}
		expect(t, table.Refresh(a.Handle, 5*ms), NeedsCall)
		expect(t, table.Arm(a.Handle, -5), NeedsCall)
		advance(t, w, 2499*ms, 0)
		advance(t, w, 2502*ms, 1)
		expect(t, table.Refresh(a.Handle, TimeMax), TooLate)
		read(t, w, 1)
		// It has ended: nothing changes its entry any more.
		expect(t, table.Refresh(a.Handle, TimeMax), TooLate)
		expect(t, table.Cancel(a.Handle), TooLate)
		isErrno(t, move(t, w, Move{Key: 1, Deadline: 1}).Err(), syscall.ENOENT)
		// The next owner of the place has another generation.
		next := add(t, w, Add{Key: 2, Deadline: 100 * ms})[0]
		expect(t, next.Handle.index, a.Handle.index)
		expect(t, table.Refresh(a.Handle, TimeMax), Gone)
		expect(t, table.Refresh(next.Handle, TimeMax), Done)
		if get(t, w, 2).Deadline < TimeMax-ms {
			t.Fatal("it wrapped")
		}
		// One that was cancelled exists until it is removed.
		expect(t, table.Cancel(next.Handle), Done)
		expect(t, get(t, w, 2).Result, WasParked)
		expect(t, move(t, w, Move{Key: 2, Deadline: 100 * ms, Flags: Excl}), WasParked)
		expect(t, table.Cancel(next.Handle), Done)
		advance(t, w, 3000*ms, 0)
		expect(t, table.Arm(next.Handle, TimeMax), NeedsCall)
		expect(t, remove(t, w, Remove{Key: 2}), WasParked)
		expect(t, table.Arm(next.Handle, TimeMax), Gone)
		// a handle of no timer of this wheel
		expect(t, table.Refresh(Handle{}, 1), Gone)
		expect(t, table.Refresh(Handle{1 << 31, 8}, 1), Gone)
		// no periods
		periodic := []Add{{Key: 3, Period: time.Second}}
		w.Add(periodic)
		isErrno(t, periodic[0].Result.Err(), syscall.EINVAL)
		if open(t, b, Options{}).Table() != nil {
			t.Fatal("a table that was not asked for")
		}
	})
}

// Arm, refresh and cancel timers in each state.
func TestResident(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Clock: Manual, Resident: true})
		table := w.Table()
		h := add(t, w, Add{Key: 7, Value: 8, Deadline: 100 * ms})[0].Handle
		expect(t, table.Refresh(h, 50*ms), NeedsCall)
		expect(t, table.Arm(h, 50*ms), NeedsCall)
		expect(t, table.Refresh(h, 200*ms), Done)
		advance(t, w, 199*ms, 0)
		expect(t, table.Cancel(h), Done)
		expect(t, table.Cancel(h), NotArmed)
		expect(t, table.Refresh(h, 300*ms), NotArmed)
		expect(t, table.Arm(h, 190*ms), NeedsCall)
		expect(t, get(t, w, 7).Result, WasParked)
		expect(t, table.Arm(h, 300*ms), Done)
		expect(t, get(t, w, 7).Result, WasPending)
		advance(t, w, 299*ms, 0)
		advance(t, w, 302*ms, 1)
		expect(t, table.Cancel(h), TooLate)
		e := read(t, w, 1)[0]
		expect(t, e.Value, 8)
		expect(t, table.Cancel(h), TooLate)
		expect(t, table.Refresh(h, TimeMax), TooLate)
		expect(t, table.Arm(h, TimeMax), NeedsCall)
		expect(t, move(t, w, Move{Key: 7, Deadline: 100 * ms, Flags: Excl}), WasParked)
		isErrno(t, move(t, w, Move{Key: 7, Deadline: 100 * ms, Flags: Excl}).Err(), syscall.EEXIST)
		// Cancelled, and parked after its deadline has passed.
		expect(t, table.Cancel(h), Done)
		advance(t, w, 500*ms, 0)
		expect(t, table.Cancel(h), NotArmed)
		expect(t, table.Arm(h, TimeMax), NeedsCall)
		none(t, w)
		expect(t, remove(t, w, Remove{Key: 7}), WasParked)
		expect(t, table.Arm(h, TimeMax), Gone)
		expect(t, table.Cancel(h), Gone)
		balanced(t, w)
		// With a linger.
		h = add(t, w, Add{Key: 7, Deadline: 100 * ms, Period: 50 * time.Millisecond, Flags: Linger})[0].Handle
		advance(t, w, 700*ms, 1)
		read(t, w, 1)
		expect(t, get(t, w, 7).Flags, Linger)
		expect(t, table.Cancel(h), NotArmed)
		expect(t, table.Arm(h, 740*ms), NeedsCall)
		expect(t, table.Arm(h, 760*ms), Done)
		advance(t, w, 763*ms, 1)
		read(t, w, 1)
		advance(t, w, 900*ms, 0)
		expect(t, table.Arm(h, TimeMax), NeedsCall)
		adds := []Add{{Key: 9, Deadline: 1, Period: 1}}
		w.Add(adds)
		isErrno(t, adds[0].Result.Err(), syscall.EINVAL)
		expect(t, Gone.String(), "Gone")
	})
}

// failing is a back end whose calls on elements fail.
type failing struct{ back }

func (failing) batch(call, uint32, unsafe.Pointer, int) (int, syscall.Errno) {
	return 0, syscall.ENOMEM
}

func TestTimer(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		w := open(t, b, Options{Resident: true})
		timer, err := w.NewTimer(5, 6, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.NewTimer(5, 6, 0)
		isErrno(t, err, syscall.EEXIST)
		_, err = w.NewTimer(4, 6, -1)
		isErrno(t, err, syscall.EINVAL)
		expect(t, timer.Cancel(), false)
		for i := 0; i < 3; i++ {
			begin := time.Now()
			if err := timer.Arm(20 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			expect(t, read(t, w, 1)[0].Value, 6)
			if time.Since(begin) < 20*time.Millisecond {
				t.Fatal("early")
			}
			if ok, err := timer.Refresh(time.Hour); ok || err != nil {
				t.Fatal(ok, err)
			}
			expect(t, timer.Cancel(), false)
		}
		if err := timer.Arm(-1); err != nil {
			t.Fatal(err)
		}
		expect(t, read(t, w, 1)[0].Key, 5)
		if err := timer.Arm(time.Hour); err != nil {
			t.Fatal(err)
		}
		if ok, err := timer.Refresh(2 * time.Hour); !ok || err != nil {
			t.Fatal(ok, err)
		}
		works := w.back
		w.back = failing{works}
		ok, err := timer.Refresh(20 * time.Millisecond)
		expect(t, ok, false)
		isErrno(t, err, syscall.ENOMEM)
		w.back = works
		if ok, err := timer.Refresh(20 * time.Millisecond); !ok || err != nil {
			t.Fatal(ok, err)
		}
		expect(t, read(t, w, 1)[0].Key, 5)
		if err := timer.Arm(time.Hour); err != nil {
			t.Fatal(err)
		}
		expect(t, timer.Cancel(), true)
		expect(t, get(t, w, 5).Result, WasParked)
		if err := timer.Remove(); err != nil {
			t.Fatal(err)
		}
		isErrno(t, timer.Arm(time.Hour), syscall.ENOENT)
		isErrno(t, timer.Remove(), syscall.ENOENT)
		w.Close()
		if err := timer.Arm(time.Hour); err != ErrClosed {
			t.Fatal(err)
		}
		_, err = open(t, b, Options{Table: true}).NewTimer(1, 1, 0)
		isErrno(t, err, syscall.EINVAL)
	})
}

// Account for each timer: every arming ends in one event or one successful cancel.
type account struct {
	handle  Handle
	armed   int64
	ended   int64
	latest  int64 // deadline
	cancels int64
}

// One goroutine arms each timer, and all refresh and cancel it, while it fires.
func TestLedger(t *testing.T) {
	eachBackend(t, func(t *testing.T, b Backend) {
		for _, o := range []Options{{Resident: true, Tick: 20 * time.Microsecond},
			{Resident: true, Tick: 20 * time.Microsecond, Ring: 64}} {
			ledger(t, open(t, b, o))
		}
	})
}

func ledger(t *testing.T, w *Wheel) {
	const timers, workers = 255, 4
	table := w.Table()
	accounts := make([]account, timers)
	for i := range accounts {
		accounts[i].handle = add(t, w, Add{Key: uint64(i), Deadline: 1000 * ms})[0].Handle
		expect(t, table.Cancel(accounts[i].handle), Done)
	}
	ctx, stopReading := context.WithCancel(context.Background())
	var reader, all sync.WaitGroup
	reader.Add(1)
	go func() {
		defer reader.Done()
		events := make([]Event, 16)
		for {
			n, err := w.Read(ctx, events)
			if err != nil {
				return
			}
			for _, e := range events[:n] {
				atomic.AddInt64(&accounts[e.Key].ended, 1)
				if e.Fired < e.Deadline || e.Deadline > atomic.LoadInt64(&accounts[e.Key].latest)+ms {
					t.Errorf("%+v", e)
				}
			}
		}
	}()
	until := time.Now().Add(700 * time.Millisecond)
	for worker := 0; worker < workers; worker++ {
		all.Add(1)
		go func(worker int) {
			defer all.Done()
			rnd := rand.New(rand.NewSource(int64(worker)))
			cancel := func(a *account) bool {
				if table.Cancel(a.handle) != Done {
					return false
				}
				atomic.AddInt64(&a.ended, 1)
				atomic.AddInt64(&a.cancels, 1)
				return true
			}
			// It takes longer on a machine that pauses.
			for n := 0; n < 1000 || time.Now().Before(until); n++ {
				a := &accounts[rnd.Intn(timers)]
				deadline := w.Now() + rnd.Int63n(ms/10)
				// Set it before the store, because the event may come immediately.
				for {
					latest := atomic.LoadInt64(&a.latest)
					if deadline <= latest || atomic.CompareAndSwapInt64(&a.latest, latest, deadline) {
						break
					}
				}
				if rnd.Intn(20) == 0 {
					table.Refresh(a.handle, deadline)
					continue
				}
				// One of them makes no calls, so it never waits for the expiry of timers.
				if worker == 0 {
					cancel(a)
					continue
				}
				i := rnd.Intn(timers/(workers-1))*(workers-1) + worker - 1
				a = &accounts[i]
				if l := atomic.LoadInt64(&a.latest); l < deadline {
					atomic.CompareAndSwapInt64(&a.latest, l, deadline)
				}
				if rnd.Intn(8) == 0 && cancel(a) && table.Arm(a.handle, atomic.LoadInt64(&a.latest)) == Done {
					atomic.AddInt64(&a.armed, 1)
					continue
				}
				// Excl: it counts only if the timer was not armed.
				moves := []MoveHandle{{deadline, a.handle}}
				if n, err := w.MoveHandles(moves, Abs|Excl); n != 1 || err != nil {
					t.Error(n, err)
					return
				}
				if result := moves[0].Result(); result >= 0 {
					expect(t, result, WasParked)
					atomic.AddInt64(&a.armed, 1)
				}
			}
		}(worker)
	}
	all.Wait()
	var armed, cancels int64
	for i := range accounts {
		armed += accounts[i].armed
		cancels += accounts[i].cancels
	}
	ended := func() (n int64) {
		for i := range accounts {
			n += atomic.LoadInt64(&accounts[i].ended)
		}
		return n
	}
	// All armed timers fire, and the reader gets their events.
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := w.Stats()
		if err != nil || time.Now().After(end) {
			t.Fatal(err, s)
		}
		if s.Pending == 0 && s.Due == 0 && ended() >= armed {
			break
		}
	}
	time.Sleep(20 * time.Millisecond)
	stopReading()
	reader.Wait()
	for i := range accounts {
		a := &accounts[i]
		// The cancel at the beginning is not counted.
		if a.armed != a.ended {
			t.Errorf("timer %d: %d armings, %d ends (%d cancels)", i, a.armed, a.ended, a.cancels)
		}
	}
	if armed < 100 || cancels == 0 || cancels == armed {
		t.Errorf("nothing was tested: %d armings, %d cancels", armed, cancels)
	}
	balanced(t, w)
}
