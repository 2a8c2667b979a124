// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// reader waits for a descriptor in the runtime's poller, so that a waiting goroutine does not occupy a
// thread, can be cancelled, and stops waiting when the file is closed.
type reader struct {
	file *os.File
	conn syscall.RawConn
	// The goroutine that reads holds the turn. Only one reads at a time, because the poller has
	// one deadline for the file. The others wait for the turn, so they can be cancelled, too.
	turn chan struct{}
	done chan struct{} // closed by close
	once sync.Once
}

// taker takes events without waiting. It returns 0 without an error if there are none for now.
type taker func(fd uintptr) (int, error)

// newReader owns the descriptor from now on. It makes it non-blocking, because os.NewFile uses the
// poller only for non-blocking descriptors.
func newReader(fd int, name string) (*reader, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	r := &reader{turn: make(chan struct{}, 1), done: make(chan struct{})}
	r.file = os.NewFile(uintptr(fd), name)
	conn, err := r.file.SyscallConn()
	r.conn = conn
	return r, err
}

// close ends all reads, calls before, and closes the file. When it returns, all reads have ended. It
// returns false if the reader was already closed.
func (r *reader) close(before func()) bool {
	first := false
	r.once.Do(func() {
		close(r.done)
		before()
		r.file.Close()
		r.turn <- struct{}{}
		first = true
	})
	return first
}

func (r *reader) closed() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// control runs f with the descriptor, which stays open during the call.
func (r *reader) control(f func(fd uintptr)) error {
	if err := r.conn.Control(f); err != nil {
		return ErrClosed
	}
	return nil
}

// try takes events unless another goroutine has the turn.
func (r *reader) try(take taker) (n int, err error) {
	if r.closed() {
		return 0, ErrClosed
	}
	select {
	case r.turn <- struct{}{}:
	default:
		return 0, nil
	}
	defer func() { <-r.turn }()
	if gone := r.control(func(fd uintptr) { n, err = take(fd) }); gone != nil {
		return 0, gone
	}
	return n, err
}

// read takes at least one event.
func (r *reader) read(ctx context.Context, take taker) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-r.done:
		return 0, ErrClosed
	}
	defer func() { <-r.turn }()
	if r.closed() {
		return 0, ErrClosed
	}
	gone := r.control(func(fd uintptr) { n, err = take(fd) })
	if gone == nil && n == 0 && err == nil {
		defer r.watch(ctx)()
		gone = r.conn.Read(func(fd uintptr) bool {
			n, err = take(fd)
			return n != 0 || err != nil
		})
	}
	switch {
	case n > 0 || err != nil:
		// Return events that were taken, even if the context is done.
		return n, err
	case r.closed():
		return 0, ErrClosed
	case ctx.Err() != nil:
		return 0, ctx.Err()
	default:
		return 0, gone
	}
}

// watch ends the read of this turn when the context is done. Call the function that it returns before
// the turn ends, to stop watching.
func (r *reader) watch(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			r.file.SetReadDeadline(time.Unix(1, 0))
		case <-stop:
		}
	}()
	return func() {
		close(stop)
		<-stopped
		r.file.SetReadDeadline(time.Time{})
	}
}

// readEvents reads events from a descriptor without waiting.
func readEvents(fd uintptr, to []Event) (int, error) {
	for {
		n, errno := readNowait(fd, unsafe.Pointer(&to[0]), uintptr(len(to))*unsafe.Sizeof(to[0]))
		switch errno {
		case 0:
			if n == 0 {
				return 0, io.EOF
			}
			return n / int(unsafe.Sizeof(to[0])), nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, fail("read", errno)
		}
	}
}

// Monitor reads a copy of each event that a wheel delivers.
type Monitor struct {
	r *reader
}

// Read takes events: at least one, and as many as there are and fit. It waits for the first event
// until the context is done, and then returns the context's error. When the wheel is closed and all
// events have been read, it returns io.EOF. If the monitor falls behind, an event with [EventMissed]
// takes the place of the lost events. Error: [ErrClosed].
func (m *Monitor) Read(ctx context.Context, to []Event) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	return m.r.read(ctx, func(fd uintptr) (int, error) { return readEvents(fd, to) })
}

// Close closes the monitor. A waiting Read, and each later call, returns [ErrClosed].
func (m *Monitor) Close() error {
	if !m.r.close(func() {}) {
		return ErrClosed
	}
	return nil
}
