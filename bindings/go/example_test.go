// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"timerwheel"
)

const ms = int64(time.Millisecond)

func Example() {
	w, err := timerwheel.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	adds := []timerwheel.Add{
		{Key: 1, Value: 100, Deadline: 300 * ms},
		{Key: 2, Value: 200, Deadline: 100 * ms},
		{Key: 3, Value: 300, Deadline: int64(time.Hour)},
	}
	if _, err := w.Add(adds); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Remove([]timerwheel.Remove{{Key: 3}}); err != nil {
		log.Fatal(err)
	}
	events := make([]timerwheel.Event, 64)
	for left := 2; left > 0; {
		n, err := w.Read(context.Background(), events)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range events[:n] {
			fmt.Printf("timer %d, value %d\n", e.Key, e.Value)
		}
		left -= n
	}
	// Output:
	// timer 2, value 200
	// timer 1, value 100
}

// Arm and cancel a timeout for each request in memory.
func ExampleTimer() {
	w, err := timerwheel.Open(&timerwheel.Options{Resident: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	timeout, err := w.NewTimer(1, 0, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	for request := 1; request <= 3; request++ {
		if err := timeout.Arm(30 * time.Second); err != nil {
			log.Fatal(err)
		}
		// ... the answer arrives ...
		fmt.Println("answered in time:", timeout.Cancel())
	}
	// Output:
	// answered in time: true
	// answered in time: true
	// answered in time: true
}

// Test an hour without waiting, with a clock that only the test advances.
func ExampleWheel_Advance() {
	w, err := timerwheel.Open(&timerwheel.Options{Clock: timerwheel.Manual})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	w.Add([]timerwheel.Add{{Key: 7, Deadline: int64(time.Hour)}})
	n, _ := w.Advance(59 * time.Minute)
	fmt.Println(n)
	n, _ = w.Advance(2 * time.Minute)
	fmt.Println(n)
	// Output:
	// 0
	// 1
}

// conn is a connection. A channel stands for its socket.
type conn struct {
	key      uint64
	messages chan string
	deadline int64
}

// The event loop for idle timeouts. It closes no live connection, at whatever point the program was
// stopped.
func Example_loop() {
	w, err := timerwheel.Open(&timerwheel.Options{Clock: timerwheel.Manual})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	queue := w.NewQueue(0, func(key uint64, err error) { log.Fatal(key, err) })
	restart := func(c *conn) {
		// Read the clock after the message.
		c.deadline = w.Now() + int64(time.Minute)
		add := timerwheel.Add{Key: c.key, Deadline: c.deadline, Flags: timerwheel.Abs}
		if err := queue.Add(add); err != nil {
			log.Fatal(err)
		}
	}
	receive := func(c *conn) {
		select {
		case text := <-c.messages:
			fmt.Println("received:", text)
			restart(c)
		default:
		}
	}
	conns := map[uint64]*conn{1: {key: 1, messages: make(chan string, 1)}}
	for _, c := range conns {
		restart(c)
	}
	events := make([]timerwheel.Event, 64)
	for turn := 1; len(conns) > 0; turn++ {
		for _, c := range conns {
			receive(c)
		}
		if turn == 2 {
			// The program is stopped here. A message arrives, and the timer fires.
			conns[1].messages <- "in time"
			w.Advance(2 * time.Minute)
		}
		for {
			if err := queue.Flush(); err != nil {
				log.Fatal(err)
			}
			n, err := w.Take(events)
			if err != nil {
				log.Fatal(err)
			}
			for _, e := range events[:n] {
				c := conns[e.Key]
				if c == nil {
					continue
				}
				receive(c)
				// An earlier deadline belongs to an earlier arming.
				if e.Deadline >= c.deadline {
					fmt.Println("idle in turn", turn)
					delete(conns, c.key)
				}
			}
			if n == 0 {
				break
			}
		}
		// This stands for a wait for the connections and the wheel.
		w.Advance(40 * time.Second)
	}
	// Output:
	// received: in time
	// idle in turn 4
}

// A deadline that is postponed in memory. If a program was stopped and refreshes too late, it adds
// the timer again, and ignores events with an earlier deadline.
func ExampleTable_Refresh() {
	w, err := timerwheel.Open(&timerwheel.Options{Table: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	adds := []timerwheel.Add{{Key: 1, Deadline: 500 * ms}}
	w.Add(adds)
	idle := w.Now() + 800*ms
	if w.Table().Refresh(adds[0].Handle, idle) != timerwheel.Done {
		w.Add([]timerwheel.Add{{Key: 1, Deadline: idle, Flags: timerwheel.Abs}})
	}
	events := make([]timerwheel.Event, 1)
	for events[0].Deadline < idle {
		if _, err := w.Read(context.Background(), events); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("idle")
	// Output:
	// idle
}
