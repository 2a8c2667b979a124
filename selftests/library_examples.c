// SPDX-License-Identifier: GPL-2.0
/*
 * The examples in lib/examples: a wheel in the loops of others. They see themselves whether
 * all went well.
 */
#include "library.h"

/* Where they are in a guest; elsewhere TW_EXAMPLES in the environment says */
#define EXAMPLES	"/examples"

FIXTURE(loop)
{
	char path[256];
};

FIXTURE_VARIANT(loop)
{
	const char *name;
};

FIXTURE_VARIANT_ADD(loop, epoll)
{
	.name = "epoll",
};

FIXTURE_VARIANT_ADD(loop, libevent)
{
	.name = "libevent",
};

FIXTURE_VARIANT_ADD(loop, libuv)
{
	.name = "libuv",
};

FIXTURE_SETUP(loop)
{
	const char *folder = getenv("TW_EXAMPLES");

	snprintf(self->path, sizeof(self->path), "%s/%s", folder ? folder : EXAMPLES,
		 variant->name);
	setenv("TIMERWHEEL_BACKEND", ON_DEVICE ? "device" : "process", 1);
}

FIXTURE_TEARDOWN(loop)
{
}

/* Run it. Returns its exit status. */
static int run(const char *path, const char *how)
{
	pid_t pid = fork();

	if (!pid) {
		/* What it says is for those who look. */
		dup2(2, 1);
		execl(path, path, how, NULL);
		_exit(127);
	}
	return reap(pid);
}

TEST_F(loop, read)
{
	EXPECT_EQ(0, run(self->path, NULL));
}

TEST_F(loop, ring)
{
	EXPECT_EQ(0, run(self->path, "ring"));
}

TEST_HARNESS_MAIN
