# SPDX-License-Identifier: GPL-2.0
children: they are not meant; guard/run:children; s/^\tchoose_children();/\t;/
cgroups: not those below; guard/run:cgroup; s/^\t\tchoose_cgroup(path);$/\t\t;/
left: nobody notices; guard/run:processes_end; s/^	return false;$/	return true;/
