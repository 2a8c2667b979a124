/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the kernel that the module's table, operations, events and ring need, for a single
 * thread. It is included before everything else. Kernel headers that the module includes and that
 * are not in selftests/unit/wheel/shim/ are empty. So anything missing here is a compile error; add
 * it to the section that it belongs to.
 *
 * Used by the test in this folder, which defines SHIM_TEST, and by bench/lines, where each function
 * must cost what the kernel's does.
 */
#ifndef SHIM_H
#define SHIM_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <asm/page.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

/* --- Hooks of the test -------------------------------------------------------------------- */

#ifdef SHIM_TEST
/* The number of this CPU */
extern unsigned int shim_cpu;
/* Called before a bucket is locked. */
void shim_before_bucket(void);
/* Is this allocation to fail? */
bool shim_no_memory(void);
/* Allocations that were not freed */
extern long shim_allocations;
/* Is this access to user memory to fault? */
bool shim_fault(void);
/* Does faulting in user memory fail? */
bool shim_fault_in(void);
/* Called by cond_resched(). */
void shim_resched(void);
/* Was this task killed? */
bool shim_killed(void);
/* Bottom halves are disabled; a raw lock is taken. */
void shim_bh_disable(void);
void shim_lock(const void *lock);
/* An index is limited for speculation, too. */
unsigned long shim_nospec(unsigned long index, unsigned long size);
/* Called before each READ_ONCE(), if it is not NULL. */
extern void (*rig_read)(const void *place);
#undef READ_ONCE
#define READ_ONCE(x) ({					\
	if (unlikely(rig_read))				\
		rig_read((const void *)&(x));		\
	*(const volatile __typeof__(x) *)&(x);		\
})
#else
#define shim_cpu		0
#define shim_before_bucket()	do { } while (0)
#define shim_no_memory()	false
#define shim_fault()		false
#define shim_fault_in()		false
#define shim_resched()		do { } while (0)
#define shim_killed()		false
#define shim_bh_disable()	do { } while (0)
#define shim_lock(lock)		do { } while (0)
#define shim_nospec(i, n)	((i) < (n) ? (i) : 0)
#endif

/* --- Constants and macros --------------------------------------------------------------- */

#define CONFIG_64BIT		1
#define __user
#define __printf(a, b)
#ifndef __aligned
#define __aligned(n)		__attribute__((__aligned__(n)))
#endif
#define PTR_ALIGN_DOWN(p, n)	((__typeof__(p))((unsigned long)(p) & ~((unsigned long)(n) - 1)))
/* All names are the newest kernel's, so compat.h is not needed. */
#define TW_COMPAT_H
#define TW_TCP_ABORT_LOCKED	true
#define __uninitialized
#define CONFIG_ARCH_SUPPORTS_INT128	1
#define PAGE_ALIGN(n)		(((n) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
#define NSEC_PER_SEC		1000000000ULL
#define NSEC_PER_USEC		1000ULL
#define ERR_PTR(e)		((void *)(long)(e))
#define IS_ERR(p)		((unsigned long)(p) >= -4095UL)
#define IS_ERR_OR_NULL(p)	(!(p) || IS_ERR(p))
#define PTR_ERR(p)		((int)(long)(p))
#define KTIME_MAX		((s64)(~0ULL >> 1))
#define array_index_nospec(i, n)	((__typeof__(i))shim_nospec(i, n))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define fls(x)			fls64((u32)(x))
#define min3(a, b, c)		min(min(a, b), c)
#define clamp(v, low, high)	min(max(v, low), high)
#define WARN_ON_ONCE(c)		do { if (c) abort(); } while (0)
#define refcount_set(r, n)	((void)((r)->refs = (n)))
#define refcount_inc(r)		((void)(r)->refs++)
#define refcount_dec_and_test(r) (!--(r)->refs)

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((__uint128_t)a * b) >> shift);
}

/* --- Types: complete if the module's structures contain them ------------------------------ */

/* A single u32, as without lockdep */
typedef struct { u32 word; } raw_spinlock_t;
typedef struct { u32 word; } spinlock_t;
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { int refs; } refcount_t;
typedef struct { u32 val; } kuid_t;
typedef struct { int none; } wait_queue_head_t;
typedef unsigned long vm_flags_t;

struct hrtimer { int none; };
struct list_head { struct list_head *next, *prev; };
struct llist_head { struct llist_node *first; };
struct llist_node { struct llist_node *next; };
struct lock_class_key { int none; };
struct lockdep_map { int none; };
struct mutex { int none; };
struct rcu_head { int none; };
struct vm_struct { long none[8]; };
struct vmap_area { long none[9]; };
typedef struct { u64 val; } pte_t;
struct vm_area_struct { vm_flags_t vm_flags; };
struct work_struct { int none; };
struct delayed_work { int none; };
struct timerqueue_head { int none; };
struct timerqueue_node { int none; };
struct rb_root { int none; };
struct rb_node { int none; };

struct fasync_struct;
struct file;
struct file_operations;
struct page;
struct seq_file;

enum hrtimer_restart { HRTIMER_NORESTART };
enum hrtimer_mode { HRTIMER_MODE_ABS };

/* --- Locks: a load and a store each ------------------------------------------------------ */

static inline void raw_spin_lock_init(raw_spinlock_t *lock)
{
	lock->word = 0;
}

static inline void raw_spin_lock(raw_spinlock_t *lock)
{
	if (READ_ONCE(lock->word))
		abort();
	WRITE_ONCE(lock->word, 1);
	shim_lock(lock);
}

static inline void raw_spin_unlock(raw_spinlock_t *lock)
{
	WRITE_ONCE(lock->word, 0);
}

static inline void bit_spin_lock(int bit, unsigned long *word)
{
	shim_before_bucket();
	if (READ_ONCE(*word) & BIT(bit))
		abort();
	WRITE_ONCE(*word, *word | BIT(bit));
}

static inline void bit_spin_unlock(int bit, unsigned long *word)
{
	WRITE_ONCE(*word, *word & ~BIT(bit));
}

/* A single instruction, as in the kernel */
static inline void kcsan_disable_current(void)
{
}

static inline void kcsan_enable_current(void)
{
}

static inline void __bit_spin_unlock(int bit, unsigned long *word)
{
	*word &= ~BIT(bit);
}

/* There is one thread. */
#define mutex_init(m)		((void)(m))
#define mutex_lock(m)		((void)(m))
#define mutex_lock_killable(m)	((void)(m), 0)
#define mutex_unlock(m)		((void)(m))

#define local_bh_disable()	shim_bh_disable()
#define local_bh_enable()	do { } while (0)
#define pagefault_disable()	do { } while (0)
#define pagefault_enable()	do { } while (0)
#define cond_resched()		shim_resched()

#define lockdep_assert_held(l)				((void)(l))
#define lockdep_init_map_wait(m, name, key, sub, type)	((void)(m), (void)(key))
#define lock_map_acquire(m)				((void)(m))
#define lock_map_release(m)				((void)(m))

/* --- Memory ordering: plain loads and stores, as on x86 --------------------------------- */

/* Pairs with nothing, like the other two: there is one thread. */
#define smp_load_acquire(p)	READ_ONCE(*(p))
/* See above. */
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
/* See above. */
static inline void smp_mb(void)
{
	__asm__ volatile("" : : : "memory");
}

#define cmpxchg64(p, old, new)	__sync_val_compare_and_swap(p, old, new)

/* --- Memory ------------------------------------------------------------------------------ */

#define GFP_KERNEL_ACCOUNT	0
#define __GFP_NOWARN		0
#define __GFP_RETRY_MAYFAIL	0
#define __GFP_ZERO		0
#define PAGE_ALLOC_COSTLY_ORDER	3
#define SZ_16K			(16UL << 10)
#define SZ_256K			(256UL << 10)

/* Aligned at least as by the kernel's allocators: sizes that are powers of two, up to a page. */
static inline void *shim_zeroed(size_t size)
{
	size_t align = size >= PAGE_SIZE ? PAGE_SIZE : size >= 4096 ? 4096 : 64;
	size_t whole = (size + align - 1) & ~(align - 1);
	void *p = shim_no_memory() ? NULL : aligned_alloc(align, whole);

#ifdef SHIM_TEST
	shim_allocations += !!p;
#endif
	return p ? memset(p, 0, whole) : NULL;
}

static inline void shim_free(const void *p)
{
#ifdef SHIM_TEST
	shim_allocations -= !!p;
#endif
	free((void *)p);
}

/* kmalloc() sizes are powers of two. */
static inline size_t kmalloc_size_roundup(size_t size)
{
	return size > 8 ? 1UL << fls64(size - 1) : 8;
}

#define kzalloc(size, gfp)	shim_zeroed(size)
#define kfree(p)		shim_free(p)
#define get_zeroed_page(gfp)	((unsigned long)shim_zeroed(PAGE_SIZE))
#define tw_page_map(page)	((void)(page))
#define is_vmalloc_addr(p)	false
#define virt_to_page(p)		((struct page *)(p))
#define vmalloc_to_page(p)	((struct page *)(p))

#define kmsan_check_memory(p, n)	((void)(p), (void)(n))

/* pages.c and its header */
#define TW_PAGES_H
#define tw_piece_alloc(size)	shim_zeroed(size)
#define tw_piece_free(p, size)	((void)(size), shim_free(p))
#define tw_pages_alloc(size)	shim_zeroed(size)
#define tw_pages_free(p, size)	((void)(size), shim_free(p))
#define tw_free_page(p)		shim_free(p)
#define tw_free_pause(page)	((void)(page))

/* Reproducible random bytes */
static inline void get_random_bytes(void *p, size_t n)
{
	static u64 state = 0x2545f4914f6cdd1dULL;
	u8 *byte = p;

	while (n--) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		*byte++ = state >> 56;
	}
}

/* --- User memory ----------------------------------------------------- */

struct iov_iter {
	void *ubuf;
	size_t iov_offset;
	size_t count;
};

#define user_access_begin(to, n)	((void)(to), true)
#define user_access_end()		do { } while (0)
#define unsafe_put_user(v, to, fault) \
	do { if (shim_fault()) goto fault; WRITE_ONCE(*(to), v); } while (0)

#define unsafe_get_user(v, from, fault) \
	do { if (shim_fault()) goto fault; v = READ_ONCE(*(from)); } while (0)
#define u64_to_user_ptr(n)		((void *)(unsigned long)(n))
#define fault_in_subpage_writeable(to, n) (shim_fault_in() ? (n) : 0)

static inline size_t copy_to_user(void *to, const void *from, size_t n)
{
	if (shim_fault())
		return n;
	memcpy(to, from, n);
	return 0;
}

static inline size_t clear_user(void *to, size_t n)
{
	if (n && shim_fault())
		return n;
	memset(to, 0, n);
	return 0;
}

/* No case has elements of another size. */
static inline int copy_struct_from_user(void *to, size_t known, const void *from, size_t size)
{
	if (known != size)
		abort();
	memcpy(to, from, size);
	return 0;
}

static inline int copy_to_user_nofault(void *to, const void *from, size_t n)
{
	if (shim_fault())
		return -EFAULT;
	memcpy(to, from, n);
	return 0;
}

static inline size_t iov_iter_count(const struct iov_iter *i)
{
	return i->count;
}

static inline bool iter_is_ubuf(const struct iov_iter *i)
{
	return true;
}

#define iter_iov_addr(i)	((i)->ubuf + (i)->iov_offset)

static inline void iov_iter_advance(struct iov_iter *i, size_t n)
{
	i->iov_offset += n;
	i->count -= n;
}

static inline void iov_iter_revert(struct iov_iter *i, size_t n)
{
	i->iov_offset -= n;
	i->count += n;
}

static inline size_t copy_to_iter(const void *from, size_t n, struct iov_iter *i)
{
	if (shim_fault())
		return 0;
	memcpy(i->ubuf + i->iov_offset, from, n);
	iov_iter_advance(i, n);
	return n;
}

static inline size_t fault_in_iov_iter_writeable(const struct iov_iter *i, size_t n)
{
	return shim_fault_in() ? n : 0;
}

/* --- Sleeping, signals, counters: no task sleeps ------------------------------------------ */

#define EPOLLIN				0
#define EPOLLRDNORM			0
#define EPOLLHUP			0
#define current				NULL
#define signal_pending(t)		shim_killed()
#define fatal_signal_pending(t)		shim_killed()
#define init_waitqueue_head(w)		((void)(w))
#define wq_has_sleeper(w)		((void)(w), false)
#define wake_up_interruptible_poll(w, m) ((void)(w))
#define __wake_up(w, state, all, key) ((void)(w))
#define cancel_work_sync(w) ((void)(w))
#define smp_processor_id()		shim_cpu
#define kill_fasync(f, s, b)		((void)(f))
#define INIT_LIST_HEAD(l)		((void)(l))
#define atomic64_inc(a)			((void)(a)->counter++)
#define atomic_long_set(a, n)		((void)((a)->counter = (n)))
#define atomic_long_read(a)		((a)->counter)
#define atomic_long_add(n, a)		((void)((a)->counter += (n)))
#define atomic_long_sub(n, a)		((void)((a)->counter -= (n)))

/* The program sets the time. */
u64 ktime_get_ns(void);
#define ktime_get_boottime_ns()		((u64)0)
#define ktime_get_real_ns()		((u64)0)

/* Instead of module/trace.h: tracepoints that are disabled */
#define TW_TRACE_H
#define trace_timerwheel_arm(...)		do { } while (0)
#define trace_timerwheel_move(...)		do { } while (0)
#define trace_timerwheel_remove(...)		do { } while (0)
#define trace_timerwheel_expire(...)		do { } while (0)
#define trace_timerwheel_deliver(...)		do { } while (0)
#define trace_timerwheel_deliver_enabled()	false

#endif /* SHIM_H */
