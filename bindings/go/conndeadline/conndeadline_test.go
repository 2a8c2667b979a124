// SPDX-License-Identifier: MIT OR GPL-2.0-only

package conndeadline

import (
	"errors"
	"fmt"
	"math/rand"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"timerwheel"
)

func eachBackend(t *testing.T, test func(t *testing.T, d *Deadlines)) {
	run := func(name string, b timerwheel.Backend) {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/dev/timerwheel"); b == timerwheel.Device && err != nil &&
				os.Getenv("TIMERWHEEL_BACKEND") != "device" {
				t.Skip("no device")
			}
			d, err := New(&timerwheel.Options{Backend: b})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			test(t, d)
		})
	}
	run("process", timerwheel.Process)
	run("device", timerwheel.Device)
}

func wrap(t *testing.T, d *Deadlines, conn net.Conn) *Conn {
	t.Helper()
	c, err := d.Wrap(conn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// timesOut: a read or write ends with a timeout, no earlier than that.
func timesOut(t *testing.T, begin time.Time, least time.Duration, err error) {
	t.Helper()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < least {
		t.Fatal(took, "is early")
	}
}

func TestDeadlines(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		inner, peer := net.Pipe()
		defer peer.Close()
		c := wrap(t, d, inner)
		defer c.Close()
		buf := make([]byte, 1)
		for i := 0; i < 3; i++ {
			for _, f := range []struct {
				set func(time.Time) error
				do  func([]byte) (int, error)
			}{{c.SetReadDeadline, c.Read}, {c.SetWriteDeadline, c.Write}, {c.SetDeadline, c.Read}, {c.SetDeadline, c.Write}} {
				begin := time.Now()
				if err := f.set(begin.Add(20 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				_, err := f.do(buf)
				timesOut(t, begin, 20*time.Millisecond, err)
				// It stays so, until a new deadline.
				_, err = f.do(buf)
				timesOut(t, begin, 0, err)
			}
		}
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go peer.Write(buf)
		if n, err := c.Read(buf); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		// At once, also if there is something to read
		c.SetReadDeadline(time.Now().Add(-time.Hour))
		go peer.Write(buf)
		_, err := c.Read(buf)
		timesOut(t, time.Now(), 0, err)
		c.SetReadDeadline(time.Now().Add(200 * 365 * 24 * time.Hour))
		c.SetReadDeadline(time.Now().Add(1 << 62))
		if n, err := c.Read(buf); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		// postponed while a read waits; again with longer times if that came too late
		for first, late := 30*time.Millisecond, true; late; first *= 2 {
			begin := time.Now()
			c.SetReadDeadline(begin.Add(first))
			postponed := make(chan bool)
			go func() {
				time.Sleep(first / 3)
				c.SetReadDeadline(begin.Add(3 * first))
				postponed <- time.Since(begin) < first
			}()
			_, err = c.Read(buf)
			if late = !<-postponed; !late {
				timesOut(t, begin, 3*first, err)
			}
		}
		// an earlier one
		c.SetReadDeadline(time.Now().Add(time.Hour))
		begin := time.Now()
		c.SetReadDeadline(begin.Add(10 * time.Millisecond))
		_, err = c.Read(buf)
		timesOut(t, begin, 10*time.Millisecond, err)
	})
}

// An event that was read before its deadline was postponed, or taken away
func TestEarlierEvent(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		inner, peer := net.Pipe()
		defer peer.Close()
		c := wrap(t, d, inner)
		defer c.Close()
		early := timerwheel.Event{Key: 0, Deadline: d.w.Now(), Fired: d.w.Now()}
		c.SetReadDeadline(time.Now().Add(time.Hour))
		d.event(early)
		c.SetReadDeadline(time.Time{})
		d.event(early)
		go peer.Write(make([]byte, 1))
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil || c.read.passed {
			t.Fatal(n, err)
		}
		c.SetReadDeadline(time.Now().Add(time.Hour))
		d.event(timerwheel.Event{Key: 0, Deadline: timerwheel.TimeMax, Fired: timerwheel.TimeMax})
		_, err := c.Read(make([]byte, 1))
		timesOut(t, time.Now(), 0, err)
	})
}

// A connection that is closed: its deadlines go to another one, and it cannot set them any more.
func TestReuse(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		buf := make([]byte, 1)
		for i := 0; i < 20; i++ {
			inner, peer := net.Pipe()
			c := wrap(t, d, inner)
			if len(d.sides) != 2 {
				t.Fatal(len(d.sides))
			}
			go peer.Write(buf)
			if n, err := c.Read(buf); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			begin := time.Now()
			c.SetDeadline(begin.Add(5 * time.Millisecond))
			if i%2 == 0 {
				_, err := c.Read(buf)
				timesOut(t, begin, 5*time.Millisecond, err)
			}
			c.Close()
			if err := c.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			c.Close()
			peer.Close()
		}
		d.Close()
		inner, _ := net.Pipe()
		if err := wrap(t, d, inner).SetDeadline(time.Now().Add(time.Hour)); err != timerwheel.ErrClosed {
			t.Fatal(err)
		}
		if _, err := d.Wrap(inner); err != timerwheel.ErrClosed {
			t.Fatal(err)
		}
	})
}

// Echoes over TCP, with a deadline for each read and each write: none passes that was postponed, and
// those of clients that fall silent do.
func TestMany(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
		// Machines that run tests stand still for seconds now and then: then others end, too.
		const clients, silent, limit = 100, 50, 2 * time.Second
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					c, err := d.Wrap(conn)
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					buf := make([]byte, 16)
					last := time.Now()
					for {
						last = time.Now()
						c.SetDeadline(last.Add(limit))
						n, err := c.Read(buf)
						if errors.Is(err, os.ErrDeadlineExceeded) {
							if time.Since(last) < limit {
								t.Error("early")
							}
							return
						}
						if err != nil {
							return
						}
						c.Write(buf[:n])
					}
				}()
			}
		}()
		var all sync.WaitGroup
		stop := time.Now().Add(time.Second)
		for i := 0; i < clients; i++ {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				buf := make([]byte, 1)
				for time.Now().Before(stop) {
					if _, err := c.Write(buf); err != nil {
						return
					}
					if _, err := c.Read(buf); err != nil {
						return
					}
					time.Sleep(time.Duration(rand.Intn(20)) * time.Millisecond)
				}
				if i < silent {
					// The server ends it.
					if _, err := c.Read(buf); err == nil {
						t.Error("it has answered nothing")
					}
				}
			}(i)
		}
		all.Wait()
	})
}

// Events of a clock that was set are of no connection, so they are not asked for: the back end that
// has none would refuse.
func TestClockSet(t *testing.T) {
	d, err := New(&timerwheel.Options{Backend: timerwheel.Process, Clock: timerwheel.Realtime, ClockSet: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

// Deadlines are those of Monotonic, whatever clock was asked for.
func TestClock(t *testing.T) {
	for clock := timerwheel.Monotonic; clock <= timerwheel.Manual; clock++ {
		o := timerwheel.Options{Backend: timerwheel.Process, Clock: clock}
		d, err := New(&o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.w.Info()
		if err != nil || info.Clock != timerwheel.Monotonic || o.Clock != clock {
			t.Fatal(err, info.Clock, o.Clock)
		}
		inner, peer := net.Pipe()
		c := wrap(t, d, inner)
		begin := time.Now()
		c.SetReadDeadline(begin.Add(10 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		timesOut(t, begin, 10*time.Millisecond, err)
		c.Close()
		peer.Close()
		d.Close()
	}
}

func Example() {
	deadlines, err := New(nil)
	if err != nil {
		panic(err)
	}
	defer deadlines.Close()
	inner, _ := net.Pipe()
	conn, err := deadlines.Wrap(inner)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err = conn.Read(make([]byte, 1))
	fmt.Println(errors.Is(err, os.ErrDeadlineExceeded))
	// Output: true
}
