// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import "sync"

// Queue gathers operations, so that one call performs many of them. Operations on the same key are
// performed in the order in which they were queued, operations on different keys in any order. Any
// number of goroutines may use a queue at the same time.
type Queue struct {
	w      *Wheel
	room   int
	failed func(key uint64, err error)

	mu      sync.Mutex
	adds    []Add
	moves   []Move
	removes []Remove
	kinds   map[uint64]call // the kind of the operations that are queued for a key
}

// NewQueue creates a queue. If room operations are queued, the next operation flushes the queue first;
// 0: 256. The queue calls failed for each operation that failed. failed may be nil, and must not use
// the queue.
func (w *Wheel) NewQueue(room int, failed func(key uint64, err error)) *Queue {
	if room <= 0 {
		room = 256
	}
	if failed == nil {
		failed = func(uint64, error) {}
	}
	return &Queue{w: w, room: room, failed: failed, kinds: map[uint64]call{}}
}

// Add queues an Add. A relative deadline counts from the flush. If a flush is needed first and fails,
// Add returns the error of the flush, and does not queue the operation.
func (q *Queue) Add(a Add) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.put(a.Key, callAdd); err != nil {
		return err
	}
	q.adds = append(q.adds, a)
	return nil
}

// Move queues a Move. It returns the same errors as Add.
func (q *Queue) Move(m Move) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.put(m.Key, callMove); err != nil {
		return err
	}
	q.moves = append(q.moves, m)
	return nil
}

// Remove queues a Remove. It returns the same errors as Add.
func (q *Queue) Remove(r Remove) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.put(r.Key, callRemove); err != nil {
		return err
	}
	q.removes = append(q.removes, r)
	return nil
}

// Flush performs all queued operations, and reports those that fail to the function of NewQueue. In an
// event loop, call it before each [Wheel.Take] or [Wheel.Read]. If a call fails, Flush returns its
// error, and the remaining operations stay queued. The errors are the errors of [Wheel.Add].
func (q *Queue) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.flush()
}

// put makes room for an operation. Invariant: all queued operations on a key are of one kind, so the
// kinds can be flushed in any order.
func (q *Queue) put(key uint64, kind call) error {
	queued, some := q.kinds[key]
	if (some && queued != kind) || len(q.adds)+len(q.moves)+len(q.removes) >= q.room {
		if err := q.flush(); err != nil {
			return err
		}
	}
	q.kinds[key] = kind
	return nil
}

func (q *Queue) flush() error {
	n, err := q.w.Add(q.adds)
	for _, a := range q.adds[:n] {
		q.report(a.Key, a.Result)
	}
	q.adds = rest(q.adds, n)
	if err != nil {
		return err
	}
	n, err = q.w.Move(q.moves)
	for _, m := range q.moves[:n] {
		q.report(m.Key, m.Result)
	}
	q.moves = rest(q.moves, n)
	if err != nil {
		return err
	}
	n, err = q.w.Remove(q.removes)
	for _, r := range q.removes[:n] {
		q.report(r.Key, r.Result)
	}
	q.removes = rest(q.removes, n)
	if err != nil {
		return err
	}
	q.kinds = map[uint64]call{}
	return nil
}

func (q *Queue) report(key uint64, result Result) {
	if result < 0 {
		q.failed(key, result.Err())
	}
}

// rest drops the first n elements of a slice and keeps its memory.
func rest[T any](elems []T, n int) []T { return elems[:copy(elems, elems[n:])] }
