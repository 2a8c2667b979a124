// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"sync/atomic"
	"syscall"

	"timerwheel/internal/shrink"
)

// store has the timers of the process back end, by key and by index. A heap has the pending timers,
// and a list has the due timers, in the order in which they fell due. The store has neither a clock
// nor a lock. Its memory is proportional to the number of timers, plus 4 bytes for each index ever
// used.
type store struct {
	blocks     []block
	keys       shrink.Map[uint64, uint32]
	heap       []pending
	table      *Table // nil: none
	capacity   uint32
	bits       uint32
	resident   bool
	open       uint32 // the number of the first block that has room, plus 1; 0: none
	blocksUsed int    // blocks that have memory
	empty      int    // blocks that have memory and no timer: at most spareBlocks
	due        uint64
	first      uint32 // first due timer; 0: none
	last       uint32 // last due timer; 0: none
	parked     uint64
}

const (
	blockSize = 32
	// Kept, so that adding and removing timers in batches does not allocate each time.
	spareBlocks = 16
)

// block has the timers of blockSize indices, from block number * blockSize + 1 on. A block that has
// room is in the list of these blocks.
type block struct {
	timers *[blockSize]timer // nil: no timer exists
	// The last generations, if timers is nil: handles of earlier timers must stay invalid.
	generations []uint32
	made        uint32 // indices that were ever used
	live        uint32
	free        uint32 // first index that is free again; 0: none
	next        uint32 // number of the next block that has room, plus 1; 0: none
}

type timerState uint8

const (
	free    timerState = iota
	nowhere            // it exists, but is in none of the following states
	queued             // in the heap
	due                // in the list
	parked             // in neither: cancelled, or resident and delivered
)

type timer struct {
	key, value uint64
	deadline   int64
	period     int64 // or, if resident, linger
	fired      int64 // if due
	slack      uint64
	generation uint32
	next, prev uint32 // if due; if free: next
	place      int    // if queued: in the heap
	state      timerState
}

type pending struct {
	deadline int64
	index    uint32
}

// The state of an entry is in its two lowest bits: generations are multiples of this.
const generationStep = stateFired + 1

func (s *store) low() uint64 { return 1<<s.bits - 1 }

func (s *store) entry(index uint32) *uint64 { return s.table.entry(index) }

// made returns the largest index that was ever used.
func (s *store) made() uint32 {
	n := uint32(len(s.blocks))
	if n == 0 {
		return 0
	}
	return (n-1)*blockSize + s.blocks[n-1].made
}

// at returns a timer that exists.
func (s *store) at(index uint32) *timer {
	return &s.blocks[(index-1)/blockSize].timers[(index-1)%blockSize]
}

func (s *store) exists(index uint32) bool {
	return index-1 < s.made() && s.blocks[(index-1)/blockSize].timers != nil &&
		s.at(index).state != free
}

// room returns how many indices block n has. The last one ends at the capacity.
func (s *store) room(n uint32) uint32 {
	if left := s.capacity - n*blockSize; left < blockSize {
		return left
	}
	return blockSize
}

// place returns an index that is free, or 0 if there is none.
func (s *store) place() uint32 {
	if s.open == 0 {
		n := uint32(len(s.blocks))
		if n*blockSize >= s.capacity {
			return 0
		}
		s.blocks = append(s.blocks, block{})
		s.open = n + 1
	}
	n := s.open - 1
	b := &s.blocks[n]
	if b.timers == nil {
		b.timers = new([blockSize]timer)
		s.blocksUsed++
		for i := b.made; i > 0; i-- {
			b.timers[i-1].generation = b.generations[i-1]
			b.timers[i-1].next = b.free
			b.free = n*blockSize + i
		}
		b.generations = nil
	} else if b.live == 0 {
		s.empty--
	}
	index := b.free
	if index != 0 {
		b.free = s.at(index).next
	} else {
		b.made++
		index = n*blockSize + b.made
	}
	b.live++
	if b.live == s.room(n) {
		s.open = b.next
	}
	return index
}

// vacate makes an index free. It frees the memory of an empty block, but keeps spareBlocks of them.
func (s *store) vacate(index uint32) {
	n := (index - 1) / blockSize
	b, t := &s.blocks[n], s.at(index)
	t.state = free
	t.next = b.free
	b.free = index
	if b.live == s.room(n) {
		b.next = s.open
		s.open = n + 1
	}
	b.live--
	if b.live > 0 {
		return
	}
	if s.empty < spareBlocks {
		s.empty++
		return
	}
	b.generations = make([]uint32, b.made)
	for i := range b.generations {
		b.generations[i] = b.timers[i].generation
	}
	b.timers, b.free = nil, 0
	s.blocksUsed--
}

// create creates a timer in the state nowhere. The errors are the errors of an element of Add.
func (s *store) create(key uint64) (uint32, syscall.Errno) {
	index := s.place()
	if index == 0 {
		return 0, syscall.ENOSPC
	}
	t := s.at(index)
	t.key = key
	t.state = nowhere
	t.generation = (t.generation + generationStep) & uint32(s.low())
	// 0 is the content of an unused entry of the deadline table, so it cannot be a generation.
	if t.generation == 0 {
		t.generation = generationStep
	}
	s.keys.Set(key, index)
	return index, 0
}

func (s *store) delete(index uint32) {
	s.keys.Delete(s.at(index).key)
	s.vacate(index)
}

func (s *store) owned(h Handle) bool {
	return s.exists(h.index) && s.at(h.index).generation == h.generation
}

// ---- heap and list ----

func (s *store) put(place int, p pending) {
	s.heap[place] = p
	s.at(p.index).place = place
}

func (s *store) up(place int, p pending) {
	for place > 0 {
		parent := (place - 1) / 4
		if s.heap[parent].deadline <= p.deadline {
			break
		}
		s.put(place, s.heap[parent])
		place = parent
	}
	s.put(place, p)
}

func (s *store) down(place int, p pending) {
	for {
		least, end := place*4+1, place*4+5
		if least >= len(s.heap) {
			break
		}
		if end > len(s.heap) {
			end = len(s.heap)
		}
		for child := least + 1; child < end; child++ {
			if s.heap[child].deadline < s.heap[least].deadline {
				least = child
			}
		}
		if s.heap[least].deadline >= p.deadline {
			break
		}
		s.put(place, s.heap[least])
		place = least
	}
	s.put(place, p)
}

func (s *store) pend(index uint32) {
	p := pending{s.at(index).deadline, index}
	s.at(index).state = queued
	s.heap = append(s.heap, p)
	s.up(len(s.heap)-1, p)
}

func (s *store) setDue(index uint32) {
	t := s.at(index)
	t.state = due
	t.next, t.prev = 0, s.last
	if s.last != 0 {
		s.at(s.last).next = index
	} else {
		s.first = index
	}
	s.last = index
	s.due++
}

func (s *store) park(index uint32) {
	s.at(index).state = parked
	s.parked++
}

// take removes a timer from the heap or the list.
func (s *store) take(index uint32) {
	t := s.at(index)
	switch t.state {
	case queued:
		place, last := t.place, s.heap[len(s.heap)-1]
		was := s.heap[place].deadline
		s.heap = s.heap[:len(s.heap)-1]
		if n := len(s.heap); n >= 1024 && n < cap(s.heap)/4 {
			s.heap = append(make([]pending, 0, 2*n), s.heap...)
		}
		if place < len(s.heap) {
			if last.deadline < was {
				s.up(place, last)
			} else {
				s.down(place, last)
			}
		}
	case due:
		if t.prev != 0 {
			s.at(t.prev).next = t.next
		} else {
			s.first = t.next
		}
		if t.next != 0 {
			s.at(t.next).prev = t.prev
		} else {
			s.last = t.prev
		}
		s.due--
	case parked:
		s.parked--
	}
	t.state = nowhere
}

// ---- the deadline table ----

// decode is the deadline of an entry.
func (s *store) decode(stored uint64) int64 {
	if deadline := stored &^ s.low(); deadline < TimeMax {
		return int64(deadline)
	}
	return TimeMax
}

// encode is the entry of a timer, with the deadline rounded up.
func (s *store) encode(t *timer, deadline int64, state uint64) uint64 {
	if end := int64(TimeMax &^ s.low()); deadline > end {
		deadline = end
	}
	return (uint64(deadline)+s.low())&^s.low() | uint64(t.generation) | state
}

// valid reports whether an entry can belong to this pending timer.
func (s *store) valid(t *timer, stored uint64) bool {
	return (stored^uint64(t.generation))&s.low()&^stateArmed == 0
}

func (s *store) cancelled(t *timer, stored uint64) bool {
	return s.valid(t, stored) && stored&stateArmed == 0
}

// postpone postpones a pending timer if its entry holds a later deadline. It reports whether the timer
// is armed.
func (s *store) postpone(index uint32, stored uint64) bool {
	t := s.at(index)
	if deadline := s.decode(stored); s.valid(t, stored) && deadline > t.deadline {
		t.deadline = deadline
		s.down(t.place, pending{deadline, index})
	}
	return !s.cancelled(t, stored)
}

// touched calls postpone with the current entry of a pending timer.
func (s *store) touched(index uint32) bool {
	if s.table == nil {
		return true
	}
	return s.postpone(index, atomic.LoadUint64(s.entry(index)))
}

type visit int

const (
	postponed visit = iota
	fired
	lapsed // it was cancelled
)

// visit reads the entry of a pending timer whose deadline has passed, and ends the arming unless it was
// postponed. The program cannot cancel the arming after that.
func (s *store) visit(index uint32) visit {
	if s.table == nil {
		return fired
	}
	t, entry := s.at(index), s.entry(index)
	before := t.deadline
	stored := atomic.LoadUint64(entry)
	armed := s.postpone(index, stored)
	switch {
	case t.deadline > before:
		return postponed
	case !s.valid(t, stored):
		atomic.StoreUint64(entry, s.encode(t, t.deadline, stateFired))
		return fired
	case !atomic.CompareAndSwapUint64(entry, stored, stored|stateParked):
		return postponed
	case armed:
		return fired
	}
	return lapsed
}

var was = [...]Result{nowhere: WasNone, queued: WasPending, due: WasDue, parked: WasParked}

// set writes the entry of a timer, and its deadline. EEXIST: it is armed or due, and
// unless says so.
func (s *store) set(index uint32, deadline, now int64, unless bool) Result {
	t, entry := s.at(index), s.entry(index)
	want := s.encode(t, deadline, 0)
	// Near the maximum an entry has an earlier deadline, which may have passed.
	if deadline > now {
		deadline = s.decode(want)
	}
	if deadline > now {
		want |= stateArmed
	} else {
		want |= stateFired
	}
	if unless && t.state == due {
		return failed(syscall.EEXIST)
	}
	var old uint64
	if unless && t.state == queued {
		old = atomic.LoadUint64(entry)
		// If the swap fails, the program has armed the timer in the meantime.
		if !s.cancelled(t, old) || !atomic.CompareAndSwapUint64(entry, old, want) {
			return failed(syscall.EEXIST)
		}
	} else {
		old = atomic.SwapUint64(entry, want)
	}
	t.deadline = deadline
	if t.state == queued && s.cancelled(t, old) {
		return WasParked
	}
	return was[t.state]
}

// linger prepares a resident timer whose event was delivered: it will be queued as cancelled.
func (s *store) linger(index uint32, now int64) {
	t := s.at(index)
	entry := s.encode(t, later(now, t.period), stateCancelled)
	t.deadline = s.decode(entry)
	atomic.StoreUint64(s.entry(index), entry)
}

// disown takes the entry of a timer away from programs. It is as touched.
func (s *store) disown(index uint32) bool {
	old := atomic.SwapUint64(s.entry(index), 0)
	return s.at(index).state != queued || s.postpone(index, old)
}

// later returns the sum of a time and a positive duration, at most TimeMax.
func later(a, b int64) int64 {
	if b > TimeMax-a {
		return TimeMax
	}
	return a + b
}
