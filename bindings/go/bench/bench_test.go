// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package bench compares the timeouts of this module with Go's own timers and deadlines.
//
// BENCH_PENDING sets the number of pending timers (100,000), BENCH_CONNS the number of connections
// (100,000).
package bench

import (
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"timerwheel"
	"timerwheel/conndeadline"
	"timerwheel/timingwheel"
	"timerwheel/ttlcache"
)

const (
	timeout = 30 * time.Second
	batch   = 256
)

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

var (
	pending = number("BENCH_PENDING", 100000)
	conns   = number("BENCH_CONNS", 100000)
)

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// fill opens a wheel with pending timers.
func fill(b *testing.B, o timerwheel.Options) (*timerwheel.Wheel, []timerwheel.Add) {
	o.Capacity = pending + 2*batch
	w, err := timerwheel.Open(&o)
	must(b, err)
	b.Cleanup(func() { w.Close() })
	adds := make([]timerwheel.Add, pending)
	for i := range adds {
		adds[i] = timerwheel.Add{Key: uint64(i), Deadline: int64(time.Hour) + int64(i)*1000000}
	}
	_, err = w.Add(adds)
	must(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	return w, adds
}

// ---- this module ----

// Add, then remove, 256 timers in a call.
func BenchmarkAddRemove(b *testing.B) {
	w, _ := fill(b, timerwheel.Options{})
	adds, removes := make([]timerwheel.Add, batch), make([]timerwheel.Remove, batch)
	for i := 0; i < b.N; i += batch {
		for j := range adds {
			adds[j] = timerwheel.Add{Key: uint64(pending + j), Deadline: int64(timeout)}
			removes[j].Key = adds[j].Key
		}
		w.Add(adds)
		w.Remove(removes)
	}
}

// Move to a later time, 256 timers in a call.
func BenchmarkMove(b *testing.B) {
	w, adds := fill(b, timerwheel.Options{})
	moves := make([]timerwheel.MoveHandle, batch)
	for i := 0; i < b.N; i += batch {
		for j := range moves {
			moves[j] = timerwheel.MoveHandle{Deadline: 2 * int64(time.Hour), Handle: adds[(i+j)%pending].Handle}
		}
		w.MoveHandles(moves, 0)
	}
}

// Move a single timer.
func BenchmarkMoveOne(b *testing.B) {
	w, _ := fill(b, timerwheel.Options{})
	moves := make([]timerwheel.Move, 1)
	for i := 0; i < b.N; i++ {
		moves[0] = timerwheel.Move{Key: uint64(i % pending), Deadline: 2 * int64(time.Hour)}
		w.Move(moves)
	}
}

// Postpone in memory; the clock is read each time
func BenchmarkRefresh(b *testing.B) {
	w, adds := fill(b, timerwheel.Options{Table: true})
	table := w.Table()
	for i := 0; i < b.N; i++ {
		table.Refresh(adds[i%pending].Handle, w.Now()+2*int64(time.Hour))
	}
}

// Arm and cancel a resident timer, and read the clock each time.
func BenchmarkResidentArmCancel(b *testing.B) {
	w, adds := fill(b, timerwheel.Options{Resident: true})
	table := w.Table()
	for i := 0; i < b.N; i++ {
		h := adds[i%pending].Handle
		table.Arm(h, w.Now()+2*int64(time.Hour))
		table.Cancel(h)
	}
}

// Expire and deliver.
func BenchmarkExpire(b *testing.B) {
	o := timerwheel.Options{Capacity: b.N + 1, Clock: timerwheel.Manual}
	w, err := timerwheel.Open(&o)
	must(b, err)
	defer w.Close()
	adds := make([]timerwheel.Add, b.N)
	for i := range adds {
		adds[i] = timerwheel.Add{Key: uint64(i), Deadline: int64(i%1000) * 1000000}
	}
	_, err = w.Add(adds)
	must(b, err)
	events := make([]timerwheel.Event, batch)
	b.ResetTimer()
	_, err = w.Advance(time.Hour)
	must(b, err)
	for n, left := 1, b.N; left > 0 && n > 0; left -= n {
		n, _ = w.Take(events)
	}
}

func BenchmarkTimingWheelSetRemove(b *testing.B) {
	tw, err := timingwheel.NewTimingWheel(time.Millisecond, 300, func(any, any) {})
	must(b, err)
	wheelSetRemove(b, tw)
}

func BenchmarkTimingWheelMove(b *testing.B) {
	tw, err := timingwheel.NewTimingWheel(time.Millisecond, 300, func(any, any) {})
	must(b, err)
	wheelMove(b, tw)
}

func BenchmarkCacheTouch(b *testing.B) {
	c, err := ttlcache.New[int, int](nil, nil)
	must(b, err)
	defer c.Close()
	for i := 0; i < pending; i++ {
		must(b, c.Set(i, i, time.Hour))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		c.Touch(i % pending)
	}
}

// ---- Go's timers ----

func BenchmarkTimeTimerReset(b *testing.B) {
	timers := make([]*time.Timer, pending)
	for i := range timers {
		timers[i] = time.NewTimer(time.Hour + time.Duration(i)*time.Millisecond)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		timers[i%pending].Reset(2 * time.Hour)
	}
	b.StopTimer()
	for _, t := range timers {
		t.Stop()
	}
}

// Arm and stop each timer, as for a request that is answered.
func BenchmarkTimeTimerResetStop(b *testing.B) {
	timers := make([]*time.Timer, pending)
	for i := range timers {
		timers[i] = time.NewTimer(time.Hour + time.Duration(i)*time.Millisecond)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		timers[i%pending].Reset(2 * time.Hour)
		timers[i%pending].Stop()
	}
}

func BenchmarkTimeAfterFuncStop(b *testing.B) {
	timers := make([]*time.Timer, pending)
	for i := range timers {
		timers[i] = time.AfterFunc(time.Hour+time.Duration(i)*time.Millisecond, func() {})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		time.AfterFunc(timeout, func() {}).Stop()
	}
	b.StopTimer()
	for _, t := range timers {
		t.Stop()
	}
}

// ---- wheels in Go ----

type wheel interface {
	SetTimer(key, value any, delay time.Duration) error
	MoveTimer(key any, delay time.Duration) error
	RemoveTimer(key any) error
	Stop()
}

func wheelSetRemove(b *testing.B, w wheel) {
	defer w.Stop()
	for i := 0; i < pending; i++ {
		must(b, w.SetTimer(i, i, time.Hour))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		w.SetTimer(pending+i, i, timeout)
		w.RemoveTimer(pending + i)
	}
}

func wheelMove(b *testing.B, w wheel) {
	defer w.Stop()
	for i := 0; i < pending; i++ {
		must(b, w.SetTimer(i, i, time.Hour))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		w.MoveTimer(i%pending, 2*time.Hour)
	}
}

func (w *slotWheel) SetTimer(key, value any, delay time.Duration) error {
	w.set <- slotTask{key.(int), value, delay}
	return nil
}

func (w *slotWheel) MoveTimer(key any, delay time.Duration) error { return w.SetTimer(key, key, delay) }

func (w *slotWheel) RemoveTimer(key any) error { w.remove <- key.(int); return nil }

func (w *slotWheel) Stop() { close(w.stop) }

func BenchmarkSlotWheelSetRemove(b *testing.B) {
	wheelSetRemove(b, newSlotWheel(time.Second, 300, func(int, any) {}))
}

func BenchmarkSlotWheelMove(b *testing.B) {
	wheelMove(b, newSlotWheel(time.Second, 300, func(int, any) {}))
}

// ---- deadlines of connections ----

// sockets opens pairs of connections and returns both ends of each.
func sockets(b *testing.B) []net.Conn {
	limit := &syscall.Rlimit{Cur: uint64(conns) + 1000, Max: uint64(conns) + 1000}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, limit) != nil {
		b.Skip("too few descriptors")
	}
	all := make([]net.Conn, 0, conns)
	b.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
	})
	for len(all) < conns {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		must(b, err)
		for _, fd := range pair {
			f := os.NewFile(uintptr(fd), "socket")
			c, err := net.FileConn(f)
			f.Close()
			must(b, err)
			all = append(all, c)
		}
	}
	return all
}

// setDeadlines sets read deadlines, as servers do for each request.
func setDeadlines(b *testing.B, all []net.Conn) {
	for _, c := range all {
		must(b, c.SetReadDeadline(time.Now().Add(time.Hour)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		all[i%len(all)].SetReadDeadline(time.Now().Add(time.Hour))
	}
	b.StopTimer()
}

// clearDeadlines sets and clears read deadlines, as clients do for each request.
func clearDeadlines(b *testing.B, all []net.Conn) {
	for _, c := range all {
		must(b, c.SetReadDeadline(time.Now().Add(time.Hour)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		all[i%len(all)].SetReadDeadline(time.Now().Add(time.Hour))
		all[i%len(all)].SetReadDeadline(time.Time{})
	}
	b.StopTimer()
}

func wrapped(b *testing.B, all []net.Conn) []net.Conn {
	d, err := conndeadline.New(nil)
	must(b, err)
	b.Cleanup(func() { d.Close() })
	for i := range all {
		all[i], err = d.Wrap(all[i])
		must(b, err)
	}
	return all
}

func BenchmarkNetSetDeadline(b *testing.B)   { setDeadlines(b, sockets(b)) }
func BenchmarkNetSetClear(b *testing.B)      { clearDeadlines(b, sockets(b)) }
func BenchmarkWheelSetDeadline(b *testing.B) { setDeadlines(b, wrapped(b, sockets(b))) }
func BenchmarkWheelSetClear(b *testing.B)    { clearDeadlines(b, wrapped(b, sockets(b))) }
