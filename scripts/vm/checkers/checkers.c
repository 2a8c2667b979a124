// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module with bugs: one of each kind that a debug kernel must detect.
 *
 *	echo NAME >/sys/module/checkers/parameters/bug
 *
 * triggers the bug NAME. Load it only in a guest.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kmsan-checks.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"

/* Hide the value of a pointer from the compiler. */
static int *hide(int *p)
{
	OPTIMIZER_HIDE_VAR(p);
	return p;
}

static int sink;

static void use_after_free(void)
{
	int *p = hide(kmalloc(64, GFP_KERNEL));

	kfree(p);
	sink = READ_ONCE(*p);
}

static void vmalloc_overrun(void)
{
	/* in the rest of the page, because the next page is not mapped */
	int *p = hide(vmalloc(PAGE_SIZE / 2));

	sink = READ_ONCE(p[PAGE_SIZE / 2 / sizeof(*p)]);
	vfree(p);
}

static void stack_overrun(void)
{
	int a[4] = {};

	sink = READ_ONCE(hide(a)[4]);
}

/* A write that KASAN does not see */
static __no_sanitize_address noinline void poke(char *p)
{
	WRITE_ONCE(*p, *p + 1);
}

static void slab_redzone(void)
{
	struct kmem_cache *cache = kmem_cache_create("checkers", 60, 0, 0, NULL);
	char *p = kmem_cache_alloc(cache, GFP_KERNEL);

	poke((char *)hide((int *)p) + 62);
	kmem_cache_free(cache, p);
	/* KASAN's quarantine holds the object until now */
	kmem_cache_destroy(cache);
}

static void wrong_shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	sink = 1 << by;
}

static void wrong_index(void)
{
	static int a[4];
	unsigned int i = 5;

	OPTIMIZER_HIDE_VAR(i);
	if (i < 6)
		sink = a[i];
}

static enum hrtimer_restart never(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void armed_hrtimer(void)
{
	struct hrtimer *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	hrtimer_setup(timer, never, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	hrtimer_start(timer, ns_to_ktime(NSEC_PER_SEC * 3600), HRTIMER_MODE_REL);
	kfree(timer);
}

static void nothing(struct rcu_head *head)
{
}

static void rcu_twice(void)
{
	static struct rcu_head head;

	call_rcu(&head, nothing);
	call_rcu(&head, nothing);
	rcu_barrier();
}

static void list_corruption(void)
{
	LIST_HEAD(list);
	struct list_head node;

	list_add(&node, &list);
	WRITE_ONCE(list.next, &list);
	list_add(&node, &list);
}

static void sleep_in_atomic(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static void wrong_cpu(void)
{
	sink = smp_processor_id();
}

static void leak(void)
{
	int i;

	for (i = 0; i < 32; i++)
		hide(kmalloc(200, GFP_KERNEL));
}

static DEFINE_MUTEX(one);
static DEFINE_MUTEX(two);

static void lock_inversion(void)
{
	mutex_lock(&one);
	mutex_lock(&two);
	mutex_unlock(&two);
	mutex_unlock(&one);
	mutex_lock(&two);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&two);
}

static DEFINE_RAW_SPINLOCK(raw);
static DEFINE_SPINLOCK(normal);

static void softirq_lock(void)
{
	/* with softirqs enabled... */
	raw_spin_lock(&raw);
	raw_spin_unlock(&raw);
	/* ...and as if in a softirq */
	local_bh_disable();
	lockdep_softirq_enter();
	raw_spin_lock(&raw);
	raw_spin_unlock(&raw);
	lockdep_softirq_exit();
	local_bh_enable();
}

static void lock_nesting(void)
{
	raw_spin_lock(&raw);
	spin_lock(&normal);
	spin_unlock(&normal);
	raw_spin_unlock(&raw);
}

static int value;
static int __rcu *pointer = (int __rcu __force *)&value;

static void rcu_unlocked(void)
{
	sink = *rcu_dereference(pointer);
}

static void spin(unsigned int seconds)
{
	while (seconds--)
		mdelay(1000);
}

static void soft_lockup(void)
{
	preempt_disable();
	spin(12);
	preempt_enable();
}

static void hard_lockup(void)
{
	local_irq_disable();
	spin(20);
	local_irq_enable();
}

static void hung_task(void)
{
	schedule_timeout_uninterruptible(15 * HZ);
}

static int racing;

static int racer(void *end)
{
	while (!kthread_should_stop())
		racing++;
	return 0;
}

static void increment_race(void)
{
	struct task_struct *other = kthread_run(racer, NULL, "racer");
	unsigned long end = jiffies + 5 * HZ;

	while (time_before(jiffies, end)) {
		racing++;
		cond_resched();
	}
	kthread_stop(other);
}

static void uninit_slab(void)
{
	int *p = hide(kmalloc(64, GFP_KERNEL));

	if (READ_ONCE(p[3]))
		sink = 1;
	kfree(p);
}

static void uninit_page(void)
{
	struct page *page = alloc_page(GFP_KERNEL);

	if (READ_ONCE(*hide(page_address(page))))
		sink = 1;
	__free_page(page);
}

static void uninit_stack(void)
{
	int a[4];

	if (READ_ONCE(hide(a)[1]))
		sink = 1;
}

static noinline void take(int argument)
{
	WRITE_ONCE(sink, argument);
}

static void uninit_argument(void)
{
	int a[4];

	take(READ_ONCE(hide(a)[1]));
}

static void freed_value(void)
{
	int *p = hide(kzalloc(64, GFP_KERNEL));

	kfree(p);
	if (READ_ONCE(p[3]))
		sink = 1;
}

/* A page of the task's memory, to copy to */
static void __user *user_page(void)
{
	return (void __user *)vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, 0);
}

/* All of a structure is copied, its padding as well. */
static void copy_leak(void)
{
	struct { u8 byte; u64 number; } hole;
	void __user *to = user_page();

	hole.byte = 1;
	hole.number = 2;
	sink = copy_to_user(to, hide((int *)&hole), sizeof(hole));
	vm_munmap((unsigned long)to, PAGE_SIZE);
}

static void put_leak(void)
{
	u32 __user *to = user_page();
	int *p = hide(kmalloc(64, GFP_KERNEL));
	u32 word = READ_ONCE(p[3]);

	if (user_access_begin(to, sizeof(*to))) {
		unsafe_put_user(word, to, fault);
fault:
		user_access_end();
	}
	kfree(p);
	vm_munmap((unsigned long)to, PAGE_SIZE);
}

/* No function copies memory that user space may map, so the module checks it explicitly. */
static void mapped_leak(void)
{
	struct page *page = alloc_page(GFP_KERNEL);

	memset(page_address(page), 0, PAGE_SIZE - 8);
	kmsan_check_memory(page_address(page), PAGE_SIZE);
	__free_page(page);
}

static const struct bug {
	const char *name;
	void (*commit)(void);
} bugs[] = {
	{ "use_after_free", use_after_free },
	{ "vmalloc_overrun", vmalloc_overrun },
	{ "stack_overrun", stack_overrun },
	{ "slab_redzone", slab_redzone },
	{ "wrong_shift", wrong_shift },
	{ "wrong_index", wrong_index },
	{ "armed_hrtimer", armed_hrtimer },
	{ "rcu_twice", rcu_twice },
	{ "list_corruption", list_corruption },
	{ "sleep_in_atomic", sleep_in_atomic },
	{ "wrong_cpu", wrong_cpu },
	{ "leak", leak },
	{ "lock_inversion", lock_inversion },
	{ "softirq_lock", softirq_lock },
	{ "lock_nesting", lock_nesting },
	{ "rcu_unlocked", rcu_unlocked },
	{ "soft_lockup", soft_lockup },
	{ "hard_lockup", hard_lockup },
	{ "hung_task", hung_task },
	{ "increment_race", increment_race },
	{ "uninit_slab", uninit_slab },
	{ "uninit_page", uninit_page },
	{ "uninit_stack", uninit_stack },
	{ "uninit_argument", uninit_argument },
	{ "freed_value", freed_value },
	{ "copy_leak", copy_leak },
	{ "put_leak", put_leak },
	{ "mapped_leak", mapped_leak },
};

static int commit(const char *name, const struct kernel_param *kp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (sysfs_streq(name, bugs[i].name)) {
			bugs[i].commit();
			return 0;
		}
	return -EINVAL;
}

static const struct kernel_param_ops bug_ops = { .set = commit };
module_param_cb(bug, &bug_ops, NULL, 0200);
MODULE_PARM_DESC(bug, "Write the name of a bug to trigger it");

MODULE_DESCRIPTION("Bugs that debug kernels must detect");
MODULE_LICENSE("GPL");
