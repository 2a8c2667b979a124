// SPDX-License-Identifier: GPL-2.0
/* See timers.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "log.h"
#include "options.h"
#include "owners.h"
#include "report.h"
#include "timers.h"
#include "timerwheel.h"

#define KIND_BITS	2
/*
 * No timeout: the deadline of these timers is never. The value of the one with the cookie
 * MARK_SETTINGS is a digest of the timeouts, with MARK_CHOICE of the chosen processes and ports.
 */
#define KIND_SETTINGS	3
#define MARK_SETTINGS	0
#define MARK_CHOICE	1
#define BATCH		256
/* A timer may be late by this fraction of its timeout, to share a wake-up with others. */
#define SLACK_PART	256
#define SLACK_MAX	NSEC_PER_SEC
#define ALL_KINDS	((1U << KINDS) - 1)
/* Beside the bits of enum kind: the connection never gets timers. */
#define LEFT		(ALL_KINDS + 1)

static struct timerwheel *wheel;
static unsigned int nr_guarded;
static bool same_choice;

static const __u32 socket_kinds[KINDS] = {
	[KIND_IDLE] = TIMERWHEEL_SOCKET_IDLE,
	[KIND_HALF_CLOSED] = TIMERWHEEL_SOCKET_HALF_CLOSED,
	[KIND_LIFETIME] = TIMERWHEEL_SOCKET_LIFETIME,
};

/* Operations for timers_flush(). */
static struct {
	struct timerwheel_add_socket add[BATCH * KINDS];
	struct conn *conn[BATCH * KINDS];
	unsigned int nr_add;
	struct timerwheel_remove remove[BATCH * KINDS];
	unsigned int nr_remove;
} batch;

static __u64 key_of(uint64_t cookie, unsigned int kind)
{
	return cookie << KIND_BITS | kind;
}

static uint64_t cookie_of(__u64 key)
{
	return (int64_t)key >> KIND_BITS;
}

static unsigned int kind_of(__u64 key)
{
	return key & ((1U << KIND_BITS) - 1);
}

/* --- the wheel ---------------------------------------------------------- */

static void die_open(int err)
{
	switch (-err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		log_die("there is no /dev/timerwheel: %s", module_advice());
	case EACCES:
	case EPERM:
		log_die("not allowed to open /dev/timerwheel: be root or in the group timerwheel");
	default:
		log_die("cannot open a wheel: %s", timerwheel_strerror(err));
	}
}

/* A digest of the options on which the timers depend. Existing timers work with equal options. */
static __u64 settings(void)
{
	const uint64_t numbers[] = {
		options.timeout[KIND_IDLE], options.timeout[KIND_HALF_CLOSED],
		options.timeout[KIND_LIFETIME], options.grace, options.dry_run,
	};
	__u64 digest = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		digest = mix64(digest ^ numbers[i]);
	return digest;
}

static __u64 digest_texts(__u64 digest, const char *const *texts, unsigned int count)
{
	unsigned int i, k;

	for (i = 0; i < count; i++) {
		for (k = 0; k <= strlen(texts[i]); k++)
			digest = mix64(digest + (unsigned char)texts[i][k] + 1);
	}
	return mix64(digest + count);
}

static __u64 choice(void)
{
	__u64 digest = digest_texts(0, options.units, options.nr_units);
	unsigned int i;

	digest = digest_texts(digest, options.cgroups, options.nr_cgroups);
	for (i = 0; i < options.nr_pids; i++)
		digest = mix64(digest + options.pids[i]);
	digest = mix64(digest + options.nr_pids);
	for (i = 0; i < options.nr_ports; i++)
		digest = mix64(digest + options.ports[i]);
	return digest;
}

static void restore(const struct timerwheel_entry *entry)
{
	uint64_t cookie = cookie_of(entry->key);
	struct conn *conn;

	if (kind_of(entry->key) == KIND_SETTINGS)
		return;
	conn = conn_find(cookie);
	if (!conn) {
		conn = conn_new(cookie);
		conn_from_value(conn, entry->value);
		counters.restored++;
	}
	timers_set(conn, conn->armed | 1U << kind_of(entry->key));
}

static bool has_mark(uint64_t cookie, __u64 value)
{
	struct timerwheel_entry mark = { .key = key_of(cookie, KIND_SETTINGS) };

	return timerwheel_get(wheel, &mark, 1) == 1 && mark.result >= 0 && mark.value == value;
}

/*
 * Continue the timers in the wheel, or remove them if they were armed for other timeouts. Returns
 * false if some of the latter remain.
 */
static bool take_up(void)
{
	struct timerwheel_entry entries[BATCH];
	bool same = has_mark(MARK_SETTINGS, settings());
	uint64_t cursor = 0;
	long n, i;

	same_choice = same && has_mark(MARK_CHOICE, choice());
	if (!same)
		log_say(LOG_NOTICE, "the timeouts differ from the previous guard's timeouts: they start again for all connections");
	do {
		n = same ? timerwheel_list(wheel, entries, BATCH, &cursor) :
			   timerwheel_drain(wheel, entries, BATCH, 0);
		for (i = 0; same && i < n; i++)
			restore(&entries[i]);
	} while (n > 0 || n == -EINTR);
	/* The next scan arms timers that are not listed as if their connections were new. */
	if (n < 0)
		log_say(LOG_WARNING, "cannot %s the timers of the wheel that was kept: %s; some %s",
			same ? "list" : "remove", timerwheel_strerror(n),
			same ? "timeouts begin anew" : "of the former timeouts remain");
	return same || n >= 0;
}

/* Returns 0 or an error. */
static long set_mark(uint64_t cookie, __u64 value)
{
	struct timerwheel_add mark = {
		.key = key_of(cookie, KIND_SETTINGS),
		.value = value,
		.deadline = TIMERWHEEL_TIME_MAX,
		.flags = TIMERWHEEL_ABS,
	};
	long n = timerwheel_add(wheel, &mark, 1);

	return n < 0 ? n : mark.result < 0 ? mark.result : 0;
}

/* Without this mark the next guard treats its choice as a different one. */
void timers_mark_choice(void)
{
	if (!has_mark(MARK_CHOICE, choice()))
		set_mark(MARK_CHOICE, choice());
}

bool timers_open(int kept)
{
	struct timerwheel_config config = { .backend = TIMERWHEEL_BACKEND_DEVICE };
	bool adopted = kept >= 0 && !timerwheel_adopt(&wheel, kept, false);
	int err = adopted ? 0 : timerwheel_open(&wheel, &config);
	struct timerwheel_info info;

	if (err)
		die_open(err);
	if (timerwheel_info(wheel, &info) || !(info.features & TIMERWHEEL_FEATURE_SOCKET))
		log_die("the module timerwheel has no deadlines for connections: it is too old (install the one that came with this program), or this kernel was built without INET_DIAG_DESTROY or BPF_SYSCALL");
	/* Without the mark the next guard knows that the timers have other timeouts. */
	err = !adopted || take_up() ? set_mark(MARK_SETTINGS, settings()) : 0;
	if (err)
		log_die("cannot arm a timer: %s", timerwheel_strerror(err));
	return adopted;
}

bool timers_same_choice(void)
{
	return same_choice;
}

struct timerwheel *timers_wheel(void)
{
	return wheel;
}

/* --- arming ------------------------------------------------------------- */

void timers_set(struct conn *conn, uint8_t armed)
{
	nr_guarded += !!(armed & ALL_KINDS);
	nr_guarded -= !!(conn->armed & ALL_KINDS);
	conn->armed = armed;
}

unsigned int timers_guarded(void)
{
	return nr_guarded;
}

static unsigned int missing(const struct conn *conn)
{
	unsigned int kinds = ALL_KINDS & ~conn->armed, kind;

	for (kind = 0; kind < KINDS; kind++) {
		if (options.timeout[kind] == TIME_NONE)
			kinds &= ~(1U << kind);
	}
	return kinds;
}

bool timers_complete(const struct conn *conn)
{
	return conn->armed & LEFT || !missing(conn);
}

static uint64_t slack_of(uint64_t timeout)
{
	uint64_t slack = timeout / SLACK_PART;

	return slack < SLACK_MAX ? slack : SLACK_MAX;
}

void timers_arm(struct conn *conn, int fd)
{
	unsigned int kinds = missing(conn), kind;

	if (batch.nr_add + KINDS > ARRAY_SIZE(batch.add))
		timers_flush();
	for (kind = 0; kind < KINDS; kind++) {
		if (!(kinds & 1U << kind))
			continue;
		batch.conn[batch.nr_add] = conn;
		batch.add[batch.nr_add++] = (struct timerwheel_add_socket) {
			.key = key_of(conn->cookie, kind),
			.value = conn_value(conn),
			.deadline = options.timeout[kind],
			.grace = options.dry_run ? 0 : options.grace,
			.slack = slack_of(options.timeout[kind]),
			.fd = fd,
			.kind = socket_kinds[kind],
			.flags = TIMERWHEEL_SLACK | (options.dry_run ? 0 : TIMERWHEEL_SOCKET_ABORT),
			/* The result if the call does not reach this element. */
			.result = -EINTR,
		};
	}
}

uint8_t timers_armed(uint64_t cookie)
{
	struct timerwheel_entry entries[KINDS];
	unsigned int kind;
	uint8_t armed = 0;
	long n;

	memset(entries, 0, sizeof(entries));
	for (kind = 0; kind < KINDS; kind++)
		entries[kind].key = key_of(cookie, kind);
	do {
		n = timerwheel_get(wheel, entries, KINDS);
	} while (n == -EINTR);
	for (kind = 0; n == KINDS && kind < KINDS; kind++) {
		if (entries[kind].result >= 0)
			armed |= 1U << kind;
	}
	return armed;
}

void timers_leave(struct conn *conn, enum reason reason)
{
	if (conn->armed & LEFT)
		return;
	timers_set(conn, conn->armed | LEFT);
	counters.unreachable[reason]++;
	owners_say(conn->pid, reason);
}

static void armed(const struct timerwheel_add_socket *add, struct conn *conn)
{
	switch (add->result) {
	case -ENOTCONN:
		/* The connection has ended; the next scan will notice. */
		return;
	case -EOPNOTSUPP:
		timers_leave(conn, REASON_UNSUPPORTED);
		return;
	}
	if (add->result < 0) {
		log_seldom(LOG_WARNING, "cannot arm the timer of a connection: %s",
			   timerwheel_strerror(add->result));
		return;
	}
	if (!conn->armed)
		counters.taken++;
	timers_set(conn, conn->armed | 1U << kind_of(add->key));
}

static void flush_add(void)
{
	unsigned int i;
	long n;

	if (!batch.nr_add)
		return;
	do {
		n = timerwheel_add_socket(wheel, batch.add, batch.nr_add);
	} while (n == -EINTR);
	if (n < 0)
		log_seldom(LOG_WARNING, "cannot arm timers of connections: %s",
			   timerwheel_strerror(n));
	for (i = 0; n >= 0 && i < batch.nr_add; i++)
		armed(&batch.add[i], batch.conn[i]);
	batch.nr_add = 0;
}

static void flush_remove(void)
{
	long n, done = 0;

	/* Timers that have already ended are not found, which is not an error. */
	while (done < batch.nr_remove) {
		n = timerwheel_remove(wheel, batch.remove + done, batch.nr_remove - done);
		if (n < 0 && n != -EINTR)
			break;
		done += n > 0 ? n : 0;
	}
	batch.nr_remove = 0;
}

void timers_disarm(struct conn *conn)
{
	unsigned int kind;

	if (batch.nr_remove + KINDS > ARRAY_SIZE(batch.remove))
		flush_remove();
	for (kind = 0; kind < KINDS; kind++) {
		if (conn->armed & 1U << kind)
			batch.remove[batch.nr_remove++] = (struct timerwheel_remove) {
				.key = key_of(conn->cookie, kind),
			};
	}
	timers_set(conn, 0);
}

void timers_drop(struct conn *conn)
{
	timers_disarm(conn);
	conn_free(conn);
}

void timers_flush(void)
{
	flush_add();
	flush_remove();
}

/* --- events ------------------------------------------------------------- */

static void expired(const struct timerwheel_event *event)
{
	enum kind kind = kind_of(event->key);
	struct conn unknown = { }, *conn = conn_find(cookie_of(event->key));
	uint64_t ns = options.timeout[kind] + (event->fired - event->deadline);
	enum action action = ACTION_WOULD_END;

	if (event->flags & TIMERWHEEL_EVENT_GONE) {
		/* The event of one kind stands for all kinds. */
		if (conn) {
			counters.left++;
			timers_drop(conn);
		}
		return;
	}
	if (event->flags & TIMERWHEEL_EVENT_WARNING)
		action = ACTION_WARNED;
	if (event->flags & TIMERWHEEL_EVENT_ABORTED) {
		action = ACTION_ENDED;
		ns += options.grace;
	}
	if (!conn)
		conn_from_value(&unknown, event->value);
	counters.acted[kind][action]++;
	report(conn ? conn : &unknown, kind, action, ns);
	if (conn && action == ACTION_ENDED)
		timers_drop(conn);
}

void timers_expire(void)
{
	struct timerwheel_event events[BATCH];
	long n, i;

	do {
		n = timerwheel_take(wheel, events, BATCH);
		if (n < 0 && n != -EINTR)
			log_die("cannot take events: %s", timerwheel_strerror(n));
		for (i = 0; i < n; i++) {
			if (kind_of(events[i].key) < KINDS)
				expired(&events[i]);
		}
	} while (n == BATCH || n == -EINTR);
	report_flush();
	timers_flush();
}
