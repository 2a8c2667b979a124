/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KCOV coverage of code that runs for a file outside of system calls: expiry in softirq, and the
 * worker of the connections. KCOV traces a task. It traces these sections for the task that opened
 * the file, if the task has requested it (KCOV_REMOTE_ENABLE), as fuzzers do. It does not trace
 * turns in the engine's thread, because bottom halves are off there, and KCOV may have to sleep.
 */
#ifndef TW_COVER_H
#define TW_COVER_H

#include <linux/types.h>

#include "internal.h"

#ifdef CONFIG_KCOV

#include <linux/build_bug.h>
#include <linux/kcov.h>
#include <linux/preempt.h>
#include <linux/string.h>

/* A handle is a number, or in newer kernels a structure with a number; 0 means none. */
static_assert(sizeof(kcov_common_handle()) == sizeof_field(struct tw_file, cover));

static inline void tw_cover_open(struct tw_file *file)
{
	typeof(kcov_common_handle()) handle = kcov_common_handle();

	memcpy(&file->cover, &handle, sizeof(handle));
}

/* Returns true if tw_cover_end() must be called at the end of the section. */
static inline bool tw_cover_begin(const struct tw_file *file)
{
	typeof(kcov_common_handle()) handle;

	if (!file->cover || (softirq_count() && !in_serving_softirq()))
		return false;
	memcpy(&handle, &file->cover, sizeof(handle));
	kcov_remote_start_common(handle);
	return true;
}

static inline void tw_cover_end(bool begun)
{
	if (begun)
		kcov_remote_stop();
}

#else

static inline void tw_cover_open(struct tw_file *file)
{
}

static inline bool tw_cover_begin(const struct tw_file *file)
{
	return false;
}

static inline void tw_cover_end(bool begun)
{
}

#endif /* CONFIG_KCOV */

#endif /* TW_COVER_H */
