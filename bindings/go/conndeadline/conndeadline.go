// SPDX-License-Identifier: MIT OR GPL-2.0-only

// Package conndeadline wraps connections so that setting a read or write deadline, which servers do
// for each request, takes one compare-and-swap in memory on a resident timer of a wheel. The package
// sets the connection's own deadline only when a deadline passes. A waiting Read or Write then returns
// [os.ErrDeadlineExceeded] as usual, at most some milliseconds late and never early.
//
// # Methods of wrapped connections
//
// Relays and servers use more methods than net.Conn has: CloseWrite sends an end of file and still
// lets the answer through, and ReadFrom uses sendfile and splice. [Deadlines.Wrap] returns a [Conn]
// whose type depends on the connection:
//
//   - For *net.TCPConn, *net.UnixConn, *net.UDPConn and *net.IPConn, Wrap returns a [*TCPConn],
//     [*UnixConn], [*UDPConn] or [*IPConn], which has all methods of the connection.
//   - If another type has CloseRead, CloseWrite, ReadFrom (of io.ReaderFrom) and SyscallConn, the Conn
//     has these four methods. A struct that embeds *net.TCPConn is an example.
//   - If another type has CloseWrite, the Conn has CloseWrite, and CloseRead if the type has it.
//     *tls.Conn is an example: it has CloseWrite only.
//   - For all other types, the Conn has no further methods.
//
// Use NetConn to reach a method that the Conn does not have.
//
// Deadlines apply to all methods that read or write. If both ends of an io.Copy are wrapped TCP or
// Unix connections, the data moves as it does between the connections inside: by splice if the
// destination is TCP. io.Copy from a wrapped Unix connection to an unwrapped TCP connection copies
// the data through the program, because a Unix connection does not implement io.WriterTo.
//
// The type of a connection changes, so a type assertion to *net.TCPConn or *tls.Conn fails. For HTTP
// over TLS, wrap the connections below TLS: the connections that the inner listener of tls.NewListener
// accepts.
package conndeadline

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"timerwheel"
	"timerwheel/internal/shrink"
)

// Deadlines has the deadlines of any number of connections.
type Deadlines struct {
	w *timerwheel.Wheel
	// Two readings of the same time. baseNow was read a little later, so that deadlines are not
	// early.
	base    time.Time
	baseNow int64

	mu      sync.Mutex
	sides   shrink.Map[uint64, *side] // by the keys of their timers
	last    uint64                    // the last key
	free    []*side                   // unused sides, whose timers are cancelled
	stopped sync.WaitGroup
}

// side is the deadline of one direction of a connection. After the connection is closed, the side and
// its timer are kept for another connection.
type side struct {
	timer    *timerwheel.Timer
	mu       sync.Mutex
	owner    *pair                 // nil: none
	set      func(time.Time) error // sets the deadline of the connection
	deadline int64                 // in ns of the wheel's clock; 0: none
	passed   bool                  // the connection has a deadline in the past
}

// New opens a wheel. options are the options of [timerwheel.Open], or nil. Clock and ClockSet have no
// effect: deadlines use the clock Monotonic, as in package net. Errors: EINVAL (Alarm is set, which
// needs another clock), and the errors of [timerwheel.Open].
func New(options *timerwheel.Options) (*Deadlines, error) {
	o := timerwheel.Options{}
	if options != nil {
		o = *options
	}
	o.Resident = true
	// The clock of package time, from which deadlines are computed.
	o.Clock = timerwheel.Monotonic
	// Its events belong to no connection.
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

// Close closes the wheel. After that no deadline passes, and setting one fails. Error:
// [timerwheel.ErrClosed] if it was closed before.
func (d *Deadlines) Close() error {
	err := d.w.Close()
	d.stopped.Wait()
	return err
}

// Backend returns the back end of the wheel.
func (d *Deadlines) Backend() timerwheel.Backend { return d.w.Backend() }

// Conn is a connection whose deadlines are in the wheel. The package documentation lists its further
// methods.
//
// SetDeadline, SetReadDeadline and SetWriteDeadline work as in net.Conn. Their errors are
// [timerwheel.ErrClosed] (the Deadlines were closed), net.ErrClosed (the connection was closed), and
// the errors of the connection's own methods. Close closes the connection, and frees its deadlines for
// other connections.
type Conn interface {
	net.Conn
	// NetConn returns the connection that was wrapped.
	NetConn() net.Conn
}

// TCPConn is a [Conn] with all methods of *net.TCPConn, and WriteTo of io.WriterTo.
type TCPConn struct {
	*pair
	tcp
}

// UnixConn is a [Conn] with all methods of *net.UnixConn.
type UnixConn struct {
	*pair
	unix
}

// UDPConn is a [Conn] with all methods of *net.UDPConn.
type UDPConn struct {
	*pair
	udp
}

// IPConn is a [Conn] with all methods of *net.IPConn.
type IPConn struct {
	*pair
	ip
}

// The methods of these types are one level deeper than the methods of the pair that is embedded beside
// them, so that the pair's methods win where both have a name.
type (
	tcp   struct{ *net.TCPConn }
	unix  struct{ *net.UnixConn }
	udp   struct{ *net.UDPConn }
	ip    struct{ *net.IPConn }
	plain struct{ net.Conn }
)

type (
	closeReader interface{ CloseRead() error }
	closeWriter interface{ CloseWrite() error }
	stream      interface {
		closeReader
		closeWriter
		io.ReaderFrom
		syscall.Conn
	}
)

// These are for connections of any other type.
type (
	other struct {
		*pair
		plain
	}
	otherWrite struct {
		*other
		closeWriter
	}
	otherHalves struct {
		*other
		closeReader
		closeWriter
	}
	otherStream struct {
		*other
		closeReader
		closeWriter
		readerFrom
		syscall.Conn
	}
)

// pair has the two deadlines of a connection.
type pair struct {
	conn  net.Conn
	d     *Deadlines
	once  sync.Once
	read  *side
	write *side
}

// Wrap wraps a connection. The connection must have no deadline, and the program must set deadlines
// only through the Conn from now on. The connection's SetReadDeadline and SetWriteDeadline must not
// block, because that would delay the deadlines of all connections. Errors: the errors of
// [timerwheel.Wheel.NewTimer].
func (d *Deadlines) Wrap(conn net.Conn) (Conn, error) {
	p := &pair{conn: conn, d: d}
	var err error
	if p.read, err = d.take(p, conn.SetReadDeadline); err != nil {
		return nil, err
	}
	if p.write, err = d.take(p, conn.SetWriteDeadline); err != nil {
		d.give(p.read)
		return nil, err
	}
	switch c := conn.(type) {
	case *net.TCPConn:
		return &TCPConn{p, tcp{c}}, nil
	case *net.UnixConn:
		return &UnixConn{p, unix{c}}, nil
	case *net.UDPConn:
		return &UDPConn{p, udp{c}}, nil
	case *net.IPConn:
		return &IPConn{p, ip{c}}, nil
	}
	o := &other{p, plain{conn}}
	if c, ok := conn.(stream); ok {
		return &otherStream{o, c, c, readerFrom{c}, c}, nil
	}
	w, writes := conn.(closeWriter)
	r, reads := conn.(closeReader)
	switch {
	case writes && reads:
		return &otherHalves{o, r, w}, nil
	case writes:
		return &otherWrite{o, w}, nil
	}
	return o, nil
}

// readerFrom passes the connection inside of a Conn to the ReadFrom of another connection, because
// package net looks for *net.TCPConn and *net.UnixConn.
type readerFrom struct{ io.ReaderFrom }

func (to readerFrom) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return to.ReaderFrom.ReadFrom(inside(r).(io.Reader))
	}
	inner := &io.LimitedReader{R: inside(limited.R).(io.Reader), N: limited.N}
	n, err := to.ReaderFrom.ReadFrom(inner)
	limited.N = inner.N
	return n, err
}

// inside returns the connection inside of a Conn, or its argument if that is not a Conn. Reads and
// writes of the connection inside end at the same deadlines. A type that embeds a Conn does not count
// as a Conn, because it may have its own Read and Write.
func inside(c any) any {
	switch c := c.(type) {
	case *TCPConn:
		return c.conn
	case *UnixConn:
		return c.conn
	case *other:
		return c.conn
	case *otherWrite:
		return c.conn
	case *otherHalves:
		return c.conn
	case *otherStream:
		return c.conn
	}
	return c
}

// ReadFrom implements io.ReaderFrom. It uses sendfile or splice where package net does.
func (c *TCPConn) ReadFrom(r io.Reader) (int64, error) {
	return readerFrom{c.tcp.TCPConn}.ReadFrom(r)
}

// WriteTo implements io.WriterTo. It uses splice where package net does.
func (c *TCPConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(inside(w).(io.Writer), c.tcp.TCPConn)
}

func (p *pair) NetConn() net.Conn { return p.conn }

func (p *pair) SetReadDeadline(t time.Time) error { return p.d.setDeadline(p.read, p, t) }

func (p *pair) SetWriteDeadline(t time.Time) error { return p.d.setDeadline(p.write, p, t) }

func (p *pair) SetDeadline(t time.Time) error {
	if err := p.SetReadDeadline(t); err != nil {
		return err
	}
	return p.SetWriteDeadline(t)
}

func (p *pair) Close() error {
	p.once.Do(func() {
		p.d.give(p.read)
		p.d.give(p.write)
	})
	return p.conn.Close()
}

// take returns an unused side for a connection.
func (d *Deadlines) take(p *pair, set func(time.Time) error) (*side, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.free); n > 0 {
		s := d.free[n-1]
		d.free = d.free[:n-1]
		s.mu.Lock()
		s.owner, s.set = p, set
		s.mu.Unlock()
		return s, nil
	}
	timer, err := d.w.NewTimer(d.last+1, 0, 0)
	if err != nil {
		return nil, err
	}
	d.last++
	s := &side{timer: timer, owner: p, set: set}
	d.sides.Set(d.last, s)
	return s, nil
}

// give takes a side back from a connection that is being closed.
func (d *Deadlines) give(s *side) {
	s.mu.Lock()
	s.timer.Cancel()
	s.owner, s.set, s.deadline, s.passed = nil, nil, 0, false
	s.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, s)
	if used := d.sides.Len() - len(d.free); len(d.free) > 3*used+2*spares {
		d.remove(used + spares)
	}
}

// spares is the number of free sides that are kept if no connection is left.
const spares = 256

// remove removes free sides and their timers, so that the memory of a burst of connections is freed.
// It keeps the given number of them.
func (d *Deadlines) remove(keep int) {
	removes := make([]timerwheel.RemoveHandle, len(d.free)-keep)
	for i, s := range d.free[keep:] {
		d.sides.Delete(s.timer.Key())
		removes[i].Handle = s.timer.Handle()
	}
	d.free = append([]*side(nil), d.free[:keep]...)
	d.w.RemoveHandles(removes)
}

func (d *Deadlines) setDeadline(s *side, p *pair, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != p {
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
	// Sub saturates, and the sum may exceed TimeMax.
	deadline := d.baseNow + int64(now.Sub(d.base))
	if int64(left) > timerwheel.TimeMax-deadline {
		deadline = timerwheel.TimeMax
	} else {
		deadline += int64(left)
	}
	// Set it before the timer can fire.
	s.deadline = deadline
	if err := s.timer.ArmAt(deadline); err != nil {
		s.deadline = 0
		return err
	}
	return s.clear()
}

// pass ends waiting reads or writes of the connection, and those that begin before clear.
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
	s := d.sides.Get(e.Key)
	d.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The event of an earlier arming, which was read before this one, has an earlier deadline.
	if s.deadline != 0 && s.deadline <= e.Deadline {
		s.deadline = 0
		s.pass()
	}
}
