// SPDX-License-Identifier: MIT OR GPL-2.0-only

package bench

import (
	"container/list"
	"time"
)

// slotWheel is a wheel of slots with lists, as many Go programs have one. One goroutine owns it, and each
// operation is a message to this goroutine.
type slotWheel struct {
	set    chan slotTask
	remove chan int
	stop   chan struct{}
}

type slotTask struct {
	key   int
	value any
	delay time.Duration
}

type slotEntry struct {
	slotTask
	turns int
}

func newSlotWheel(interval time.Duration, slots int, execute func(key int, value any)) *slotWheel {
	w := &slotWheel{make(chan slotTask), make(chan int), make(chan struct{})}
	go w.run(interval, slots, execute)
	return w
}

func (w *slotWheel) run(interval time.Duration, slots int, execute func(key int, value any)) {
	lists := make([]list.List, slots)
	where := map[int]*list.Element{}
	in := map[int]int{}
	at := 0
	drop := func(key int) {
		if e := where[key]; e != nil {
			lists[in[key]].Remove(e)
			delete(where, key)
			delete(in, key)
		}
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case t := <-w.set:
			drop(t.key)
			steps := int(t.delay/interval) + 1
			slot := (at + steps) % slots
			where[t.key] = lists[slot].PushBack(&slotEntry{t, steps / slots})
			in[t.key] = slot
		case key := <-w.remove:
			drop(key)
		case <-ticker.C:
			at = (at + 1) % slots
			for e := lists[at].Front(); e != nil; {
				next, entry := e.Next(), e.Value.(*slotEntry)
				if entry.turns--; entry.turns < 0 {
					drop(entry.key)
					execute(entry.key, entry.value)
				}
				e = next
			}
		case <-w.stop:
			return
		}
	}
}
