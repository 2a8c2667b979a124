# SPDX-License-Identifier: GPL-2.0
get: the effective user; limits:users.real_user; s/kuid_t uid = current_uid();/kuid_t uid = current_euid();/
get: one user for all; limits:users.one_at_the_cap; s/id = __kuid_val(uid);/id = uid_valid(uid) ? 0 : 1;/
put: not forgotten; limits:users.come_again; s/__xa_erase(&tw_users, user->id);/;/
put: forgotten with the first; limits:users.one_at_the_cap; s/last = !--user->files;/last = user->files-- == 2;/
find: not counted; ops:cap.two_wheels; s/user->files++;/;/
hold: not counted; monitor:monitor.outlives_its_user; /^void tw_user_hold/,/^}/s/user->files++;/;/
charge: a cap that is below what is charged is none; ops:cap.lowered; s/fits = user->memory <= max \&\& bytes <= max - user->memory;/fits = bytes <= max - user->memory;/
charge: up to a byte less than the cap; ops:cap.one_wheel; s/bytes <= max - user->memory;/bytes < max - user->memory;/
wait: not for what is closed; ops:cap.there_again; s/last += user->closing;/;/
wait: whatever the user holds; icount/many:freed.below_half_nothing_waits; s/if (memory > tw_user_memory_max() \/ 2)//
wait: at the cap only; icount/many:cap.one_wheel.*; s/> tw_user_memory_max() \/ 2)/>= tw_user_memory_max())/
charge: waits for what is closed; icount/many:freed.only_open_waits; /^static int __tw_user_charge/,/^}/s/^\tspin_lock(&user->lock);/\ttw_user_wait(user); &/
closing: not counted; ops:cap.there_again; s/user->closing++;/;/;s/user->closing--;/;/
freed: still counted as closing; ops:cap.two_wheels; s/user->closing--;/;/
freed: nobody is woken; ops:cap.there_again; s/wake_up_all(&user->wait);/;/
uncharge: nothing; ops:cap.two_wheels; s/user->memory -= bytes;/;/
memory: 0 is no memory; ops:cap.default_is_half; s/return max ?: .*/return max;/
memory: all there is; ops:cap.default_is_half; s/(totalram_pages() << PAGE_SHIFT) \/ 2/(totalram_pages() << PAGE_SHIFT)/
container: it has no cap; limits:users.in_a_namespace_of_root icount/many:container.has_the_cap_of_a_user; /^int tw_user_charge/,/^}/s/user->container ? __tw_user_charge(user->container, bytes) : 0/0/;/^void tw_user_uncharge/,/^}/s/if (user->container)/if (0)/
container: what the user is refused stays charged to it; equivalent: it needs another cap between the two charges; /^int tw_user_charge/,/^}/s/__tw_user_uncharge(user->container, bytes);/;/
container: what is freed stays charged; limits:users.in_a_namespace_of_root; /^void tw_user_uncharge/,/^}/s/if (user->container)/if (0)/
container: it is never freed; equivalent: it is a leak of some kB for each container, which no test can see; /^static void tw_user_free/,/^}/s/else if (user->container)/else if (0)/
container: there is none; icount/many:container.*,share.users_4_contained.of_a_task; /^static struct user_namespace \*tw_user_container/,/^}/s/return ns;/return NULL;/
container: all are one; limits:users.containers_are_apart; s/container->ns.inum << 32/1 << 32/
container: one with a single id; limits:users.namespace_of_root_with_one_id; s/ || !tw_user_many_ids(ns))/)/
wait: only for what the user has of a container; icount/many:container.has_the_cap_of_a_user; s/tw_user_memory(user->container ?: user)/tw_user_memory(user)/
uid: each id of a namespace is a user; limits:users.namespaces_do_not_add_caps; s/^\t\t\tuid = ns->owner;/\t\t\t;/
uid: root is charged for containers; limits:users.in_a_namespace_of_root; s/if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))/if (1)/
