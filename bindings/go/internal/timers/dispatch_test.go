// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timers

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Each job runs once. Jobs of a key run one after another, in their order.
func TestDispatchOrder(t *testing.T) {
	const keys, rounds = 500, 100
	var running, done [keys]int32
	d := NewDispatcher(func(job [2]int) {
		key, n := job[0], job[1]
		if atomic.AddInt32(&running[key], 1) != 1 || atomic.AddInt32(&done[key], 1) != int32(n) {
			t.Errorf("key %d: job %d runs after %d others", key, n, done[key]-1)
		}
		if n%16 == 0 {
			runtime.Gosched()
		}
		atomic.AddInt32(&running[key], -1)
	})
	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		go func(worker int) {
			defer all.Done()
			for n := 1; n <= rounds; n++ {
				for key := worker; key < keys; key += 4 {
					d.Add(key, [2]int{key, n})
				}
			}
		}(worker)
	}
	all.Wait()
	d.Wait()
	for key := range done {
		if done[key] != rounds {
			t.Fatal(key, done[key])
		}
	}
	if d.lines.Len() != 0 || d.queue.len() != 0 || d.workers != 0 {
		t.Fatal(d.lines.Len(), d.queue.len(), d.workers)
	}
}

// Blocked calls delay only jobs of their keys, until Workers calls are blocked.
func TestDispatchBlocked(t *testing.T) {
	block, others := make(chan bool), make(chan int)
	d := NewDispatcher(func(key int) {
		if key < Workers {
			<-block
		} else {
			others <- key
		}
	})
	for key := 0; key < Workers-1; key++ {
		d.Add(key, key)
		d.Add(key, key)
	}
	for key := Workers; key < Workers+1000; key++ {
		d.Add(key, key)
		if got := <-others; got != key {
			t.Fatal(got, "instead of", key)
		}
	}
	d.Add(Workers-1, Workers-1)
	d.Add(Workers, Workers)
	d.mu.Lock()
	if d.workers != Workers || d.queue.len() == 0 {
		t.Error(d.workers, "goroutines", d.queue.len(), "keys wait")
	}
	d.mu.Unlock()
	close(block)
	if got := <-others; got != Workers {
		t.Fatal(got)
	}
	d.Wait()
}

// A call that ends its goroutine, as t.FailNow in a callback does, ends no other job.
func TestDispatchGoexit(t *testing.T) {
	var ran int32
	d := NewDispatcher(func(int) {
		atomic.AddInt32(&ran, 1)
		runtime.Goexit()
	})
	for i := 0; i < 1000; i++ {
		d.Add(i%100, i)
	}
	d.Wait()
	if ran != 1000 {
		t.Fatal(ran)
	}
}
