// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"math/bits"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// The limits of the module, so that both back ends accept the same settings.
const (
	tickMin         = 1000
	tickMax         = 3600e9
	tickDefault     = 1e6
	slotsMin        = 8
	slotsMax        = 4096
	capacityMax     = 134217728
	capacityDefault = 4194304
	slackMax        = 1 << 61

	generationBitsMin = 12
	generationBitsMax = 20
)

// Special values for the time for which the timerfd is armed.
const (
	wakeAtOnce = 0
	wakeNever  = TimeMax
)

// process is the back end inside the process: a store, a mutex and a timerfd. Readers wait for the
// timerfd as they do for the device. There is no goroutine. Each call first expires the timers whose
// deadlines have passed and then does its own work. Finally it arms the timerfd: for now if a timer is
// due, otherwise for the first deadline. A wake-up that is too early only causes a read that finds
// nothing. The timerfd is therefore armed again only for an earlier deadline and after it has fired.
type process struct {
	fd    int
	kind  Clock
	clock clock

	mu      sync.Mutex // protects everything below
	gone    bool       // the descriptor may be closed
	closed  bool       // the wheel accepts no new timers
	store   store
	counts  Stats
	tick    uint64
	slack   uint64
	time    int64 // the time of a Manual clock
	expired int64
	wake    int64
	drained uint32 // where the next drain starts
}

func openProcess(o *Options) (*Wheel, error) {
	min := int64(tickMin)
	if o.Clock == Manual {
		min = 1
	}
	tick := int64(o.Tick)
	if tick == 0 {
		tick = tickDefault
	}
	if tick < min || tick > tickMax || o.Capacity > capacityMax ||
		(o.Slots != 0 && (o.Slots < slotsMin || o.Slots > slotsMax)) ||
		(o.WakeEvents > 1 && o.WakeAfter == 0) || (o.ClockSet && o.Clock != Realtime) ||
		(o.Alarm && o.Clock != Realtime && o.Clock != Boottime) {
		return nil, fail("open", syscall.EINVAL)
	}
	if o.ClockSet || o.Alarm {
		return nil, fail("open", syscall.EOPNOTSUPP)
	}
	p := &process{kind: o.Clock, clock: newClock(o.Clock), tick: uint64(tick),
		slack: uint64(o.Slack), expired: -1, wake: wakeNever}
	p.store = store{capacity: uint32(o.Capacity), resident: o.Resident}
	if o.Capacity == 0 {
		p.store.capacity = capacityDefault
	}
	p.store.bits = generationBits(uint64(tick))
	if o.Table || o.Resident {
		table, errno := newTable(0, true, p.store.capacity, p.store.bits)
		if errno != 0 {
			return nil, fail("open", errno)
		}
		p.store.table = table
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, p.clock.id,
		syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return nil, fail("open", errno)
	}
	p.fd = int(fd)
	w, err := newWheel(p.fd, "timerwheel", o.Clock, p, p.store.table)
	if err != nil {
		syscall.Close(p.fd)
		return nil, err
	}
	w.resident = o.Resident
	return w, nil
}

// generationBits is as many as represent less than a tick, within limits.
func generationBits(tick uint64) uint32 {
	n := uint32(bits.Len64(tick) - 1)
	if n < generationBitsMin {
		return generationBitsMin
	}
	if n > generationBitsMax {
		return generationBitsMax
	}
	return n
}

func (p *process) now() int64 {
	if p.kind == Manual {
		return p.time
	}
	return p.clock.passed()
}

// setWake makes the descriptor readable at a time.
func (p *process) setWake(at int64) {
	spec := &struct{ interval, value syscall.Timespec }{}
	switch at {
	case wakeNever:
	case wakeAtOnce:
		spec.value.Nsec = 1
	default:
		// The woken reader must find the timer due, because nothing else wakes a reader. So wake it
		// only when our reading of the clock has also passed the deadline.
		spec.value = syscall.NsecToTimespec(later(at, p.clock.ahead-p.clock.behind))
	}
	syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(p.fd), tfdAbstime,
		uintptr(unsafe.Pointer(spec)), 0, 0, 0)
	p.wake = at
}

// wanted returns the time at which the descriptor must become readable.
func (p *process) wanted() int64 {
	if p.store.due > 0 {
		return wakeAtOnce
	}
	if len(p.store.heap) > 0 && p.kind != Manual {
		return p.store.heap[0].deadline
	}
	return wakeNever
}

// begin locks the wheel and expires timers. It returns the time.
func (p *process) begin() (int64, syscall.Errno) {
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return 0, syscall.EBADF
	}
	now := p.now()
	p.expire(now)
	return now, 0
}

// end arms the timerfd if needed and unlocks the wheel.
func (p *process) end(now int64) {
	wake := p.wanted()
	if wake < p.wake || (wake > p.wake && p.wake <= now) {
		p.setWake(wake)
	}
	p.mu.Unlock()
}

// expire fires the timers whose deadlines have passed. It returns their number.
func (p *process) expire(now int64) int {
	// At TimeMax a periodic timer is armed for TimeMax again, and must not expire twice.
	if now == p.expired {
		return 0
	}
	p.expired = now
	n := 0
	for len(p.store.heap) > 0 && p.store.heap[0].deadline <= now {
		first := p.store.heap[0]
		visit := p.store.visit(first.index)
		if visit == postponed {
			continue
		}
		p.store.take(first.index)
		if visit == lapsed {
			p.store.park(first.index)
			continue
		}
		at := now
		if p.kind == Manual {
			// A Manual clock passes through every time.
			at = first.deadline
		}
		p.fire(first.index, at)
		n++
	}
	return n
}

// fire makes a timer due whose state is nowhere.
func (p *process) fire(index uint32, now int64) {
	t := p.store.at(index)
	late := uint64(now - t.deadline)
	t.fired = now
	p.store.setDue(index)
	bucket := bits.Len64(late)
	if bucket >= len(p.counts.Lateness) {
		bucket = len(p.counts.Lateness) - 1
	}
	p.counts.Lateness[bucket]++
	if late > p.counts.LateMax {
		p.counts.LateMax = late
	}
}

// queue queues a timer for its deadline. If the deadline has passed, it makes the timer due.
func (p *process) queue(index uint32, now int64) {
	if p.store.at(index).deadline > now {
		p.store.pend(index)
	} else {
		p.fire(index, now)
	}
}

// absolute returns the absolute deadline.
func (p *process) absolute(deadline int64, flags uint32, now int64) int64 {
	switch {
	case flags&Abs != 0:
		// The kernel's absolute times have no sign.
		if deadline < 0 {
			return TimeMax
		}
		return deadline
	case deadline > 0:
		// A program that reads the clock may see a time that is behind ours by this much.
		return later(now, later(deadline, p.clock.ahead-p.clock.behind))
	case now+deadline > 0:
		return now + deadline
	}
	return 0
}

// unqueue removes a timer from the heap or the list, to end or to change it.
func (p *process) unqueue(index uint32) Result {
	result := was[p.store.at(index).state]
	p.store.take(index)
	if result == WasDue {
		p.counts.Withdrawn++
	}
	return result
}

// setDeadline gives a timer that exists another deadline and takes it out of where it is.
func (p *process) setDeadline(index uint32, deadline, now int64, unless bool) Result {
	if p.store.table != nil {
		result := p.store.set(index, deadline, now, unless)
		if result >= 0 {
			p.unqueue(index)
		}
		return result
	}
	result := p.unqueue(index)
	p.store.at(index).deadline = deadline
	return result
}

func (p *process) addInvalid(a *Add) bool {
	flags := Abs | Slack | Excl | Match
	if p.store.resident {
		flags |= Linger
	}
	lingers := p.store.table != nil && (a.Period != 0) != (a.Flags&Linger != 0)
	return a.Flags&^flags != 0 || (a.Flags&Excl != 0 && a.Flags&Match != 0) || a.Period < 0 ||
		lingers || (a.Slack != 0 && a.Flags&Slack == 0) || (a.Match != 0 && a.Flags&Match == 0)
}

func (p *process) addRefused(a *Add, index uint32) syscall.Errno {
	switch {
	case p.closed:
		return syscall.ESHUTDOWN
	case index != 0 && a.Flags&Excl != 0:
		return syscall.EEXIST
	case a.Flags&Match == 0:
		return 0
	case index == 0:
		return syscall.ENOENT
	case p.store.at(index).value != a.Match:
		return syscall.ESTALE
	}
	return 0
}

func (p *process) add(a *Add, now int64) Result {
	if p.addInvalid(a) {
		return failed(syscall.EINVAL)
	}
	index := p.store.keys.Get(a.Key)
	if errno := p.addRefused(a, index); errno != 0 {
		return failed(errno)
	}
	deadline := p.absolute(a.Deadline, a.Flags, now)
	result := WasNone
	if index != 0 {
		result = p.setDeadline(index, deadline, now, false)
		p.counts.Replaced++
	} else {
		var errno syscall.Errno
		if index, errno = p.store.create(a.Key); errno != 0 {
			return failed(errno)
		}
		p.store.at(index).deadline = deadline
		if p.store.table != nil {
			p.store.set(index, deadline, now, false)
		}
	}
	t := p.store.at(index)
	t.value = a.Value
	t.period = int64(a.Period)
	t.slack = p.slack
	if a.Flags&Slack != 0 {
		t.slack = uint64(a.Slack)
	}
	if t.slack > slackMax {
		t.slack = slackMax
	}
	t.slack -= t.slack % p.tick
	p.queue(index, now)
	p.counts.Armed++
	a.Handle = Handle{index, t.generation}
	return result
}

// find finds the timer for a call on a key.
func (p *process) find(key uint64, flags uint32, match uint64) (uint32, syscall.Errno) {
	if match != 0 && flags&Match == 0 {
		return 0, syscall.EINVAL
	}
	index := p.store.keys.Get(key)
	if index == 0 {
		return 0, syscall.ENOENT
	}
	if flags&Match != 0 && p.store.at(index).value != match {
		return 0, syscall.ESTALE
	}
	return index, 0
}

func (p *process) moveTimer(index uint32, deadline int64, flags uint32, now int64) Result {
	result := p.setDeadline(index, p.absolute(deadline, flags, now), now, flags&Excl != 0)
	if result >= 0 {
		p.queue(index, now)
		p.counts.Moved++
	}
	return result
}

func (p *process) move(m *Move, now int64) Result {
	flags := Abs | Match
	if p.store.table != nil {
		flags |= Excl
	}
	if m.Flags&^flags != 0 {
		return failed(syscall.EINVAL)
	}
	index, errno := p.find(m.Key, m.Flags, m.Match)
	if errno != 0 {
		return failed(errno)
	}
	return p.moveTimer(index, m.Deadline, m.Flags, now)
}

func (p *process) moveHandle(m *MoveHandle, flags uint32, now int64) Result {
	if flags&Excl != 0 && p.store.table == nil {
		return failed(syscall.EINVAL)
	}
	if !p.store.owned(m.Handle) {
		return failed(syscall.ENOENT)
	}
	return p.moveTimer(m.Handle.index, m.Deadline, flags, now)
}

// describe describes a timer. armed is the result of store.touched or store.disown.
func (p *process) describe(index uint32, now int64, armed bool) Entry {
	t := p.store.at(index)
	e := Entry{Key: t.key, Value: t.value, Deadline: t.deadline, Period: time.Duration(t.period),
		Slack: time.Duration(t.slack), Result: was[t.state],
		Handle: Handle{index, t.generation}}
	if t.state == queued && !armed {
		e.Result = WasParked
	}
	if p.store.resident && t.period != 0 {
		e.Flags = Linger
	}
	// The clock may have been set back since the timer fired.
	if t.state == due && t.fired > now {
		now = t.fired
	}
	e.Left = time.Duration(t.deadline - now)
	return e
}

func (p *process) look(index uint32, now int64) Entry {
	armed := p.store.at(index).state != queued || p.store.touched(index)
	return p.describe(index, now, armed)
}

// endTimer describes a timer and ends it.
func (p *process) endTimer(index uint32, now int64) Entry {
	var e Entry
	if p.store.table != nil {
		armed := p.store.disown(index)
		e = p.describe(index, now, armed)
	} else {
		e = p.look(index, now)
	}
	p.unqueue(index)
	p.store.delete(index)
	return e
}

func (p *process) remove(r *Remove, now int64) Result {
	if r.Flags&^Match != 0 {
		return failed(syscall.EINVAL)
	}
	index, errno := p.find(r.Key, r.Flags, r.Match)
	if errno != 0 {
		return failed(errno)
	}
	e := p.endTimer(index, now)
	p.counts.Removed++
	r.Value, r.Left = e.Value, e.Left
	return e.Result
}

func (p *process) removeHandle(r *RemoveHandle, now int64) Result {
	if !p.store.owned(r.Handle) {
		return failed(syscall.ENOENT)
	}
	e := p.endTimer(r.Handle.index, now)
	p.counts.Removed++
	r.Value = e.Value
	return e.Result
}

func (p *process) get(e *Entry, now int64) Result {
	if e.Flags != 0 {
		return failed(syscall.EINVAL)
	}
	index := p.store.keys.Get(e.Key)
	if index == 0 {
		return failed(syscall.ENOENT)
	}
	*e = p.look(index, now)
	return e.Result
}

// chunk is the number of timers that are processed while the lock is held.
const chunk = 256

func (p *process) batch(call call, flags uint32, elems unsafe.Pointer, count int) (int, syscall.Errno) {
	may := uint32(0)
	if call == callMoveHandle {
		may = Abs | Excl
	}
	if flags&^may != 0 {
		return 0, syscall.EINVAL
	}
	now, errno := p.begin()
	if errno != 0 {
		return 0, errno
	}
	if count > chunk {
		count = chunk
	}
	switch call {
	case callAdd:
		each(elems, count, func(a *Add) { a.Result = p.add(a, now) })
	case callMove:
		each(elems, count, func(m *Move) { m.Result = p.move(m, now) })
	case callRemove:
		each(elems, count, func(r *Remove) { r.Result = p.remove(r, now) })
	case callGet:
		each(elems, count, func(e *Entry) { e.Result = p.get(e, now) })
	case callMoveHandle:
		each(elems, count, func(m *MoveHandle) {
			m.Handle.generation = uint32(p.moveHandle(m, flags, now))
		})
	case callRemoveHandle:
		each(elems, count, func(r *RemoveHandle) {
			r.Handle.generation = uint32(p.removeHandle(r, now))
		})
	}
	p.end(now)
	return count, 0
}

func each[T any](elems unsafe.Pointer, count int, f func(*T)) {
	array := unsafe.Slice((*T)(elems), count)
	for i := range array {
		f(&array[i])
	}
}

func (p *process) list(to []Entry, cursor *uint64) (int, syscall.Errno) {
	index, n := *cursor, 0
	if index == 0 {
		index = 1
	}
	for more := true; more && n < len(to); {
		now, errno := p.begin()
		if errno != 0 {
			return n, errno
		}
		stop := index + chunk
		if end := uint64(p.store.made()) + 1; stop > end {
			stop = end
		}
		for ; index < stop && n < len(to); index++ {
			if p.store.exists(uint32(index)) {
				to[n] = p.look(uint32(index), now)
				n++
			}
		}
		more = index <= uint64(p.store.made())
		p.end(now)
	}
	*cursor = index
	return n, 0
}

func (p *process) drain(to []Entry, last bool) (int, syscall.Errno) {
	n, seen, end := 0, uint32(0), uint32(0)
	for {
		now, errno := p.begin()
		if errno != 0 {
			return n, errno
		}
		p.closed = p.closed || last
		// Visit all indices that exist now, beginning where the last call ended.
		if seen == 0 {
			end = p.store.made()
		}
		for i := 0; i < chunk && seen < end && n < len(to); i++ {
			if p.drained == 0 || p.drained > p.store.made() {
				p.drained = 1
			}
			if p.store.exists(p.drained) {
				to[n] = p.endTimer(p.drained, now)
				n++
				p.counts.Drained++
			}
			p.drained++
			seen++
		}
		p.end(now)
		if seen >= end || n >= len(to) {
			return n, 0
		}
	}
}

func (p *process) advance(by int64, flags uint32) (int, syscall.Errno) {
	if p.kind != Manual || by < 0 {
		return 0, syscall.EINVAL
	}
	now, errno := p.begin()
	if errno != 0 {
		return 0, errno
	}
	defer p.end(now)
	to := p.absolute(by, flags, now)
	if to < now {
		return 0, syscall.EINVAL
	}
	p.time = to
	return p.expire(to), 0
}

// deliver delivers the event of the first due timer.
func (p *process) deliver(now int64) Event {
	index := p.store.first
	t := p.store.at(index)
	e := Event{Key: t.key, Value: t.value, Deadline: t.deadline, Fired: t.fired, index: index}
	p.store.take(index)
	p.counts.Delivered++
	switch {
	case p.store.resident && t.period != 0:
		p.counts.Rearmed++
		p.store.linger(index, now)
		p.store.pend(index)
	case p.store.resident:
		p.counts.Rearmed++
		p.store.park(index)
	case t.period != 0:
		e.Flags = EventPeriodic
		if now > t.deadline {
			e.Overruns = uint64((now - t.deadline) / t.period)
		}
		p.counts.Rearmed++
		p.counts.Overruns += e.Overruns
		// The first deadline that has not passed.
		t.deadline = later(t.deadline+int64(e.Overruns)*t.period, t.period)
		p.store.pend(index)
	default:
		p.store.delete(index)
	}
	return e
}

func (p *process) take(_ uintptr, to []Event) (int, error) {
	now, errno := p.begin()
	if errno != 0 {
		return 0, ErrClosed
	}
	n := len(to)
	if uint64(n) > p.store.due {
		n = int(p.store.due)
	}
	for i := range to[:n] {
		to[i] = p.deliver(now)
	}
	// If the clock was set back, the descriptor may be readable too early: arm it again.
	if n == 0 && p.kind == Realtime {
		p.setWake(p.wanted())
	}
	p.end(now)
	return n, nil
}

func (p *process) memory() uint64 {
	s := &p.store
	n := s.blocksUsed*blockSize*int(unsafe.Sizeof(timer{})) + cap(s.blocks)*int(unsafe.Sizeof(block{})) +
		cap(s.heap)*int(unsafe.Sizeof(pending{})) + s.keys.Len()*32
	if s.table != nil {
		n += int(s.made()+1) * 8
	}
	return uint64(n)
}

func (p *process) info(info *Info) syscall.Errno {
	now, errno := p.begin()
	if errno != 0 {
		return errno
	}
	*info = Info{
		size: uint32(unsafe.Sizeof(*info)), Flags: infoSettled, ABIVersion: abiVersion,
		BatchMax: batchMax, Features: featureTable | featureHandle,
		TickMin: tickMin, TickMax: tickMax, SlotsMin: slotsMin, SlotsMax: slotsMax,
		CapacityMax: capacityMax, Clock: p.kind, Tick: p.tick, Capacity: p.store.capacity,
		Slack: p.slack, WakeEvents: 1, GenerationBits: p.store.bits, UserMemory: p.memory(),
		UserMemoryMax: 1<<64 - 1, Now: uint64(now), RingMax: ringMax,
		EventSize: uint32(unsafe.Sizeof(Event{})), EventSizeMax: uint32(unsafe.Sizeof(Event{})),
	}
	if p.closed {
		info.Flags |= infoClosed
	}
	if p.store.table != nil {
		info.Flags |= infoTable
	}
	if p.store.resident {
		info.Flags |= infoResident
	}
	p.end(now)
	return 0
}

func (p *process) stats(stats *Stats) syscall.Errno {
	now, errno := p.begin()
	if errno != 0 {
		return errno
	}
	*stats = p.counts
	stats.size = uint32(unsafe.Sizeof(*stats))
	stats.Pending = uint64(len(p.store.heap))
	stats.Due = p.store.due
	stats.Parked = p.store.parked
	stats.Memory = p.memory()
	p.end(now)
	return 0
}

func (p *process) share() (int, syscall.Errno) { return 0, syscall.EOPNOTSUPP }

func (p *process) monitor(uint32) (int, syscall.Errno) { return 0, syscall.EOPNOTSUPP }

func (p *process) backend() Backend { return Process }

func (p *process) shut() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
}

func (p *process) release() {}
