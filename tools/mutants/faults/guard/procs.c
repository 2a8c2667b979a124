# SPDX-License-Identifier: GPL-2.0
children: they are not meant; guard/run:children; s/^\tchoose_children();/\t;/
cgroups: not those below; guard/run:cgroup; s/^\t\tchoose_cgroup(path);$/\t\t;/
left: nobody notices; guard/run:processes_end; s/^	return false;$/	return true;/
children: their ports are meant; guard/run:children_that_listen; s/procs\[i\].listens = parent->family;/procs[i].listens = true;/
children: of a process, too, not; guard/run:children_that_listen; s/^\t\t\tchoose(proc, true);/\t\t\tchoose(proc, false);/
unit: any name will do; guard/run:unit; s/^\t\tif (!unit_exists(options.units\[i\]))/\t\tif (0)/
unit: a template is none; guard/run:unit; s/^\treturn unit_name(name, path);/\treturn false;/
unit: a dot begins a type; guard/run:unit; s/has_type(given) ?/strchr(given, '.') ?/
left: the end of a process is not seen; guard/run:number_again; s/^\tpoll(pidfds, options.nr_pids, 0);/\t;/
pid: whoever has the number; guard/run:number_again_of_one; s/proc \&\& !pidfds\[i\].revents/proc/
