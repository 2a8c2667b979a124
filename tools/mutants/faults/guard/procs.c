# SPDX-License-Identifier: GPL-2.0
children: they are not meant; guard/run:children; s/^\tchoose_children();/\t;/
cgroups: not those below; guard/run:cgroup; s/^\t\tchoose_cgroup(path);$/\t\t;/
left: nobody notices; guard/run:processes_end; s/^	return false;$/	return true;/
children: their ports are meant; guard/run:children_that_listen; s/proc->listens = end->family;/proc->listens = true;/
children: of a process, too, not; guard/run:children_that_listen; s/^\t\t\tchoose(proc, true);/\t\t\tchoose(proc, false);/
unit: any name will do; guard/run:unit; s/if (!unit_name(options.units\[i\], name) \&\& !unit_runs(name))/if (0)/
unit: a template is none; guard/run:unit; s/if (!found \&\& instance)/if (0)/
unit: a dot begins a type; guard/run:unit; s/has_type(given) ?/strchr(given, '.') ?/
left: the end of a process is not seen; guard/run:number_again; s/^\tpoll(pidfds, options.nr_pids, 0);/\t;/
pid: whoever has the number; guard/run:number_again_of_one; s/proc \&\& !pidfds\[i\].revents/proc/
pid: its end is not seen if a control group is chosen; guard/run:number_again_and; /^bool procs_left/,/^}/{/poll(pidfds/d;s/^\tfor (i = 0/\tpoll(pidfds, options.nr_pids, 0);\n&/}
unit: any link is an alias; guard/run:unit_names; s/if (!strcmp(real, folders\[k\]))/if (1)/
unit: an instance has the name of its file; guard/run:unit_names; s/if (at \&\& instance)/if (0)/
unit: no line if it does not run; guard/run:unit_names; s/^\t\tif (!unit_runs(name))$/\t\tif (0)/
unit: names that systemd changes are not found; guard/run:unit_names; s/folder + (\*folder == '_')/folder/
cgroup: any folder; guard/run:not_there; s/ || access(procs_file, R_OK))/)/
