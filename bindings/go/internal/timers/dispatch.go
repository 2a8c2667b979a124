// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timers

import (
	"sync"

	"timerwheel/internal/shrink"
)

// Workers is the largest number of calls that a Dispatcher makes at the same time.
const Workers = 64

// Dispatcher calls a function of the program for each job, in goroutines that end when there is no job
// left. Jobs of one key run one after another, in the order of Add. Jobs of other keys do not wait for
// them unless Workers calls are running.
type Dispatcher[J any] struct {
	call func(J)

	mu      sync.Mutex
	idle    sync.Cond // signalled when workers becomes 0
	queue   queue[*line[J]]
	workers int
	// The keys whose jobs are running or waiting in the queue.
	lines shrink.Any[*line[J]]
}

// line has the jobs of a key that have not started.
type line[J any] struct {
	key  any
	jobs queue[J]
}

// NewDispatcher creates a Dispatcher. call may call Add, but not Wait.
func NewDispatcher[J any](call func(J)) *Dispatcher[J] {
	d := &Dispatcher[J]{call: call}
	d.idle.L = &d.mu
	return d
}

// Add adds a job. It does not block.
func (d *Dispatcher[J]) Add(key any, job J) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lines.Get(key)
	if l == nil {
		l = &line[J]{key: key}
		d.lines.Set(key, l)
		d.queue.add(l)
	}
	l.jobs.add(job)
	d.start()
}

// Wait waits until all jobs are done.
func (d *Dispatcher[J]) Wait() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.workers > 0 {
		d.idle.Wait()
	}
}

func (d *Dispatcher[J]) start() {
	if d.queue.len() > 0 && d.workers < Workers {
		d.workers++
		go d.work()
	}
}

func (d *Dispatcher[J]) work() {
	var l *line[J]
	d.mu.Lock()
	// The lock is held here even if a call has ended the goroutine (runtime.Goexit).
	defer func() {
		if l != nil {
			d.queue.add(l)
		}
		d.workers--
		d.start()
		if d.workers == 0 {
			d.idle.Broadcast()
		}
		d.mu.Unlock()
	}()
	for d.queue.len() > 0 {
		l = d.queue.take()
		for l.jobs.len() > 0 {
			d.run(l.jobs.take())
		}
		d.lines.Delete(l.key)
		l = nil
	}
}

// run makes a call without the lock.
func (d *Dispatcher[J]) run(job J) {
	d.mu.Unlock()
	defer d.mu.Lock()
	d.call(job)
}

// queue is a queue whose memory is proportional to its length.
type queue[T any] struct {
	jobs []T
	head int
}

func (q *queue[T]) len() int { return len(q.jobs) - q.head }

func (q *queue[T]) add(job T) { q.jobs = append(q.jobs, job) }

func (q *queue[T]) take() T {
	var none T
	job := q.jobs[q.head]
	q.jobs[q.head] = none // for the collector
	q.head++
	if q.head*2 >= len(q.jobs) {
		q.jobs = append([]T(nil), q.jobs[q.head:]...)
		q.head = 0
	}
	return job
}
