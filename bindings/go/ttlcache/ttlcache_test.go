// SPDX-License-Identifier: MIT OR GPL-2.0-only

package ttlcache

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"timerwheel"
)

func eachBackend(t *testing.T, test func(t *testing.T, o *timerwheel.Options)) {
	t.Run("process", func(t *testing.T) { test(t, &timerwheel.Options{Backend: timerwheel.Process}) })
	t.Run("device", func(t *testing.T) {
		if _, err := os.Stat("/dev/timerwheel"); err != nil && os.Getenv("TIMERWHEEL_BACKEND") != "device" {
			t.Skip("no device")
		}
		test(t, &timerwheel.Options{Backend: timerwheel.Device})
	})
}

// With a clock that the test advances, an entry exists until its end, and not after it.
func TestExpiry(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		o.Clock = timerwheel.Manual
		ended := make(chan string, 10)
		c, err := New(o, func(key string, value int) { ended <- fmt.Sprint(key, value) })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := c.timers.Wheel()
		to := func(ms int64) {
			t.Helper()
			if _, err := w.AdvanceTo(ms * 1e6); err != nil {
				t.Fatal(err)
			}
		}
		want := func(key string, value int) {
			t.Helper()
			got, there := c.Get(key)
			if there != (value != 0) || got != value {
				t.Fatalf("%s: %d", key, got)
			}
		}
		c.Set("a", 1, 100*time.Millisecond)
		c.Set("b", 2, 100*time.Millisecond)
		c.Set("c", 3, time.Hour)
		c.Set("past", 4, -1)
		want("past", 0)
		if got := <-ended; got != "past 4" && got != "past4" {
			t.Fatal(got)
		}
		to(99)
		want("a", 1)
		if v, ok := c.Touch("b"); !ok || v != 2 {
			t.Fatal(v, ok)
		}
		c.Set("c", 5, 60*time.Millisecond)
		to(100)
		want("a", 0)
		want("b", 2)
		if _, ok := c.Touch("a"); ok {
			t.Fatal("it came back")
		}
		to(102)
		if got := <-ended; got != "a1" && got != "a 1" {
			t.Fatal(got)
		}
		if n := c.Len(); n != 2 {
			t.Fatal(n)
		}
		to(198)
		want("b", 2)
		want("c", 0)
		if got := <-ended; got != "c5" && got != "c 5" {
			t.Fatal(got)
		}
		if !c.Delete("b") || c.Delete("b") {
			t.Fatal("delete")
		}
		to(10000)
		want("b", 0)
		c.Close()
		if len(ended) != 0 || c.Len() != 0 {
			t.Fatal(<-ended)
		}
		if err := c.Set("d", 1, 1); err != timerwheel.ErrClosed {
			t.Fatal(err)
		}
	})
}

// Touched entries do not end. Every other entry ends once.
func TestMany(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		const count = 2000
		var ended [count]int32
		var touched [count]time.Time // time of the last successful Touch
		const ttl = 300 * time.Millisecond
		c, err := New(o, func(key int, value int) { atomic.AddInt32(&ended[key], 1) })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		for i := 0; i < count; i++ {
			if err := c.Set(i, i, ttl); err != nil {
				t.Fatal(err)
			}
		}
		for end := begin.Add(900 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			for i := 0; i < count; i += 10 {
				touched[i] = time.Now()
				if _, ok := c.Touch(i); !ok {
					touched[i] = time.Time{}
				}
			}
		}
		for i := range touched {
			if atomic.LoadInt32(&ended[i]) != 0 && time.Since(touched[i]) < ttl {
				t.Fatal(i, "ended early")
			}
		}
		for end := time.Now().Add(time.Minute); c.Len() > 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		// Close waits for the calls of ended.
		if n := c.Len(); n != 0 || c.Close() != nil {
			t.Fatal(n, "entries have not ended")
		}
		for i := range ended {
			if n := atomic.LoadInt32(&ended[i]); n != 1 {
				t.Fatalf("%d ended %d times", i, n)
			}
		}
	})
}

// Ended entries make room for others, even if the options ask for resident timers.
func TestResident(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		o.Capacity, o.Resident = 100, true
		ended := make(chan int, 1)
		c, err := New(o, func(key, value int) { ended <- key })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := 0; i < 250; i++ {
			if err := c.Set(i, i, 0); err != nil {
				t.Fatal(i, err)
			}
			if got := <-ended; got != i {
				t.Fatal(got)
			}
		}
		if !o.Resident {
			t.Fatal("the caller's options were changed")
		}
	})
}

// The time of a value has passed, but its event was not read yet. If the value is now replaced, deleted
// or left in a cache that is closed, the cache calls ended for it. Other values end without a call.
func TestExpiredBeforeEvent(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		o.Clock = timerwheel.Manual
		ended := make(chan string, 10)
		c, err := New(o, func(key string, value int) { ended <- fmt.Sprintf("%s%d", key, value) })
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range []string{"replaced", "deleted", "closed"} {
			c.Set("live "+key, i, time.Hour)
			c.Set(key, i, 100*time.Millisecond)
		}
		// The wheel loses its timers, so their events cannot come first.
		w := c.timers.Wheel()
		if n, err := w.Drain(make([]timerwheel.Entry, 10), false); n != 6 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := w.AdvanceTo(100e6); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"replaced", "deleted", "closed"} {
			if _, there := c.Get(key); there {
				t.Fatal(key)
			}
		}
		if err := c.Set("replaced", 5, time.Hour); err != nil {
			t.Fatal(err)
		}
		if v, there := c.Get("replaced"); v != 5 || !there {
			t.Fatal(v, there)
		}
		c.Set("live replaced", 6, time.Hour)
		if got := <-ended; got != "replaced0" {
			t.Fatal(got)
		}
		if c.Delete("deleted") || !c.Delete("live deleted") || c.Delete("deleted") {
			t.Fatal("delete")
		}
		if got := <-ended; got != "deleted1" {
			t.Fatal(got)
		}
		c.Close()
		if got := <-ended; got != "closed2" || len(ended) != 0 {
			t.Fatal(got, len(ended))
		}
	})
}

// Goroutines set, read, touch and delete entries while their times pass. Each value ends exactly once, in
// the way that the results of the calls imply, and the values of a key end in order.
func TestEachValueEndsOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		const keys, rounds = 16, 400
		const never, once, either = 0, 1, 2
		var closed int32
		var ended [keys][rounds]int32
		var last [keys]int
		c, err := New(o, func(key, value int) {
			if atomic.LoadInt32(&closed) != 0 {
				t.Error("called after Close")
			}
			if value == rounds-1 {
				// Close waits for this call.
				time.Sleep(20 * time.Millisecond)
			}
			atomic.AddInt32(&ended[key][value], 1)
			// Calls for a key do not overlap: the race detector would find that.
			if value < last[key] {
				t.Errorf("%d of key %d has ended after %d", value, key, last[key])
			}
			last[key] = value
		})
		if err != nil {
			t.Fatal(err)
		}
		var want [keys][rounds]int
		var all sync.WaitGroup
		for key := 0; key < keys; key++ {
			all.Add(1)
			go func(key int) {
				defer all.Done()
				r := rand.New(rand.NewSource(int64(key)))
				for value := 0; value < rounds; value++ {
					ttl := time.Duration(r.Intn(3000)) * time.Microsecond
					want[key][value] = either
					switch n := r.Intn(8); {
					case n == 0 || value == rounds-1:
						ttl, want[key][value] = -ttl, once
					case n == 1:
						ttl, want[key][value] = time.Hour, never
					}
					if err := c.Set(key, value, ttl); err != nil {
						t.Error(err)
						return
					}
					c.Get(r.Intn(keys))
					c.Touch(r.Intn(keys))
					if r.Intn(2) == 0 {
						time.Sleep(time.Duration(r.Intn(2000)) * time.Microsecond)
					}
					v, there := c.Get(key)
					switch {
					case there && v != value:
						t.Errorf("%d instead of %d", v, value)
					case !there && want[key][value] == never:
						t.Errorf("%d has ended early", value)
					case !there:
						want[key][value] = once
					}
					if r.Intn(4) == 0 {
						switch deleted := c.Delete(key); {
						case deleted && want[key][value] == once:
							t.Errorf("%d was deleted after its end", value)
						case deleted:
							want[key][value] = never
						case want[key][value] == never:
							t.Errorf("%d was not there to be deleted", value)
						default:
							want[key][value] = once
						}
					}
				}
			}(key)
		}
		all.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		atomic.StoreInt32(&closed, 1)
		for key := range ended {
			for value, w := range want[key] {
				if n := ended[key][value]; n > 1 || (w != either && int(n) != w) {
					t.Errorf("key %d, value %d ended %d times: %d", key, value, n, w)
				}
			}
		}
	})
}

// A call of ended that blocks delays neither other keys nor other caches. Further values of its key
// wait for it.
func TestSlowEnded(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		release, slow, other := make(chan bool), make(chan int, 10), make(chan int, 10)
		ended := func(key, value int) {
			if key != 0 {
				other <- key
				return
			}
			<-release
			slow <- value
		}
		var caches [2]*Cache[int, int]
		for i := range caches {
			c, err := New(o, ended)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			caches[i] = c
		}
		for value := 1; value <= 3; value++ {
			caches[0].Set(0, value, 0)
		}
		for key := 1; key < 1000; key++ {
			caches[key%2].Set(key, key, 0)
			if got := <-other; got != key {
				t.Fatal(got, "instead of", key)
			}
		}
		if len(slow) != 0 {
			t.Fatal("not blocked")
		}
		for value := 1; value <= 3; value++ {
			release <- true
			if got := <-slow; got != value {
				t.Fatal(got, "instead of", value)
			}
		}
	})
}

// After a burst of entries, deleted or expired, the cache frees their memory.
func TestMemoryAfterBurst(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const count = 100000
	for _, expires := range []bool{false, true} {
		o := timerwheel.Options{Backend: timerwheel.Process, Clock: timerwheel.Manual}
		var ended int32
		c, err := New(&o, func(key, value int) { atomic.AddInt32(&ended, 1) })
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		for i := 0; i < count; i++ {
			c.Set(i, i, time.Minute)
		}
		peak := heap() - before
		if expires {
			c.timers.Wheel().Advance(time.Minute + time.Millisecond)
			for atomic.LoadInt32(&ended) < count {
				time.Sleep(10 * time.Millisecond)
			}
		} else {
			for i := 0; i < count; i++ {
				c.Delete(i)
			}
		}
		if left := heap() - before; left > peak/10 {
			t.Errorf("expires %v: %d of %d bytes are still in use", expires, left, peak)
		}
		c.Close()
	}
}

func Example() {
	c, err := New(nil, func(name string, n int) {})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	c.Set("answer", 42, time.Minute)
	fmt.Println(c.Get("answer"))
	fmt.Println(c.Get("question"))
	// Output:
	// 42 true
	// 0 false
}
