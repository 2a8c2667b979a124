# SPDX-License-Identifier: GPL-2.0
children: they are not meant; guard/run:children; s/^\tchoose_children();/\t;/
cgroups: not those below; guard/run:cgroup; s/^\t\tchoose_cgroup(path);$/\t\t;/
left: nobody notices; guard/run:processes_end; s/^	return false;$/	return true;/
children: their ports are meant; guard/run:children_that_listen; s/procs\[i\].listens = parent->family;/procs[i].listens = true;/
children: of a process, too, not; guard/run:children_that_listen; s/^\t\t\tchoose(proc, true);/\t\t\tchoose(proc, false);/
pid: whoever has the number; guard/run:number_again; s/if (start_of(options.pids\[i\]) == starts\[i\])/if (start_of(options.pids[i]))/
