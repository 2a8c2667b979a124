// SPDX-License-Identifier: MIT OR GPL-2.0-only

package conndeadline

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
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

func wrap(t *testing.T, d *Deadlines, conn net.Conn) Conn {
	t.Helper()
	c, err := d.Wrap(conn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// timesOut checks that a read or write ends with a timeout, and not earlier.
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
				// The timeout remains until there is a new deadline.
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
		// It ends immediately, even if there is data to read.
		c.SetReadDeadline(time.Now().Add(-time.Hour))
		go peer.Write(buf)
		_, err := c.Read(buf)
		timesOut(t, time.Now(), 0, err)
		c.SetReadDeadline(time.Now().Add(200 * 365 * 24 * time.Hour))
		c.SetReadDeadline(time.Now().Add(1 << 62))
		if n, err := c.Read(buf); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		// Postponed while a read waits; again with longer times if the refresh came too late.
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
		// An earlier deadline.
		c.SetReadDeadline(time.Now().Add(time.Hour))
		begin := time.Now()
		c.SetReadDeadline(begin.Add(10 * time.Millisecond))
		_, err = c.Read(buf)
		timesOut(t, begin, 10*time.Millisecond, err)
	})
}

// Ignore an event that was read before its deadline was postponed or cleared.
func TestEarlierEvent(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		inner, peer := net.Pipe()
		defer peer.Close()
		c := wrap(t, d, inner)
		defer c.Close()
		early := timerwheel.Event{Key: 1, Deadline: d.w.Now(), Fired: d.w.Now()}
		c.SetReadDeadline(time.Now().Add(time.Hour))
		d.event(early)
		c.SetReadDeadline(time.Time{})
		d.event(early)
		go peer.Write(make([]byte, 1))
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil || c.(*other).read.passed {
			t.Fatal(n, err)
		}
		// An event of a timer that was removed.
		d.event(timerwheel.Event{Key: 1 << 40, Deadline: timerwheel.TimeMax})
		c.SetReadDeadline(time.Now().Add(time.Hour))
		d.event(timerwheel.Event{Key: 1, Deadline: timerwheel.TimeMax, Fired: timerwheel.TimeMax})
		_, err := c.Read(make([]byte, 1))
		timesOut(t, time.Now(), 0, err)
	})
}

// The deadlines of a closed connection are reused for another one, and the closed connection cannot set
// them.
func TestReuse(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		buf := make([]byte, 1)
		for i := 0; i < 20; i++ {
			inner, peer := net.Pipe()
			c := wrap(t, d, inner)
			if d.sides.Len() != 2 {
				t.Fatal(d.sides.Len())
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

// Echo over TCP, with a deadline for each read and each write. No postponed deadline passes, and the
// deadlines of idle clients do pass.
func TestMany(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
		// Machines that run tests sometimes pause for seconds. Then other connections end, too.
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
					// The server ends the connection.
					if _, err := c.Read(buf); err == nil {
						t.Error("it has answered nothing")
					}
				}
			}(i)
		}
		all.Wait()
	})
}

// New clears ClockSet, which the process back end would refuse.
func TestClockSet(t *testing.T) {
	d, err := New(&timerwheel.Options{Backend: timerwheel.Process, Clock: timerwheel.Realtime, ClockSet: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

// Deadlines use Monotonic, whichever clock the options name.
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

// connect returns both ends of a connection.
func connect(t *testing.T, network string) (net.Conn, net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	a, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// embeds has the methods of *net.TCPConn, but is another type.
type embeds struct {
	*net.TCPConn
	from io.Reader
}

func (e *embeds) ReadFrom(r io.Reader) (int64, error) {
	e.from = r
	return e.TCPConn.ReadFrom(r)
}

// halves has CloseRead and CloseWrite only.
type halves struct {
	net.Conn
	closeReader
	closeWriter
}

// A Conn has the additional methods if and only if the connection has them.
func TestMethods(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		tcp, _ := connect(t, "tcp")
		unix, _ := connect(t, "unix")
		udp, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			t.Skip(err)
		}
		pipe, _ := net.Pipe()
		inner := tcp.(*net.TCPConn)
		for _, conn := range []net.Conn{pipe, tcp, unix, udp, tls.Client(tcp, &tls.Config{}),
			&embeds{TCPConn: inner}, &halves{inner, inner, inner}} {
			c := wrap(t, d, conn)
			if c.NetConn() != conn {
				t.Fatalf("%T: NetConn", conn)
			}
			for i, has := range []func(c any) bool{
				func(c any) bool { _, has := c.(closeWriter); return has },
				func(c any) bool { _, has := c.(closeReader); return has },
				func(c any) bool { _, has := c.(io.ReaderFrom); return has },
				func(c any) bool { _, has := c.(syscall.Conn); return has },
				func(c any) bool { _, has := c.(net.PacketConn); return has },
			} {
				if has(c) != has(conn) {
					t.Errorf("%T: %T has method %d: %v", conn, c, i, has(c))
				}
			}
			// Not the Close of the connection, which would leave the timer armed.
			if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := d.w.Stats(); err != nil || s.Pending != 14 {
			t.Fatal(err, s.Pending)
		}
		c := wrap(t, d, tcp).(*TCPConn)
		f, err := c.File()
		if err != nil || c.SetKeepAlive(true) != nil || c.SetLinger(0) != nil || c.SetNoDelay(true) != nil {
			t.Fatal(err)
		}
		f.Close()
	})
}

// A relay forwards each end of file by CloseWrite if possible, and closes the connection otherwise. The
// client gets the same answer through wrapped connections as through others.
func TestRelay(t *testing.T) {
	relay := func(to, from net.Conn) {
		io.Copy(to, from)
		if half, ok := to.(closeWriter); ok {
			half.CloseWrite()
		} else {
			to.Close()
		}
	}
	answer := func(t *testing.T, network string, wrap func(net.Conn) net.Conn) []byte {
		client, a := connect(t, network)
		b, server := connect(t, "tcp")
		a, b = wrap(a), wrap(b)
		go relay(a, b)
		go relay(b, a)
		go func() {
			request, _ := io.ReadAll(server)
			server.Write(append([]byte("answer to "), request...))
			server.Close()
		}()
		client.Write(bytes.Repeat([]byte("request "), 100000))
		client.(closeWriter).CloseWrite()
		all, err := io.ReadAll(client)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		for _, network := range []string{"tcp", "unix"} {
			want := answer(t, network, func(c net.Conn) net.Conn { return c })
			got := answer(t, network, func(c net.Conn) net.Conn { return wrap(t, d, c) })
			if len(want) != 800010 || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes instead of %d", network, len(got), len(want))
			}
		}
	})
}

// ReadFrom gets the connection inside of a Conn, and ends at the deadlines of both.
func TestReadFrom(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		to, reader := connect(t, "tcp")
		from, writer := connect(t, "tcp")
		recorder := &embeds{TCPConn: to.(*net.TCPConn)}
		dst, src := wrap(t, d, recorder), wrap(t, d, from)
		go writer.Write([]byte("eight by"))
		go io.Copy(io.Discard, reader)
		limited := &io.LimitedReader{R: src, N: 5}
		n, err := dst.(io.ReaderFrom).ReadFrom(limited)
		if inner, ok := recorder.from.(*io.LimitedReader); n != 5 || err != nil || limited.N != 0 || !ok || inner.R != from {
			t.Fatalf("%d, %v, %d left, from %#v", n, err, limited.N, recorder.from)
		}
		begin := time.Now()
		src.SetReadDeadline(begin.Add(20 * time.Millisecond))
		n, err = dst.(io.ReaderFrom).ReadFrom(src)
		if n != 3 || recorder.from != from {
			t.Fatalf("%d from %T", n, recorder.from)
		}
		timesOut(t, begin, 20*time.Millisecond, err)
		// Its own Read is not bypassed.
		if own := (&struct{ *TCPConn }{src.(*TCPConn)}); inside(own) != any(own) {
			t.Fatal("the connection inside of a type that embeds a Conn")
		}

		// The other end does not read.
		to, _ = connect(t, "tcp")
		dst = wrap(t, d, to)
		begin = time.Now()
		dst.SetWriteDeadline(begin.Add(20 * time.Millisecond))
		_, err = io.Copy(dst, zeros{})
		timesOut(t, begin, 20*time.Millisecond, err)
		_, err = dst.(io.ReaderFrom).ReadFrom(bytes.NewReader(make([]byte, 1)))
		timesOut(t, begin, 20*time.Millisecond, err)

		// WriteTo, to a connection that is not wrapped.
		src.SetReadDeadline(time.Time{})
		begin = time.Now()
		go func() {
			writer.Write([]byte("more"))
			src.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}()
		_, err = io.Copy(recorder, src)
		if recorder.from != from {
			t.Fatalf("from %T", recorder.from)
		}
		timesOut(t, begin, 20*time.Millisecond, err)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// After a burst of connections, their timers are removed, and other connections work as before.
func TestBurst(t *testing.T) {
	eachBackend(t, func(t *testing.T, d *Deadlines) {
		const count = 10000
		var conns []Conn
		for i := 0; i < count; i++ {
			inner, _ := net.Pipe()
			conns = append(conns, wrap(t, d, inner))
			conns[i].SetDeadline(time.Now().Add(time.Duration(i%2) * time.Hour))
		}
		for _, c := range conns[1:] {
			c.Close()
		}
		s, err := d.w.Stats()
		if err != nil || s.Pending+s.Due+s.Parked > 2*spares+8 || len(d.free) > 2*spares+6 {
			t.Fatalf("%v, %d timers, %d free sides", err, s.Pending+s.Due+s.Parked, len(d.free))
		}
		for i := 0; i < count/10; i++ {
			inner, _ := net.Pipe()
			c := wrap(t, d, inner)
			c.SetDeadline(time.Now().Add(time.Hour))
			defer c.Close()
		}
		begin := time.Now()
		conns[0].SetReadDeadline(begin.Add(5 * time.Millisecond))
		_, err = conns[0].Read(make([]byte, 1))
		timesOut(t, begin, 5*time.Millisecond, err)
	})
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
