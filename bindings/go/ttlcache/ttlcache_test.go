// SPDX-License-Identifier: MIT OR GPL-2.0-only

package ttlcache

import (
	"fmt"
	"os"
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

// With a clock that the test advances: there until the very end, and not after it
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

// Entries that are touched do not end; the others all do, once.
func TestMany(t *testing.T) {
	eachBackend(t, func(t *testing.T, o *timerwheel.Options) {
		const count = 2000
		var ended [count]int32
		var touched [count]time.Time // when, if it was there
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
		time.Sleep(20 * time.Millisecond)
		for i := range ended {
			if n := atomic.LoadInt32(&ended[i]); n != 1 {
				t.Fatalf("%d ended %d times", i, n)
			}
		}
	})
}

// Entries that have ended leave their room to others, also if resident timers were asked for.
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
