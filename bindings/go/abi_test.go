// SPDX-License-Identifier: MIT OR GPL-2.0-only

package timerwheel

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The structures, with the fields in the order of the header.
var abiStructs = []struct {
	name   string
	fields string
	value  any
}{
	{"timerwheel_add", "key value deadline period slack match flags result index,generation", Add{}},
	{"timerwheel_move", "key deadline match flags result", Move{}},
	{"timerwheel_remove", "key match value left flags result", Remove{}},
	{"timerwheel_move_handle", "deadline index,generation", MoveHandle{}},
	{"timerwheel_remove_handle", "value index,generation", RemoveHandle{}},
	{"timerwheel_entry", "key value deadline left period slack flags result index,generation", Entry{}},
	{"timerwheel_event", "key value deadline fired overruns flags index", Event{}},
	{"timerwheel_info", "size flags abi_version batch_max features errata tick_min tick_max " +
		"slots_min slots_max capacity_max clock tick slots capacity slack wake_ns wake_events " +
		"generation_bits user_memory user_memory_max now ring ring_max event_size event_size_max",
		Info{}},
	{"timerwheel_stats", "size flags pending due armed rearmed moved removed replaced drained " +
		"delivered overruns withdrawn cascades requeues wakeups firings passes pass_max_timers " +
		"pass_max_ns memory late_max lateness parked sockets aborted", Stats{}},
	{"timerwheel_setup", "size flags clock slots tick capacity wake_events wake_ns slack ring " +
		"event_size", abiSetup{}},
	{"timerwheel_batch", "size flags elems count elem_size cursor", abiBatch{}},
	{"timerwheel_advance", "size flags time now expired", abiAdvance{}},
	{"timerwheel_monitor", "size flags events reserved", abiMonitor{}},
	{"timerwheel_ring", "tail mask flags event_size reserved1 head waiting reserved2", abiRing{}},
}

var abiConstants = map[string]uint64{
	"ABI_VERSION": abiVersion, "BATCH_MAX": batchMax, "RING_MAX": ringMax, "TIME_MAX": TimeMax,
	"RING_EVENTS": ringEvents, "MMAP_DEADLINES": mmapDeadlines, "MMAP_RING": mmapRing,
	"RING_OVERFLOW": ringOverflow, "SETUP_CLOCK_SET": setupClockSet, "SETUP_ALARM": setupAlarm,
	"SETUP_RESIDENT": setupResident, "INFO_SETTLED": infoSettled, "INFO_CLOSED": infoClosed,
	"SETUP_TABLE": setupTable, "INFO_RESIDENT": infoResident, "INFO_TABLE": infoTable,
	"FEATURE_TABLE":  featureTable,
	"FEATURE_HANDLE": featureHandle, "DRAIN_CLOSE": drainClose,
	"MONITOR_CLOEXEC": monitorCloexec, "MONITOR_NONBLOCK": monitorNonblock,
	"TABLE_CANCELLED": stateCancelled, "TABLE_ARMED": stateArmed,
	"TABLE_PARKED": stateParked, "TABLE_FIRED": stateFired,
	"ABS": uint64(Abs), "EXCL": uint64(Excl), "MATCH": uint64(Match), "SLACK": uint64(Slack),
	"LINGER": uint64(Linger), "EVENT_PERIODIC": uint64(EventPeriodic),
	"EVENT_MISSED": uint64(EventMissed), "EVENT_CLOCK_SET": uint64(EventClockSet),
	"WAS_NONE": uint64(WasNone), "WAS_PENDING": uint64(WasPending), "WAS_DUE": uint64(WasDue),
	"WAS_PARKED": uint64(WasParked), "CLOCK_MONOTONIC": uint64(Monotonic),
	"CLOCK_BOOTTIME": uint64(Boottime), "CLOCK_REALTIME": uint64(Realtime),
	"CLOCK_MANUAL": uint64(Manual),
	"IOC_INFO":     iocInfo, "IOC_SETUP": iocSetup, "IOC_ADD": iocAdd, "IOC_MOVE": iocMove,
	"IOC_REMOVE": iocRemove, "IOC_DRAIN": iocDrain, "IOC_GET": iocGet, "IOC_LIST": iocList,
	"IOC_STATS": iocStats, "IOC_ADVANCE": iocAdvance, "IOC_FLOW": iocFlow,
	"IOC_MONITOR": iocMonitor, "IOC_MOVE_HANDLE": iocMoveHandle,
	"IOC_REMOVE_HANDLE": iocRemoveHandle,
}

// This package has the same layouts and numbers as the header.
func TestHeader(t *testing.T) {
	uapi, err := filepath.Abs("../../uapi")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(uapi + "/linux/timerwheel.h"); err != nil {
		t.Skip("no header here")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	var program, want bytes.Buffer
	fmt.Fprintln(&program, "#include <stddef.h>\n#include <stdio.h>\n#include <linux/timerwheel.h>\n"+
		"#define FIELD(s, f) printf(#s \" \" #f \" %zu %zu\\n\", offsetof(struct s, f), sizeof(((struct s *)0)->f))\n"+
		"int main(void) {")
	for _, s := range abiStructs {
		typ := reflect.TypeOf(s.value)
		names := strings.Fields(s.fields)
		if len(names) != typ.NumField() {
			t.Fatalf("%s has %d fields, %v %d", s.name, len(names), typ, typ.NumField())
		}
		for i, name := range names {
			field := typ.Field(i)
			if name == "index,generation" {
				fmt.Fprintf(&program, "FIELD(%s, index); FIELD(%s, generation);\n", s.name, s.name)
				fmt.Fprintf(&want, "%s index %d 4\n%s generation %d 4\n", s.name, field.Offset,
					s.name, field.Offset+4)
				continue
			}
			fmt.Fprintf(&program, "FIELD(%s, %s);\n", s.name, name)
			fmt.Fprintf(&want, "%s %s %d %d\n", s.name, name, field.Offset, field.Type.Size())
		}
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", s.name, s.name)
		fmt.Fprintf(&want, "%s %d\n", s.name, typ.Size())
	}
	for name, value := range abiConstants {
		fmt.Fprintf(&program, "printf(\"%s %%llu\\n\", (unsigned long long)TIMERWHEEL_%s);\n", name, name)
		fmt.Fprintf(&want, "%s %d\n", name, value)
	}
	fmt.Fprintln(&program, "return 0; }")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/abi.c", program.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gcc", "-I", uapi, "-o", dir+"/abi", dir+"/abi.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := exec.Command(dir + "/abi").Output()
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(want.String(), "\n")
	for i := range w {
		if i >= len(g) || g[i] != w[i] {
			t.Fatalf("line %d: here %q, the header has %q", i, w[i], g[i])
		}
	}
}
