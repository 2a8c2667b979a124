// SPDX-License-Identifier: MIT OR GPL-2.0
/* A wheel in libuv's loop. Build with `pkg-config --cflags --libs libuv timerwheel`. */
#include <stdio.h>
#include <uv.h>

#include "sessions.h"

static uv_poll_t poll_handle;
static uv_prepare_t prepare_handle;

/* This only wakes the loop, because events are taken after the callbacks of all connections. */
static void readable(uv_poll_t *handle, int status, int events)
{
	(void)handle;
	(void)status;
	(void)events;
}

/* The loop calls this before it waits, after the callbacks of all connections. */
static void prepare(uv_prepare_t *handle)
{
	sessions_expire();
	if (!sessions_left()) {
		uv_close((uv_handle_t *)handle, NULL);
		uv_close((uv_handle_t *)&poll_handle, NULL);
	}
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	int err;

	sessions_start(argc, argv);
	err = uv_poll_init(loop, &poll_handle, sessions_fd());
	if (!err)
		err = uv_poll_start(&poll_handle, UV_READABLE, readable);
	if (!err)
		err = uv_prepare_init(loop, &prepare_handle);
	if (!err)
		err = uv_prepare_start(&prepare_handle, prepare);
	if (err) {
		fprintf(stderr, "libuv: %s\n", uv_strerror(err));
		return 1;
	}
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	return sessions_end();
}
