// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ring is a mapped event ring. Other processes may write to it. The reader takes the number and the
// size of events from INFO, so that they cannot make it access other memory.
type ring struct {
	head      *abiRing
	size      uintptr
	events    uint32
	eventSize uint32
}

func newRing(fd uintptr, events, eventSize uint32) (*ring, syscall.Errno) {
	r := &ring{size: pages(ringEvents + uintptr(events)*uintptr(eventSize)), events: events, eventSize: eventSize}
	at, errno := mapping(nil, r.size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, fd, mmapRing)
	if errno != 0 {
		return nil, errno
	}
	r.head = (*abiRing)(at)
	// The mapping keeps the wheel in the kernel: unmap it when the program drops the ring.
	runtime.SetFinalizer(r, (*ring).close)
	return r, 0
}

// close unmaps the ring. The caller holds the reader's turn, so no other goroutine uses it.
func (r *ring) close() {
	runtime.SetFinalizer(r, nil)
	unmap(unsafe.Pointer(r.head), r.size)
}

// take copies events from the ring and consumes them.
func (r *ring) take(to []Event) int {
	defer runtime.KeepAlive(r)
	n := 0
	// This reader is awake and needs no wake-ups.
	if atomic.LoadUint32(&r.head.waiting) != 0 {
		atomic.StoreUint32(&r.head.waiting, 0)
	}
	head := atomic.LoadUint32(&r.head.head)
	have := atomic.LoadUint32(&r.head.tail) - head
	for ; n < len(to) && uint32(n) < have; n++ {
		place := uintptr((head+uint32(n))&(r.events-1)) * uintptr(r.eventSize)
		to[n] = *(*Event)(unsafe.Add(unsafe.Pointer(r.head), ringEvents+place))
	}
	if n > 0 {
		// The kernel may overwrite the events now; litmus c11/ring-room.
		atomic.StoreUint32(&r.head.head, head+uint32(n))
	}
	return n
}

// sleep requests a wake-up, and then checks the ring again. It reports whether there are events to
// take, and whether events wait in the kernel for FLOW.
func (r *ring) sleep() (some, flow bool) {
	defer runtime.KeepAlive(r)
	// Pairs with the kernel's barrier: either it sees waiting, or we see its changes. Package
	// atomic is sequentially consistent; litmus c11/ring-waiting-go.
	atomic.SwapUint32(&r.head.waiting, 1)
	some = atomic.LoadUint32(&r.head.tail) != atomic.LoadUint32(&r.head.head)
	flow = atomic.LoadUint32(&r.head.flags)&ringOverflow != 0
	return some, flow
}
