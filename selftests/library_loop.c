// SPDX-License-Identifier: GPL-2.0
/*
 * Test the event loop of libtimerwheel(3) with each way to restart timers, and stop it at each
 * point.
 *
 * The test contains a server and the peers of its connections. The clock is MANUAL: it advances
 * only while the server waits, and while the server is stopped at a point. One run stops the server
 * at one point for longer than the timeout. The peers continue to send during the stop. The test
 * repeats the run for each point. A run fails if the server closes a connection that is not idle,
 * handles an event of an earlier arming or of an earlier connection, or sleeps although a
 * connection has been idle for the timeout.
 *
 * Loops that break one rule of the documented loop must fail, because a test that accepts them
 * would prove nothing.
 */
#include "library.h"
#include <sys/epoll.h>

#define IDLE	100003ULL	/* ns; not a multiple of UNIT, the unit of the table */
#define UNIT	4096ULL
#define STEP	9001ULL		/* advance of the clock while the server waits, ns */
#define STEPS	400U		/* more steps than one wait of a correct loop needs */

enum {
	SLOTS = 5,
	PAIR = 2,		/* Slots 0 and 1 form one connection with two sockets and timers. */
	HANGS_UP = 3,		/* The last message of this slot's peer closes the connection. */
	MESSAGES = 3,		/* number of messages that a peer sends before it is silent */
	LIVES = 2,		/* number of connections that are opened in a slot */
	READY = 2,		/* maximum number of ready connections that a wait returns */
	ROOM = 3,		/* maximum number of events that a call takes */
};

/* The ways to restart timers */
enum mode {
	ADD,			/* timerwheel_queue_add() */
	MOVE,			/* timerwheel_queue_move() of resident timers */
	REFRESH,		/* timerwheel_table_refresh(), or else timerwheel_add() */
	ARM,			/* timerwheel_queue_arm() of resident timers */
	REQUEST,		/* as ARM, with timerwheel_queue_cancel() at each message */
	MOVE_ENDING,		/* MOVE of timers that are not resident: always wrong */
};

/* When the loop flushes the queue */
enum flush {
	EACH,			/* before each take */
	FIRST,			/* once, before the first take */
	LAST,			/* once, after the last take */
};

/* The rules that the loop breaks; all 0: the documented loop */
struct rules {
	bool when_ready;	/* allowed: the loop takes events only if the wheel is ready. */
	enum flush flush;
	bool one_take;		/* The loop waits after a take that returned events. */
	bool no_read;		/* The loop does not read a connection at its event. */
	bool no_comparison;	/* The loop ignores the deadlines of events. */
	bool early_clock;	/* The loop reads the clock before it reads a message. */
};

struct conn {
	bool open;
	uint64_t serial;	/* differs between the connections of a slot */
	uint64_t deadline;	/* TIMERWHEEL_TIME_MAX: the connection needs no event */
	uint32_t index;
	uint32_t generation;
	bool request_later;	/* REQUEST: the next iteration sends the next request */
	unsigned int lives;
	/* the peer: times at which it has sent messages, and will send the next message */
	uint64_t sent[MESSAGES];
	unsigned int sends;
	unsigned int reads;
	uint64_t next;
	/* when the server read the last message, or else opened the connection */
	uint64_t heard;
};

struct server {
	enum mode mode;
	uint32_t ring;
	const struct rules *rules;
	struct timerwheel *wheel;
	int epoll;
	struct timerwheel_queue *queue;
	struct timerwheel_table table;
	struct conn conn[SLOTS];
	bool wheel_ready;	/* The last wait found the descriptor of the wheel readable. */
	unsigned int slot;	/* first slot that the next wait checks */
	uint64_t serials;
	uint64_t phase;		/* delay of the peers' first messages */
	unsigned int points;	/* number of points that the server has passed */
	unsigned int stop;	/* number of the point at which the server is stopped */
	uint64_t length;	/* length of the stop */
	const char *fault;
};

static void fault(struct server *s, const char *what)
{
	if (!s->fault)
		s->fault = what;
}

static bool resident(enum mode mode)
{
	return mode == MOVE || mode == ARM || mode == REQUEST;
}

/* Advance the clock, and let the peers send their messages. */
static void pass(struct server *s, uint64_t ns)
{
	uint64_t now = timerwheel_now(s->wheel) + ns;
	struct conn *conn;

	for (conn = s->conn; conn < s->conn + SLOTS; conn++) {
		while (conn->open && conn->sends < MESSAGES && conn->next <= now) {
			conn->sent[conn->sends++] = conn->next;
			/* The peer answers once per request. */
			conn->next = s->mode == REQUEST ? UINT64_MAX : conn->next + IDLE / 2;
		}
	}
	if (timerwheel_advance(s->wheel, ns, 0) < 0)
		fault(s, "advance failed");
}

/* A point at which the server can be stopped */
static void point(struct server *s)
{
	if (++s->points == s->stop)
		pass(s, s->length);
}

static uint64_t now(struct server *s)
{
	uint64_t time;

	point(s);
	time = timerwheel_now(s->wheel);
	point(s);
	return time;
}

static bool unread(const struct conn *conn)
{
	return conn->open && conn->reads < conn->sends;
}

static void check(struct server *s, long result)
{
	if (result < 0)
		fault(s, "an operation failed");
}

static void failed(void *arg, unsigned long op, const void *elem)
{
	struct server *s = arg;
	const struct timerwheel_remove *rem = elem;

	/* The timer has ended if its event was taken. */
	if (op != TIMERWHEEL_IOC_REMOVE || rem->result != -ENOENT)
		fault(s, "a queued operation failed");
}

static void add_now(struct server *s, struct timerwheel_add *elem, struct conn *conn)
{
	check(s, timerwheel_add(s->wheel, elem, 1) == 1 ? elem->result : -1);
	conn->index = elem->index;
	conn->generation = elem->generation;
}

/* Arm the timer of a slot, or restart it. */
static void arm(struct server *s, int slot, uint64_t deadline, bool first)
{
	struct conn *conn = &s->conn[slot];
	struct timerwheel_add elem = {
		.key = slot, .value = conn->serial, .deadline = deadline, .flags = TIMERWHEEL_ABS,
	};
	struct timerwheel_move move = {
		.key = slot, .deadline = deadline, .flags = TIMERWHEEL_ABS,
	};

	conn->deadline = deadline;
	point(s);
	switch (s->mode) {
	case ADD:
		check(s, timerwheel_queue_add(s->queue, &elem));
		break;
	case MOVE:
		check(s, timerwheel_queue_move(s->queue, &move));
		break;
	case MOVE_ENDING:
		check(s, first ? timerwheel_queue_add(s->queue, &elem) :
				 timerwheel_queue_move(s->queue, &move));
		break;
	case REFRESH:
		if (first || timerwheel_table_refresh(&s->table, conn->index, conn->generation,
						      deadline) != TIMERWHEEL_DONE) {
			point(s);
			add_now(s, &elem, conn);
		}
		break;
	case ARM:
	case REQUEST:
		check(s, timerwheel_queue_arm(s->queue, slot, conn->index, conn->generation,
					      deadline));
		break;
	}
	point(s);
}

/* Cancel or remove the timer of a slot. */
static void disarm(struct server *s, int slot)
{
	struct timerwheel_remove rem = { .key = slot };
	struct conn *conn = &s->conn[slot];

	conn->deadline = TIMERWHEEL_TIME_MAX;
	point(s);
	if (resident(s->mode))
		check(s, timerwheel_queue_cancel(s->queue, slot, conn->index, conn->generation));
	else if (s->mode == REFRESH)
		check(s, timerwheel_remove(s->wheel, &rem, 1));
	else
		check(s, timerwheel_queue_remove(s->queue, &rem));
	point(s);
}

/* The slots of a connection, which are two for a pair */
static int first_slot(const struct server *s, int slot)
{
	return slot < PAIR && s->mode != REQUEST ? 0 : slot;
}

static int last_slot(const struct server *s, int slot)
{
	return slot < PAIR && s->mode != REQUEST ? PAIR - 1 : slot;
}

static void conn_open(struct server *s, int any)
{
	uint64_t time = now(s);
	struct conn *conn;
	int slot;

	for (slot = first_slot(s, any); slot <= last_slot(s, any); slot++) {
		conn = &s->conn[slot];
		conn->open = true;
		conn->serial = ++s->serials;
		conn->sends = 0;
		conn->reads = 0;
		conn->heard = time;
		conn->next = time + IDLE / 2 + s->phase;
		conn->request_later = false;
		conn->lives++;
		arm(s, slot, time + IDLE, true);
	}
}

static void request(struct server *s, int slot)
{
	struct conn *conn = &s->conn[slot];
	uint64_t time = now(s);

	conn->request_later = false;
	conn->heard = time;
	conn->next = time + IDLE / 2 + s->phase;
	arm(s, slot, time + IDLE, false);
}

static void conn_close(struct server *s, int any)
{
	int slot;

	for (slot = first_slot(s, any); slot <= last_slot(s, any); slot++) {
		disarm(s, slot);
		s->conn[slot].open = false;
	}
	/* A new connection gets the same key, and may get the same index, at once. */
	if (s->conn[any].lives < LIVES)
		conn_open(s, any);
}

/* Read one message if there is one. Returns false if the message closed the connection. */
static bool receive_one(struct server *s, int slot)
{
	struct conn *conn = &s->conn[slot];
	uint64_t time = s->rules->early_clock ? now(s) : 0;
	int other;

	point(s);
	if (!unread(conn))
		return true;
	conn->reads++;
	conn->heard = timerwheel_now(s->wheel);
	point(s);
	if (slot == HANGS_UP && conn->reads == MESSAGES) {
		conn_close(s, slot);
		return false;
	}
	if (s->mode == REQUEST) {
		disarm(s, slot);
		if (conn->reads % 2)
			conn->request_later = true;
		else
			request(s, slot);
		return true;
	}
	if (!s->rules->early_clock)
		time = now(s);
	for (other = first_slot(s, slot); other <= last_slot(s, slot); other++)
		arm(s, other, time + IDLE, false);
	return true;
}

/* Read from all sockets of a connection. Returns false if it is closed now. */
static bool receive(struct server *s, int any)
{
	int slot;

	for (slot = first_slot(s, any); slot <= last_slot(s, any); slot++)
		if (!receive_one(s, slot))
			return false;
	return true;
}

/* The server is about to close a connection because of an event: check that it was idle. */
static void judge(struct server *s, int slot, const struct timerwheel_event *event)
{
	uint64_t heard = 0, until = timerwheel_now(s->wheel);
	const struct conn *conn = &s->conn[slot];

	if (event->deadline < conn->deadline)
		fault(s, "the event of an earlier arming was handled");
	if (!resident(s->mode) && event->value != conn->serial)
		fault(s, "the event of an earlier connection was handled");
	if (conn->request_later)
		fault(s, "a connection without a request was closed");
	for (conn = &s->conn[first_slot(s, slot)]; conn <= &s->conn[last_slot(s, slot)]; conn++) {
		if (conn->heard > heard)
			heard = conn->heard;
		if (conn->reads < conn->sends && conn->sent[conn->reads] < until)
			until = conn->sent[conn->reads];
	}
	if (until < heard + IDLE)
		fault(s, "a connection that was not idle was closed");
}

static void expire(struct server *s, const struct timerwheel_event *event)
{
	int slot = event->key;
	struct conn *conn = &s->conn[slot];

	point(s);
	if (!conn->open || (!s->rules->no_read && !receive(s, slot)))
		return;
	if (!s->rules->no_comparison && event->deadline < conn->deadline)
		return;
	judge(s, slot, event);
	conn_close(s, slot);
}

static void flush(struct server *s)
{
	point(s);
	check(s, timerwheel_queue_flush(s->queue));
	point(s);
}

/*
 * A restart withdraws the event of the earlier arming, unless that event is in the ring. A cancel
 * does not withdraw the event.
 */
static void judge_events(struct server *s, const struct timerwheel_event *events, long n)
{
	const struct conn *conn;
	long i;

	for (i = 0; i < n && !s->ring && s->mode != REQUEST; i++) {
		conn = &s->conn[events[i].key];
		if (conn->open ? events[i].deadline < conn->deadline : !resident(s->mode))
			fault(s, "a restart did not withdraw an event");
	}
}

/* Flush the queue and handle events until there are none. */
static void expire_all(struct server *s)
{
	struct timerwheel_event events[ROOM];
	long n, i;

	if (s->rules->flush == FIRST || (s->rules->when_ready && !s->wheel_ready))
		flush(s);
	if (s->rules->when_ready && !s->wheel_ready)
		return;
	do {
		if (s->rules->flush == EACH)
			flush(s);
		n = take(s->wheel, events, ROOM);
		check(s, n);
		judge_events(s, events, n);
		for (i = 0; i < n; i++)
			expire(s, &events[i]);
	} while (n > 0 && !s->rules->one_take);
	if (s->rules->flush == LAST)
		flush(s);
}

/* The server sleeps: check that no connection has been idle for the timeout. */
static void judge_sleep(struct server *s)
{
	const struct conn *conn;

	for (conn = s->conn; conn < s->conn + SLOTS; conn++)
		if (conn->open && conn->deadline + UNIT < timerwheel_now(s->wheel))
			fault(s, "the server sleeps, although a connection is idle");
}

/* Wait for the wheel or for messages. Returns a bit for each ready connection, at most READY. */
static unsigned int wait_ready(struct server *s)
{
	unsigned int ready = 0, n = 0, steps, i, slot;
	struct epoll_event event;

	for (steps = 0; steps < STEPS && !s->fault; steps++) {
		for (i = 0; i < SLOTS && n < READY; i++) {
			slot = s->slot++ % SLOTS;
			if (unread(&s->conn[slot])) {
				ready |= 1U << slot;
				n++;
			}
		}
		for (i = 0; i < SLOTS; i++)
			n += s->conn[i].open && s->conn[i].request_later;
		s->wheel_ready = epoll_wait(s->epoll, &event, 1, 0) == 1;
		if (n || s->wheel_ready)
			return ready;
		judge_sleep(s);
		pass(s, STEP);
	}
	fault(s, "the server waits too long");
	return 0;
}

static bool some_open(const struct server *s)
{
	int slot;

	for (slot = 0; slot < SLOTS; slot++)
		if (s->conn[slot].open)
			return true;
	return false;
}

static void serve(struct server *s)
{
	unsigned int ready = 0;
	int slot;

	s->wheel_ready = true;
	for (slot = 0; slot < SLOTS; slot++)
		if (!s->conn[slot].open)
			conn_open(s, slot);
	for (;;) {
		for (slot = 0; slot < SLOTS; slot++) {
			if (ready & 1U << slot && s->conn[slot].open)
				receive_one(s, slot);
			if (s->conn[slot].open && s->conn[slot].request_later)
				request(s, slot);
		}
		expire_all(s);
		if (s->fault || !some_open(s))
			return;
		point(s);
		ready = wait_ready(s);
		point(s);
	}
}

static void start(struct server *s)
{
	struct timerwheel_config config = {
		.backend = BACKEND, .clock = TIMERWHEEL_CLOCK_MANUAL, .tick = 1, .capacity = SLOTS,
		.ring = s->ring, .table = s->mode == REFRESH, .resident = resident(s->mode),
	};
	struct timerwheel_add add = { .deadline = IDLE };
	struct epoll_event event = { .events = EPOLLIN };
	int slot;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (timerwheel_open(&s->wheel, &config) ||
	    timerwheel_queue_new(&s->queue, s->wheel, 8, failed, s) ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, timerwheel_fd(s->wheel), &event)) {
		fault(s, "no wheel");
		return;
	}
	if (config.table || config.resident)
		check(s, timerwheel_table(s->wheel, &s->table));
	for (slot = 0; slot < SLOTS && config.resident; slot++) {
		add.key = slot;
		add_now(s, &add, &s->conn[slot]);
		check(s, timerwheel_table_cancel(&s->table, s->conn[slot].index,
						 s->conn[slot].generation));
	}
}

/* Check that each connection was opened and closed once, and that no timer is left. */
static void judge_end(struct server *s)
{
	struct timerwheel_stats stats;

	flush(s);
	if (s->serials != SLOTS * LIVES)
		fault(s, "not all connections were opened");
	if (timerwheel_advance(s->wheel, 100 * IDLE, 0))
		fault(s, "a timer has survived its connection");
	if (timerwheel_stats(s->wheel, &stats) || stats.pending || stats.due || !balanced(s->wheel))
		fault(s, "a timer is left");
}

/* One run. Returns a description of the fault, or NULL. */
static const char *run(struct server *s)
{
	start(s);
	if (!s->fault)
		serve(s);
	if (!s->fault)
		judge_end(s);
	close(s->epoll);
	timerwheel_queue_free(s->queue);
	timerwheel_close(s->wheel);
	return s->fault;
}

/*
 * Stop the server at each point, one per run, in one or two series of runs. Returns the number of
 * runs without a fault.
 */
static unsigned int run_all(enum mode mode, uint32_t ring, const struct rules *rules,
			    unsigned int series, const char **what)
{
	/* The messages arrive in the middle of a timeout, or just before its end. */
	static const uint64_t phases[] = { 0, IDLE / 2 - IDLE / 16 };
	static const uint64_t lengths[] = { IDLE + IDLE / 8, 5 * IDLE };
	unsigned int i, stop, passed, runs = 0;

	for (i = 0; i < series; i++) {
		for (stop = 1, passed = stop; passed >= stop; stop++) {
			struct server s = {
				.mode = mode, .ring = ring, .rules = rules, .stop = stop,
				.phase = phases[i], .length = lengths[i],
			};

			*what = run(&s);
			if (*what) {
				printf("# series %u, point %u: %s\n", i, stop, *what);
				return runs;
			}
			passed = s.points;
			runs++;
		}
	}
	return runs;
}

FIXTURE(loop)
{
	const char *fault;
};

FIXTURE_VARIANT(loop)
{
	enum mode mode;
	uint32_t ring;
};

FIXTURE_VARIANT_ADD(loop, add)
{
	.mode = ADD,
};

FIXTURE_VARIANT_ADD(loop, move)
{
	.mode = MOVE,
};

FIXTURE_VARIANT_ADD(loop, refresh)
{
	.mode = REFRESH,
};

FIXTURE_VARIANT_ADD(loop, arm)
{
	.mode = ARM,
};

FIXTURE_VARIANT_ADD(loop, request)
{
	.mode = REQUEST,
};

#ifndef PROCESS
/* A short ring, which overflows */
FIXTURE_VARIANT_ADD(loop, add_ring)
{
	.mode = ADD,
	.ring = 2,
};

FIXTURE_VARIANT_ADD(loop, move_ring)
{
	.mode = MOVE,
	.ring = 2,
};

FIXTURE_VARIANT_ADD(loop, refresh_ring)
{
	.mode = REFRESH,
	.ring = 2,
};

FIXTURE_VARIANT_ADD(loop, arm_ring)
{
	.mode = ARM,
	.ring = 2,
};

FIXTURE_VARIANT_ADD(loop, request_ring)
{
	.mode = REQUEST,
	.ring = 2,
};
#endif

FIXTURE_SETUP(loop)
{
}

FIXTURE_TEARDOWN(loop)
{
}

TEST_F(loop, stopped_at_each_point)
{
	const struct rules documented = { 0 };
	unsigned int runs = run_all(variant->mode, variant->ring, &documented, 2, &self->fault);

	EXPECT_EQ(NULL, self->fault) {
		TH_LOG("%s", self->fault);
	}
	/* A run has about 300 points. */
	EXPECT_LT(600, runs);
}

/* A loop that takes events only if its wait found the descriptor readable is also right. */
TEST_F(loop, takes_when_ready)
{
	const struct rules when_ready = { .when_ready = true };

	run_all(variant->mode, variant->ring, &when_ready, 1, &self->fault);
	EXPECT_EQ(NULL, self->fault) {
		TH_LOG("%s", self->fault);
	}
}

FIXTURE(wrong)
{
	const char *fault;
};

FIXTURE_VARIANT(wrong)
{
	uint32_t modes;		/* a bit for each mode in which the test must find a fault */
	uint32_t ring;
	struct rules rules;
};

#define ANY(mode)	(1U << (mode))

FIXTURE_VARIANT_ADD(wrong, flush_first)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(ARM) | ANY(REQUEST),
	.rules = { .flush = FIRST },
};

FIXTURE_VARIANT_ADD(wrong, flush_last)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(ARM),
	.rules = { .flush = LAST },
};

/* A MOVE finds no timer after the event was taken. Programs must use ADD. */
FIXTURE_VARIANT_ADD(wrong, move_ending)
{
	.modes = ANY(MOVE_ENDING),
};

FIXTURE_VARIANT_ADD(wrong, no_read)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(REFRESH) | ANY(ARM) | ANY(REQUEST),
	.rules = { .no_read = true },
};

FIXTURE_VARIANT_ADD(wrong, no_comparison)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(REFRESH) | ANY(ARM) | ANY(REQUEST),
	.rules = { .no_comparison = true },
};

FIXTURE_VARIANT_ADD(wrong, early_clock)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(REFRESH) | ANY(ARM),
	.rules = { .early_clock = true },
};

#ifndef PROCESS
/* A wheel with a ring wakes the loop only after a take has returned 0. */
FIXTURE_VARIANT_ADD(wrong, one_take)
{
	.modes = ANY(ADD) | ANY(MOVE) | ANY(REFRESH) | ANY(ARM) | ANY(REQUEST),
	.ring = 2,
	.rules = { .one_take = true },
};
#endif

FIXTURE_SETUP(wrong)
{
}

FIXTURE_TEARDOWN(wrong)
{
}

TEST_F(wrong, is_detected)
{
	enum mode mode;

	for (mode = ADD; mode <= MOVE_ENDING; mode++) {
		if (!(variant->modes & ANY(mode)))
			continue;
		run_all(mode, variant->ring, &variant->rules, 2, &self->fault);
		EXPECT_NE(NULL, self->fault) {
			TH_LOG("no fault in mode %u", mode);
		}
	}
}

TEST_HARNESS_MAIN
