// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"encoding/binary"
	"sort"
	"syscall"
	"testing"
)

// modelTimer is a timer of the model. The model of a wheel is a map of these.
type modelTimer struct {
	value    uint64
	deadline int64
	due      bool
}

// Perform the operations in the input with a clock that the test advances, and compare with a model.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 1, 10, 0, 2, 20, 3, 0, 15, 4, 0, 0, 1, 2, 5, 2, 1, 0, 5, 0, 0})
	seed := make([]byte, 3000)
	for i, x := 0, uint32(1); i < len(seed); i++ {
		x = x*1664525 + 1013904223
		seed[i] = byte(x >> 24)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, input []byte) {
		backends := []Backend{Process}
		if w, err := Open(&Options{Backend: Device}); err == nil {
			w.Close()
			backends = append(backends, Device)
		}
		for _, b := range backends {
			modelled(t, open(t, b, Options{Clock: Manual, Capacity: 8, Tick: 1}), input)
		}
	})
}

func modelled(t *testing.T, w *Wheel, input []byte) {
	model := map[uint64]modelTimer{}
	now := int64(0)
	// The deadline is absolute, relative or negative.
	when := func(x byte) (int64, uint32, int64) {
		deadline := int64(int8(x))
		if x%3 == 0 {
			at := now + deadline
			if at < 0 {
				return at, Abs, 0
			}
			return at, Abs, at
		}
		at := now + deadline
		if at < 0 {
			at = 0
		}
		return deadline, 0, at
	}
	for ; len(input) >= 3; input = input[3:] {
		key, x := uint64(input[1]%12), input[2]
		old, there := model[key]
		want := WasNone
		switch {
		case old.due:
			want = WasDue
		case there:
			want = WasPending
		}
		switch input[0] % 6 {
		case 0:
			deadline, flags, at := when(x)
			if x&64 != 0 {
				flags |= Excl
			}
			adds := []Add{{Key: key, Value: uint64(x), Deadline: deadline, Flags: flags}}
			if n, err := w.Add(adds); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			switch {
			case there && flags&Excl != 0:
				want = failed(syscall.EEXIST)
			case !there && len(model) >= 8:
				want = failed(syscall.ENOSPC)
			default:
				model[key] = modelTimer{uint64(x), at, at <= now}
			}
			expect(t, adds[0].Result, want)
		case 1:
			deadline, flags, at := when(x)
			if !there {
				want = failed(syscall.ENOENT)
			} else {
				model[key] = modelTimer{old.value, at, at <= now}
			}
			expect(t, move(t, w, Move{Key: key, Deadline: deadline, Flags: flags}), want)
		case 2:
			if !there {
				want = failed(syscall.ENOENT)
			}
			delete(model, key)
			expect(t, remove(t, w, Remove{Key: key}), want)
		case 3:
			now += int64(x % 32)
			n := 0
			for key, timer := range model {
				if !timer.due && timer.deadline <= now {
					timer.due = true
					model[key] = timer
					n++
				}
			}
			advance(t, w, now, n)
		case 4:
			events := make([]Event, 1+x%4)
			n, err := w.Take(events)
			if err != nil {
				t.Fatal(err)
			}
			due := 0
			for _, timer := range model {
				if timer.due {
					due++
				}
			}
			if n > due || (n == 0 && due > 0) {
				t.Fatalf("%d events, %d are due", n, due)
			}
			for _, e := range events[:n] {
				timer := model[e.Key]
				if !timer.due || e.Deadline != timer.deadline || e.Value != timer.value || e.Fired < e.Deadline {
					t.Fatalf("%+v, %+v", e, timer)
				}
				delete(model, e.Key)
			}
		case 5:
			var cursor Cursor
			var got, keys []uint64
			entries := make([]Entry, 1+x%5)
			for {
				n, err := w.List(entries, &cursor)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				for _, e := range entries[:n] {
					got = append(got, e.Key)
					expect(t, e.Deadline, model[e.Key].deadline)
				}
			}
			for key := range model {
				keys = append(keys, key)
			}
			sort.Slice(got, func(i, j int) bool { return got[i] < got[j] })
			sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
			expect(t, len(got), len(keys))
			for i := range keys {
				expect(t, got[i], keys[i])
			}
		}
	}
	balanced(t, w)
	w.Close()
}

// With any values in the deadline table, no timer fires early and none is lost.
func FuzzTable(f *testing.F) {
	f.Add([]byte("01234567abcdefgh"))
	f.Fuzz(func(t *testing.T, input []byte) {
		w := open(t, Process, Options{Clock: Manual, Resident: true})
		h := add(t, w, Add{Key: 1, Deadline: 100 * ms})[0].Handle
		for ; len(input) >= 8; input = input[8:] {
			*w.table.entry(h.index) = binary.LittleEndian.Uint64(input)
			n, err := w.AdvanceTo(w.Now() + 99*ms)
			if err != nil || n != 0 {
				t.Fatal(n, err)
			}
			if _, err := w.Advance(TimeMax - 1000); err != nil {
				t.Fatal(err)
			}
			w.Take(make([]Event, 2))
			expect(t, get(t, w, 1).Result >= 0, true)
			w.Close()
			w = open(t, Process, Options{Clock: Manual, Resident: true})
			h = add(t, w, Add{Key: 1, Deadline: 100 * ms})[0].Handle
		}
		w.Close()
	})
}
