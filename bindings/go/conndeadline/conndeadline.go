// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package conndeadline wraps connections so that setting a read or write deadline, which servers do
// for each request, is a store in memory: a resident timer of a wheel. Only when a deadline passes,
// the connection's own deadline is set, so a Read or Write that waits ends with
// [os.ErrDeadlineExceeded] as usual, at most some milliseconds late and never early.
package conndeadline

import (
	"context"
	"net"
	"sync"
	"time"

	"timerwheel"
)

// Deadlines are the deadlines of any number of connections.
type Deadlines struct {
	w *timerwheel.Wheel
	// Both were read at the same time, the second one a little later: a deadline is not early.
	base    time.Time
	baseNow int64

	mu      sync.Mutex
	sides   []*side // by the keys of their timers
	free    []*side // whose timers are cancelled
	stopped sync.WaitGroup
}

// side is the deadline of one direction of a connection. When the connection is closed it is kept,
// with its timer, for another one.
type side struct {
	timer *timerwheel.Timer
	mu    sync.Mutex
	owner *Conn                 // nil: none
	set   func(time.Time) error // sets the deadline of the connection
	// In ns of the wheel's clock; 0: none
	deadline int64
	passed   bool // the connection has a deadline, in the past
}

// New opens a wheel. Its options, which may be nil, are those of [timerwheel.Open]. Clock and ClockSet
// have no effect: deadlines pass by the clock Monotonic, as those of package net do. So Alarm is
// refused: EINVAL.
func New(options *timerwheel.Options) (*Deadlines, error) {
	o := timerwheel.Options{}
	if options != nil {
		o = *options
	}
	o.Resident = true
	// That of package time, from which deadlines are computed
	o.Clock = timerwheel.Monotonic
	// Its events are of no connection.
	o.ClockSet = false
	w, err := timerwheel.Open(&o)
	if err != nil {
		return nil, err
	}
	d := &Deadlines{w: w, base: time.Now()}
	d.baseNow = w.Now()
	d.stopped.Add(1)
	go d.run()
	return d, nil
}

// Close closes the wheel. Then no deadline passes any more, and none can be set.
func (d *Deadlines) Close() error {
	err := d.w.Close()
	d.stopped.Wait()
	return err
}

// Backend tells where the wheel is.
func (d *Deadlines) Backend() timerwheel.Backend { return d.w.Backend() }

// Conn is a connection whose deadlines are in the wheel.
type Conn struct {
	net.Conn
	d     *Deadlines
	once  sync.Once
	read  *side
	write *side
}

// Wrap wraps a connection, which should have no deadline, and whose deadlines must not be set in
// another way from now on. Errors are those of [timerwheel.Wheel.NewTimer].
func (d *Deadlines) Wrap(conn net.Conn) (*Conn, error) {
	c := &Conn{Conn: conn, d: d}
	var err error
	if c.read, err = d.take(c, conn.SetReadDeadline); err != nil {
		return nil, err
	}
	if c.write, err = d.take(c, conn.SetWriteDeadline); err != nil {
		d.give(c.read)
		return nil, err
	}
	return c, nil
}

// NetConn returns the connection that was wrapped.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// SetReadDeadline is that of net.Conn. Errors: [timerwheel.ErrClosed], net.ErrClosed.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.d.setDeadline(c.read, c, t) }

// SetWriteDeadline is that of net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.d.setDeadline(c.write, c, t) }

// SetDeadline is that of net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// Close closes the connection, and frees its deadlines for others.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.d.give(c.read)
		c.d.give(c.write)
	})
	return c.Conn.Close()
}

// take returns a side for a connection.
func (d *Deadlines) take(c *Conn, set func(time.Time) error) (*side, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.free); n > 0 {
		s := d.free[n-1]
		d.free = d.free[:n-1]
		s.mu.Lock()
		s.owner, s.set = c, set
		s.mu.Unlock()
		return s, nil
	}
	timer, err := d.w.NewTimer(uint64(len(d.sides)), 0, 0)
	if err != nil {
		return nil, err
	}
	s := &side{timer: timer, owner: c, set: set}
	d.sides = append(d.sides, s)
	return s, nil
}

// give takes a side back from a connection that is being closed.
func (d *Deadlines) give(s *side) {
	s.mu.Lock()
	s.timer.Cancel()
	s.owner, s.set, s.deadline, s.passed = nil, nil, 0, false
	s.mu.Unlock()
	d.mu.Lock()
	d.free = append(d.free, s)
	d.mu.Unlock()
}

func (d *Deadlines) setDeadline(s *side, c *Conn, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != c {
		return net.ErrClosed
	}
	if t.IsZero() {
		s.timer.Cancel()
		s.deadline = 0
		return s.clear()
	}
	now := time.Now()
	left := t.Sub(now)
	if left <= 0 {
		s.timer.Cancel()
		s.deadline = 0
		return s.pass()
	}
	// Sub saturates, and the sum may be beyond the end of time.
	deadline := d.baseNow + int64(now.Sub(d.base))
	if int64(left) > timerwheel.TimeMax-deadline {
		deadline = timerwheel.TimeMax
	} else {
		deadline += int64(left)
	}
	// Before the timer can fire
	s.deadline = deadline
	if err := s.timer.ArmAt(deadline); err != nil {
		s.deadline = 0
		return err
	}
	return s.clear()
}

// pass ends what waits for the connection, now and until clear.
func (s *side) pass() error {
	s.passed = true
	return s.set(time.Unix(1, 0))
}

func (s *side) clear() error {
	if !s.passed {
		return nil
	}
	s.passed = false
	return s.set(time.Time{})
}

func (d *Deadlines) run() {
	defer d.stopped.Done()
	events := make([]timerwheel.Event, 256)
	for {
		n, err := d.w.Read(context.Background(), events)
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			d.event(e)
		}
	}
}

func (d *Deadlines) event(e timerwheel.Event) {
	d.mu.Lock()
	s := d.sides[e.Key]
	d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	// The event of an earlier arming, which was read before this one, has an earlier deadline.
	if s.deadline != 0 && s.deadline <= e.Deadline {
		s.deadline = 0
		s.pass()
	}
}
