// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// device is the back end of the kernel module: each call is an ioctl.
type device struct {
	r    *reader
	ring *ring
}

// ioctlCall has the arguments and results of one ioctl. It comes from a pool, so that a call
// allocates nothing. It is on the heap, and so are the elements that it refers to.
type ioctlCall struct {
	nr    uintptr
	arg   unsafe.Pointer
	n     int
	errno syscall.Errno
	batch abiBatch
	run   func(fd uintptr)
}

var ioctlCalls = sync.Pool{New: func() any {
	c := new(ioctlCall)
	c.run = func(fd uintptr) { c.n, c.errno = ioctl(fd, c.nr, c.arg) }
	return c
}}

func (d *device) ioctl(nr uintptr, arg unsafe.Pointer) (int, syscall.Errno) {
	c := ioctlCalls.Get().(*ioctlCall)
	c.nr, c.arg = nr, arg
	n, errno := d.call(c)
	c.arg = nil
	ioctlCalls.Put(c)
	return n, errno
}

func (d *device) call(c *ioctlCall) (int, syscall.Errno) {
	if d.r.control(c.run) != nil {
		return 0, syscall.EBADF
	}
	if c.errno != 0 {
		return 0, c.errno
	}
	return c.n, 0
}

var deviceCalls = [...]struct {
	nr   uintptr
	size uint32
}{
	callAdd:          {iocAdd, uint32(unsafe.Sizeof(Add{}))},
	callMove:         {iocMove, uint32(unsafe.Sizeof(Move{}))},
	callRemove:       {iocRemove, uint32(unsafe.Sizeof(Remove{}))},
	callGet:          {iocGet, uint32(unsafe.Sizeof(Entry{}))},
	callMoveHandle:   {iocMoveHandle, uint32(unsafe.Sizeof(MoveHandle{}))},
	callRemoveHandle: {iocRemoveHandle, uint32(unsafe.Sizeof(RemoveHandle{}))},
}

// array makes a call on an array.
func (d *device) array(nr uintptr, flags uint32, elems unsafe.Pointer, count int, size uint32, cursor *uint64) (int, syscall.Errno) {
	c := ioctlCalls.Get().(*ioctlCall)
	c.batch = abiBatch{
		size:     uint32(unsafe.Sizeof(c.batch)),
		flags:    flags,
		elems:    uint64(uintptr(elems)),
		count:    uint32(count),
		elemSize: size,
	}
	if cursor != nil {
		c.batch.cursor = *cursor
	}
	c.nr, c.arg = nr, unsafe.Pointer(&c.batch)
	n, errno := d.call(c)
	// The kernel gets elems as a number, which the collector does not see.
	runtime.KeepAlive(elems)
	if cursor != nil {
		*cursor = c.batch.cursor
	}
	ioctlCalls.Put(c)
	return n, errno
}

func (d *device) batch(call call, flags uint32, elems unsafe.Pointer, count int) (int, syscall.Errno) {
	return d.array(deviceCalls[call].nr, flags, elems, count, deviceCalls[call].size, nil)
}

// entries returns the address of the array that a call fills in. The array may be empty.
func entries(to []Entry) unsafe.Pointer {
	if len(to) == 0 {
		return unsafe.Pointer(new(Entry))
	}
	return unsafe.Pointer(&to[0])
}

func (d *device) list(to []Entry, cursor *uint64) (int, syscall.Errno) {
	return d.array(iocList, 0, entries(to), len(to), uint32(unsafe.Sizeof(Entry{})), cursor)
}

func (d *device) drain(to []Entry, last bool) (int, syscall.Errno) {
	flags := uint32(0)
	if last {
		flags = drainClose
	}
	return d.array(iocDrain, flags, entries(to), len(to), uint32(unsafe.Sizeof(Entry{})), nil)
}

func (d *device) advance(time int64, flags uint32) (int, syscall.Errno) {
	arg := &abiAdvance{flags: flags, time: uint64(time)}
	arg.size = uint32(unsafe.Sizeof(*arg))
	_, errno := d.ioctl(iocAdvance, unsafe.Pointer(arg))
	return int(arg.expired), errno
}

func (d *device) info(info *Info) syscall.Errno {
	info.size = uint32(unsafe.Sizeof(*info))
	_, errno := d.ioctl(iocInfo, unsafe.Pointer(info))
	return errno
}

func (d *device) stats(stats *Stats) syscall.Errno {
	stats.size = uint32(unsafe.Sizeof(*stats))
	_, errno := d.ioctl(iocStats, unsafe.Pointer(stats))
	return errno
}

func (d *device) take(fd uintptr, to []Event) (int, error) {
	if len(to) > batchMax {
		to = to[:batchMax]
	}
	if d.ring == nil {
		return readEvents(fd, to)
	}
	// Give up after a few attempts: more are needed only if another process writes to the ring.
	for looks := 0; looks < 8; looks++ {
		if n := d.ring.take(to); n > 0 {
			return n, nil
		}
		some, flow := d.ring.sleep()
		if some {
			continue
		}
		if !flow {
			return 0, nil
		}
		if _, errno := ioctl(fd, iocFlow, nil); errno != 0 {
			return 0, fail("flow", errno)
		}
	}
	return 0, nil
}

func (d *device) share() (fd int, errno syscall.Errno) {
	gone := d.r.control(func(own uintptr) {
		var n uintptr
		n, _, errno = syscall.Syscall(syscall.SYS_FCNTL, own, syscall.F_DUPFD_CLOEXEC, 0)
		fd = int(n)
	})
	if gone != nil {
		return 0, syscall.EBADF
	}
	return fd, errno
}

func (d *device) monitor(events uint32) (int, syscall.Errno) {
	arg := &abiMonitor{flags: monitorCloexec | monitorNonblock, events: events}
	arg.size = uint32(unsafe.Sizeof(*arg))
	return d.ioctl(iocMonitor, unsafe.Pointer(arg))
}

func (d *device) backend() Backend { return Device }

func (d *device) shut() {}

func (d *device) release() {
	if d.ring != nil {
		d.ring.close()
	}
}

func openDevice(o *Options) (*Wheel, error) {
	fd, err := syscall.Open(o.Path, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fail("open", err.(syscall.Errno))
	}
	setup := &abiSetup{
		clock:      uint32(o.Clock),
		slots:      uint32(o.Slots),
		tick:       uint64(o.Tick),
		capacity:   uint32(o.Capacity),
		wakeEvents: uint32(o.WakeEvents),
		wakeNs:     uint64(o.WakeAfter),
		slack:      uint64(o.Slack),
		ring:       uint32(o.Ring),
		eventSize:  uint32(unsafe.Sizeof(Event{})),
	}
	setup.size = uint32(unsafe.Sizeof(*setup))
	for _, flag := range []struct {
		set  bool
		flag uint32
	}{{o.ClockSet, setupClockSet}, {o.Alarm, setupAlarm}, {o.Table, setupTable},
		{o.Resident, setupResident}} {
		if flag.set {
			setup.flags |= flag.flag
		}
	}
	if _, errno := ioctl(uintptr(fd), iocSetup, unsafe.Pointer(setup)); errno != 0 {
		syscall.Close(fd)
		return nil, fail("open", errno)
	}
	return adopt("open", fd, o.Table || o.Resident)
}

// Adopt uses a wheel that another process created, by its descriptor, for example from the store of
// a service manager. With table it maps the deadline table. Adopt owns the descriptor: it closes it
// on failure, and Close closes it otherwise. The descriptor becomes non-blocking. If the wheel has an
// event ring, events continue where the last reader stopped.
//
// Errors: EBADF (the descriptor is not open), ENOTTY (it is not a wheel), ENOMEM, EPROTO (the settings
// of the wheel are not valid for this package: a newer program has set it up for larger events or
// another clock); with table also ENOENT (it was set up without a table) and EXDEV (in another time
// namespace).
func Adopt(fd int, table bool) (*Wheel, error) {
	return adopt("adopt", fd, table)
}

func adopt(op string, fd int, table bool) (*Wheel, error) {
	d := &device{}
	w, errno := d.adopt(fd, table)
	if errno == 0 {
		return w, nil
	}
	d.release()
	syscall.Close(fd)
	return nil, fail(op, errno)
}

func (d *device) adopt(fd int, table bool) (*Wheel, syscall.Errno) {
	if errno := isDevice(fd); errno != 0 {
		return nil, errno
	}
	info := new(Info)
	info.size = uint32(unsafe.Sizeof(*info))
	if _, errno := ioctl(uintptr(fd), iocInfo, unsafe.Pointer(info)); errno != 0 {
		return nil, errno
	}
	if table && info.Flags&infoTable == 0 {
		return nil, syscall.ENOENT
	}
	if info.unknown(table) {
		return nil, syscall.EPROTO
	}
	if info.Ring != 0 {
		ring, errno := newRing(uintptr(fd), info.Ring, info.EventSize)
		if errno != 0 {
			return nil, errno
		}
		d.ring = ring
	}
	var entries *Table
	if table {
		var errno syscall.Errno
		entries, errno = newTable(uintptr(fd), false, info.Capacity, info.GenerationBits)
		if errno != 0 {
			return nil, errno
		}
	}
	w, err := newWheel(fd, "timerwheel", info.Clock, d, entries)
	if err != nil {
		return nil, err.(syscall.Errno)
	}
	d.r = w.r
	w.resident = info.Flags&infoResident != 0
	return w, 0
}

// isDevice checks that a descriptor is the module's device, and returns ENOTTY if it is not. Other
// files can answer INFO with any numbers (files of a FUSE mount can), and accesses to their mappings
// can fail. Without sysfs each character device passes, because only root can create one.
func isDevice(fd int) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err.(syscall.Errno)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return syscall.ENOTTY
	}
	rdev := uint64(st.Rdev)
	major, minor := rdev>>8&0xfff|rdev>>32&^0xfff, rdev&0xff|rdev>>12&^0xff
	class, err := os.Readlink(fmt.Sprintf("/sys/dev/char/%d:%d/subsystem", uint32(major), uint32(minor)))
	if err == nil && filepath.Base(class) != "timerwheel" {
		return syscall.ENOTTY
	}
	return 0
}

// unknown reports whether a wheel has settings that this package cannot use: an unknown clock, or
// invalid numbers from which sizes, shifts and indices are computed. Events of a later version can be
// larger. A ring reader can skip their unknown part, but read cannot.
func (info *Info) unknown(table bool) bool {
	size := uint32(unsafe.Sizeof(Event{}))
	return info.Clock > Manual || info.EventSize < size || info.EventSize%8 != 0 ||
		(info.Ring == 0 && info.EventSize != size) || info.Ring&(info.Ring-1) != 0 ||
		(table && (info.GenerationBits < 3 || info.GenerationBits > 32))
}
