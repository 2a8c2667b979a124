// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timers

import (
	"testing"
	"time"

	"timerwheel"
)

// Handle events of items that were postponed, disarmed or armed again after the event was read.
func TestLateEvents(t *testing.T) {
	ended := 0
	ts, err := New(&timerwheel.Options{Backend: timerwheel.Process}, func(*Item[int]) { ended++ })
	if err != nil {
		t.Fatal(err)
	}
	defer ts.Close()
	it := &Item[int]{Owner: 5}
	event := func() []timerwheel.Event {
		return []timerwheel.Event{{Key: it.id, Deadline: ts.w.Now(), Fired: ts.w.Now()}}
	}
	arm := func(d time.Duration) {
		t.Helper()
		ts.Lock()
		defer ts.Unlock()
		if err := ts.Arm(it, ts.After(d)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, events []timerwheel.Event, n int) {
		t.Helper()
		if ts.ended(events, func(*Item[int]) { ended++ }); ended != n {
			t.Fatal(what, ended)
		}
	}
	arm(time.Hour)
	early := event()
	// Its timer has gone, as one that has fired: a refresh is too late, and it is added again.
	ts.w.Remove([]timerwheel.Remove{{Key: it.id}})
	arm(time.Hour)
	if s, _ := ts.w.Stats(); it.id == 0 || s.Pending != 1 || ts.items.Len() != 1 {
		t.Fatal("it was not armed again")
	}
	expect("of the former arming", early, 0)
	arm(2 * time.Hour)
	early = event()
	ts.Lock()
	ts.Disarm(it)
	ts.Unlock()
	expect("disarmed", early, 0)
	if ts.items.Len() != 0 {
		t.Fatal("it is still there")
	}
	arm(time.Hour)
	it.deadline = 1
	expect("passed", event(), 1)
	if it.id != 0 || ts.items.Len() != 0 {
		t.Fatal("it is still armed")
	}
}
