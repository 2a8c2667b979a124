/* SPDX-License-Identifier: GPL-2.0 */
/*
 * idled: an echo server that closes idle connections.
 *
 *   idled.c   options, the loop, messages to the user
 *   conns.c   the connections: accept, echo, close
 *   timers.c  their timers: one wheel, one timer for each connection
 */
#ifndef IDLED_H
#define IDLED_H

#include <stdbool.h>
#include <linux/types.h>

struct options {
	const char *listen;	/* ADDRESS:PORT */
	__u64 idle;		/* ns */
	__u32 max_connections;
	__u32 report;		/* print a line after this number of idle closes */
	bool stats;		/* print a line each second */
};

/* Counters of events so far. */
struct counts {
	__u64 accepted;
	__u64 closed_idle;
	__u64 closed_peer;
	__u64 closed_error;
	__u64 bytes;
	__u64 refreshed;	/* MOVEs of a timer */
	__u64 last_moment;	/* ...that was already due: its event was withdrawn */
	__u64 last_look;	/* due, but bytes had arrived before the close */
	__u64 stale;		/* events of a closed connection: there must be none */
	__u64 early;		/* closed sooner than --idle after its last bytes: none, too */
	__u64 calls;		/* ioctl and read on the wheel */
	__u32 open;
	__u32 open_max;
};

extern struct options options;
extern struct counts counts;

/* The time at which this turn of the loop began, CLOCK_MONOTONIC, in ns. */
extern __u64 turn_time;

/* conns.c */
void conns_init(int epoll, int listener);
void conns_accept(void);
void conns_ready(int fd, __u32 events);
void conns_expired(__u64 key, __u64 deadline, __u64 fired);
void conns_unarmed(__u64 key, int error);
void conns_refresh_done(__u64 key);
void conns_report_lateness(void);

/* timers.c */
int timers_init(void);
void timers_add(__u64 key);
void timers_refresh(__u64 key);
void timers_remove(__u64 key);
void timers_submit(void);
void timers_collect(void);
__u32 timers_close(void);

#endif /* IDLED_H */
