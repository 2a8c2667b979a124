// SPDX-License-Identifier: GPL-2.0
/*
 * libtimerwheel when the clock is set: a separate program, for machines whose clock may be set.
 * With TW_FAKE_CLOCK in the environment the clock is set for this program only, which suffices for
 * wheels inside the process.
 */
#include "library.h"

static int set_clock(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	if (getenv("TW_FAKE_CLOCK")) {
		realtime_ahead = 0;
		realtime_ahead = ns - clock_ns(CLOCK_REALTIME);
		return 0;
	}
	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

FIXTURE(set)
{
	struct timerwheel *w;
	uint64_t began;
};

FIXTURE_SETUP(set)
{
	self->w = wheel_of(TIMERWHEEL_CLOCK_REALTIME);
	ASSERT_NE(NULL, self->w);
	self->began = timerwheel_now(self->w);
}

FIXTURE_TEARDOWN(set)
{
	EXPECT_EQ(0, set_clock(self->began));
	timerwheel_close(self->w);
}

TEST_F(set, forward)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, add(self->w, 1, 0, self->began + HOUR, TIMERWHEEL_ABS));
	EXPECT_EQ(0, timerwheel_wait(self->w, &ev, 1, 10 * MSEC));
	ASSERT_EQ(0, set_clock(self->began + 2 * HOUR));
	ASSERT_EQ(1, timerwheel_wait(self->w, &ev, 1, PATIENCE));
	EXPECT_EQ(self->began + HOUR, ev.deadline);
	EXPECT_LE(self->began + 2 * HOUR, ev.fired);
}

TEST_F(set, back)
{
	struct timerwheel_event ev;

	ASSERT_EQ(0, add(self->w, 1, 0, 500 * MSEC, 0));
	ASSERT_EQ(0, set_clock(self->began - HOUR));
	EXPECT_EQ(0, timerwheel_wait(self->w, &ev, 1, SEC));
	ASSERT_EQ(0, set_clock(self->began + HOUR));
	ASSERT_EQ(1, timerwheel_wait(self->w, &ev, 1, PATIENCE));
	EXPECT_LE(ev.deadline, ev.fired);
}

/* The clock is set back after a timer was due: the waiting program is not kept busy. */
TEST_F(set, back_before_a_look)
{
	struct pollfd p = { .fd = timerwheel_fd(self->w), .events = POLLIN };
	struct timerwheel_event ev;

	ASSERT_EQ(0, add(self->w, 1, 0, 20 * MSEC, 0));
	ASSERT_EQ(1, poll(&p, 1, PATIENCE_MS));
	ASSERT_EQ(0, set_clock(self->began - HOUR));
	/* The device has noticed that it was due; the process back end has not. */
	EXPECT_EQ(ON_DEVICE ? 1 : 0, take(self->w, &ev, 1));
	EXPECT_EQ(0, poll(&p, 1, 0));
}

/* A due timer stays due, with no time left. */
TEST_F(set, back_after_a_look)
{
	struct timerwheel_remove rem = { .key = 1 };
	struct timerwheel_entry entry;

	ASSERT_EQ(0, add(self->w, 1, 0, 0, 0));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, get(self->w, 1, &entry));
	ASSERT_EQ(0, set_clock(self->began - HOUR));
	EXPECT_EQ(true, readable(self->w));
	EXPECT_EQ(TIMERWHEEL_WAS_DUE, remove_elem(self->w, &rem));
	EXPECT_GE(0, rem.left);
	EXPECT_EQ(false, readable(self->w));
}

TEST_HARNESS_MAIN
