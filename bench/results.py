# SPDX-License-Identifier: GPL-2.0
"""The results of the bench, for the scripts that make tables and plots of them."""

import csv
import sys

# Displayed names, in the order of tables and legends: the device first, then by kind.
KINDS = {
    "ours": {
        "timerwheel": "timerwheel",
        "timerwheel-handle": "timerwheel, by handle",
        "timerwheel-mapped": "timerwheel, mapped",
        "timerwheel-resident": "timerwheel, resident",
        "timerwheel-resident-shared": "timerwheel, resident, two threads",
    },
    "kernel": {
        "timerfd": "timerfd + epoll",
        "timerfd-1ms": "timerfd, rounded to 1 ms",
        "posix": "POSIX timers",
        "io_uring": "io_uring timeouts",
        "timerfd-leases": "timerfd, one for each lease",
    },
    "library": {
        "libevent": "libevent",
        "libevent-common": "libevent, common timeouts",
        "libuv": "libuv",
        "libev": "libev",
        "glib": "GLib",
    },
    "process": {
        "heap": "heap in the process",
        "wheel": "wheel in the process",
        "heap-shared": "heap, two threads",
        "wheel-shared": "wheel, two threads",
        "heap-lazy": "heap in the process, lazy",
        "wheel-lazy": "wheel in the process, lazy",
        "heap-lazy-shared": "heap, lazy, two threads",
        "wheel-lazy-shared": "wheel, lazy, two threads",
        "wheel-messages": "wheel, heartbeats are messages",
        "wheel-memory": "wheel, deadlines in shared memory",
    },
}
NAMES = {name: text for kind in KINDS.values() for name, text in kind.items()}


def size(n):
    """1000000 as 1M, 20000 as 20k."""
    for unit, letter in ((1000000, "M"), (1000, "k")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{letter}"
    return f"{n:,}"


class Results:
    """The rows of results.tsv, by facility and operation."""

    def __init__(self, path):
        self.rows = {}
        self.clocks = set()
        self.skipped = []   # (facility, workload, pending, why)
        with open(path, newline="", encoding="ascii") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if row["value"] == "-":
                    self.skipped.append((row["facility"], row["operation"],
                                         int(row["pending"]), row["unit"]))
                    continue
                key = row["facility"], row["operation"]
                place = int(row["pending"]), int(row["batch"])
                self.rows.setdefault(key, {})[place] = float(row["value"])
                self.clocks.add(row["clock"])
        if not self.rows:
            sys.exit(f"{path} contains no results")

    def facilities(self):
        """The facilities that were measured, in order."""
        there = {facility for facility, _ in self.rows}
        return [name for name in NAMES if name in there]

    def over_pending(self, facility, operation):
        """[(pending, value)] with the usual batch: 256 for facilities with batches, else 1."""
        usual = {}
        for (pending, batch), value in self.rows.get((facility, operation), {}).items():
            if batch in (0, 1, 256) and (batch != 1 or pending not in usual):
                usual[pending] = value
        return sorted(usual.items())

    def over_batch(self, facility, operation):
        """[(batch, value)] with the largest number of pending timers."""
        places = self.rows.get((facility, operation), {})
        most = max((pending for pending, _ in places), default=0)
        return sorted((batch, value) for (pending, batch), value in places.items()
                      if pending == most)

    def batches(self, facility, operations):
        """[(batch, name of the facility with such batches)], the largest batch first."""
        sizes = {batch for operation in operations
                 for _, batch in self.rows.get((facility, operation), {})}
        alone = "one in a call"
        if facility.endswith("-shared"):
            alone = "one under a lock"
        elif facility.endswith("-messages"):
            alone = "one in a message"
        more = f", {alone}" if len(sizes) > 1 else ""
        return [(batch, NAMES[facility] + (more if batch == 1 else ""))
                for batch in sorted(sizes, reverse=True)]

    def largest_in_batches(self, facility, operation, batch):
        """(pending, value) with the largest number of timers in calls of this size, or None."""
        return max(((pending, value) for (pending, size_of), value
                    in self.rows.get((facility, operation), {}).items() if size_of == batch),
                   default=None)

    def largest(self, facility, operation):
        """(pending, value) with the largest number of timers, or None."""
        values = self.over_pending(facility, operation)
        return values[-1] if values else None
