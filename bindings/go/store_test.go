// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"math/rand"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// heapInUse returns the memory in use after a collection, in bytes.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// After a burst of timers, a wheel inside the process frees the memory. Handles of the burst stay
// invalid when the same indices have timers again.
func TestMemoryAfterBurst(t *testing.T) {
	const count, kept = 100000, 100
	for _, o := range []Options{{}, {Resident: true}} {
		o.Backend = Process
		w, err := Open(&o)
		if err != nil {
			t.Fatal(err)
		}
		adds := make([]Add, count)
		removes := make([]Remove, count-kept)
		olds := make([]RemoveHandle, count-kept)
		for i := range adds {
			adds[i] = Add{Key: uint64(i), Deadline: int64(time.Hour)}
		}
		before := heapInUse()
		add(t, w, adds...)
		peak := heapInUse() - before
		for i := range removes {
			removes[i].Key = uint64(kept + i)
			olds[i].Handle = adds[kept+i].Handle
		}
		if _, err := w.Remove(removes); err != nil {
			t.Fatal(err)
		}
		if left := int64(heapInUse() - before); left > int64(peak/10) {
			t.Errorf("%d of %d bytes are still in use", left, peak)
		}
		if s, _ := w.Stats(); s.Pending != kept || s.Memory > peak/10 {
			t.Errorf("%d timers, %d bytes", s.Pending, s.Memory)
		}
		add(t, w, adds[kept:]...)
		if _, err := w.RemoveHandles(olds); err != nil {
			t.Fatal(err)
		}
		for i := range olds {
			if olds[i].Result() != failed(syscall.ENOENT) {
				t.Fatal("a handle of the burst removed timer", i, olds[i].Result())
			}
		}
		w.Close()
		runtime.KeepAlive(adds)
	}
}

// Add and remove timers in random order. No index is used twice, no index is above the capacity, and
// the whole capacity can be used.
func TestIndices(t *testing.T) {
	const capacity = 50*blockSize + 3
	s := store{capacity: capacity, bits: 10}
	key, used := uint64(0), map[uint32]uint64{}
	last := map[uint32]uint32{} // the last generations
	create := func() bool {
		key++
		index, errno := s.create(key)
		if errno != 0 {
			return false
		}
		if index < 1 || index > capacity || used[index] != 0 || s.keys.Get(key) != index {
			t.Fatal("index", index)
		}
		if g := s.at(index).generation; g == 0 || g == last[index] {
			t.Fatal("generation", g, "again")
		}
		used[index], last[index] = key, s.at(index).generation
		return true
	}
	for round := 0; round < 400; round++ {
		// All, none or some of the timers stay.
		for index := range used {
			if rand.Intn(3) < round%4 {
				s.delete(index)
				delete(used, index)
			}
		}
		for n := rand.Intn(capacity); n > 0 && create(); n-- {
		}
		for index := uint32(0); index <= capacity+1; index++ {
			if s.exists(index) != (used[index] != 0) {
				t.Fatal(index, "exists:", s.exists(index))
			}
		}
		memory := 0
		for i := range s.blocks {
			if s.blocks[i].timers != nil {
				memory++
			}
		}
		if memory != s.blocksUsed || memory > len(used)+spareBlocks || s.empty > spareBlocks {
			t.Fatal(memory, s.blocksUsed, len(used))
		}
	}
	for create() {
	}
	if len(used) != capacity {
		t.Fatal(len(used))
	}
}
