// SPDX-License-Identifier: GPL-2.0
/*
 * The module's operations, built in user space, in place of the calls of /dev/timerwheel:
 * ../facility/timerwheel.c and resident.c run on them unchanged. Built by ../lines/Makefile.
 *
 * A call copies elements to and from a buffer in batches of 32, as batch.c does. It does not enter
 * the kernel.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "cpu.h"
#include "deadlines.h"
#include "events.h"
#include "file.h"
#include "flow.h"
#include "internal.h"
#include "native.h"
#include "ring.h"
#include "run.h"
#include "table.h"
#include "wheel.h"

#define BATCH	32U		/* operations in a batch; batch.c has 24 to 48, by size */
#define EXPIRY	128U		/* timers in an expiry batch, as in cpu.c */
#define EXPIRY_RING	96U

static struct tw_file *file;
static struct tw_cpu *cpu;
static u64 *deadlines;		/* the deadline table, contiguous as programs map it */

int wheel_open(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

/* Grow the table before anything is measured, and make its entries contiguous. */
static void grow(u32 timers)
{
	struct tw_dir *dir = &file->table.dir[TW_DIR_DEADLINES];
	u64 **pages;
	u32 i;

	while (file->table.made < timers + 4 * TW_MAGAZINE)
		if (tw_table_grow(file))
			abort();
	pages = tw_pool_deadlines(&file->table.pool);
	if (!pages)
		return;
	deadlines = shim_zeroed(dir->used * PAGE_SIZE);
	for (i = 0; i < dir->used; i++) {
		memcpy((char *)deadlines + i * PAGE_SIZE, pages[i], PAGE_SIZE);
		shim_free(pages[i]);
		pages[i] = (u64 *)((char *)deadlines + i * PAGE_SIZE);
	}
}

void wheel_setup(int wheel, struct timerwheel_setup *setup)
{
	bool resident = setup->flags & TIMERWHEEL_SETUP_RESIDENT;

	file = lines_file(lines_now, setup->ring, resident || setup->flags & TIMERWHEEL_SETUP_TABLE,
			  resident);
	file->ring.events = setup->ring;
	cpu = file->cpu[0];
	grow(native_timers);
}

void wheel_info(int wheel, struct timerwheel_info *info)
{
	*info = (struct timerwheel_info) {
		.generation_bits = LINES_BITS,
		.ring = file->ring.events,
		.event_size = sizeof(struct timerwheel_event),
	};
}

void wheel_wait_freed(void)
{
}

static unsigned int each(void *elems, u32 count, size_t size,
			 int (*operate)(struct tw_ctx *ctx, void *elems, int n), u32 flags)
{
	char copy[BATCH * sizeof(struct timerwheel_add)] __aligned(8);
	struct tw_ctx ctx;
	int n;

	for (; count; count -= n, elems += n * size) {
		n = min(count, BATCH);
		memcpy(copy, elems, n * size);
		tw_cpu_begin(&ctx, file, 0);
		ctx.flags = flags;
		if (operate(&ctx, copy, n) != n)
			abort();
		tw_cpu_end(&ctx);
		memcpy(elems, copy, n * size);
	}
	return 1;
}

unsigned int wheel_add(int wheel, struct timerwheel_add *elems, __u32 count)
{
	return each(elems, count, sizeof(*elems), tw_ops_add, 0);
}

unsigned int wheel_move(int wheel, struct timerwheel_move *elems, __u32 count)
{
	return each(elems, count, sizeof(*elems), tw_ops_move, 0);
}

unsigned int wheel_remove(int wheel, struct timerwheel_remove *elems, __u32 count)
{
	return each(elems, count, sizeof(*elems), tw_ops_remove, 0);
}

unsigned int wheel_move_handle(int wheel, __u32 flags, struct timerwheel_move_handle *elems,
			       __u32 count)
{
	return each(elems, count, sizeof(*elems), tw_ops_move_handle, flags);
}

unsigned int wheel_remove_handle(int wheel, struct timerwheel_remove_handle *elems, __u32 count)
{
	return each(elems, count, sizeof(*elems), tw_ops_remove_handle, 0);
}

__u32 wheel_read(int wheel, struct timerwheel_event *events, __u32 count)
{
	struct iov_iter to = { .ubuf = events, .count = count * sizeof(*events) };
	ssize_t got = tw_events_read(file, &to, false);

	return got > 0 ? got / sizeof(*events) : 0;
}

struct epoll_event;

/* poller.h: expire what is due. Returns 1 if there are events. */
int poller_wait(int poller, struct epoll_event *ready, int most, __u64 until)
{
	struct tw_ctx ctx = { .file = file, .cpu = cpu, .now = lines_now };
	bool ring = tw_has_ring(file), more, any = false;
	struct tw_due_list due;

	do {
		raw_spin_lock(&cpu->lock);
		due = (struct tw_due_list){};
		more = tw_wheel_collect(&cpu->wheel, tw_cpu_tick(cpu, lines_now), lines_now,
					ring ? EXPIRY_RING : EXPIRY, false, false, &due);
		any |= due.count;
		if (due.count && ring)
			tw_flow_expire(&ctx, &due);
		else if (due.count)
			ctx.wake_readers |= tw_events_add(cpu, &due, ctx.now);
		raw_spin_unlock(&cpu->lock);
	} while (more);
	if (ctx.wake_readers)
		tw_events_wake(file);
	return any;
}

int poller_open(void)
{
	return -1;
}

void poller_add(int poller, int fd, __u32 number)
{
}

/* The linker directs calls of the facilities here (--wrap). */
int __wrap_ioctl(int fd, unsigned long op, ...)
{
	if (op != TIMERWHEEL_IOC_FLOW)
		abort();
	return tw_flow_ioctl(file);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0 || !file) {
		/* the library's: in huge pages, like all memory of malloc() */
		at = __real_mmap(at, size, prot, flags, fd, offset);
		madvise(at, size, MADV_HUGEPAGE);
		return at;
	}
	return offset == TIMERWHEEL_MMAP_RING ? (void *)file->ring.shared : (void *)deadlines;
}
