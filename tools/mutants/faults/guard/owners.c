# SPDX-License-Identifier: GPL-2.0
take: whatever is there now; guard/run:children guard/run:moved_descriptor; s/cookie == wanted->cookie/cookie != wanted->cookie/
threads: only the main one; guard/run:main_thread; s/owner->tid = thread_living(owner->proc.pid);/;/
threads: all have the same table; guard/run:table_of_thread; s/^\t\tlook_into_other_tables(owner);/\t\t;/
mptcp: like any socket that was closed; guard/run:mptcp; s/if (is_mptcp(wanted, fd))/if (0)/
io_uring: no ring is looked at; guard/run:io_uring; s/if (search.last \&\& !owner->rings/if (0/
namespaces: all are the same; guard/run:other_namespace; s/^\t\tcheck_namespace(owners\[i\]);/\t\t;/
namespaces: counted each time; guard/run:other_namespace; s/^\towner->foreign = true;/\t;/
denied: only one process is named; guard/run:denied; s/owners\[i\]->denied \&\& (!suspect || !procs_all())/owners[i]->denied \&\& !suspect/
log: each line again and again; guard/run:mptcp; s/owners\[i\]->said |= 1U << reason;/;/
memory: as much as the highest descriptor; guard/run:high_descriptors; s/COOKIES_MIN + (uint64_t)COOKIES_EACH/COOKIES_MIN + 1000000ULL/
transparent: logged each time; guard/run:transparent; s/^\t\towner->transparent = true;/\t\t;/
transparent: only the first process; guard/run:transparent; s/owner \&\& !owner->transparent;/!said;\n\tsaid = true;/;s/^\tbool first = !said/\tstatic bool said;\n&/
name: of the first program; guard/run:report_executed; s/^\t\towner->proc = \*proc;/\t\towner->proc.listens = proc->listens;/
