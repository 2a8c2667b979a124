# SPDX-License-Identifier: GPL-2.0
the mode of the old file is not kept; timerwheel/wheels:mode; s/place->old.st_mode & 07777/0644/
any error of open is taken for no file; timerwheel/wheels:leads_nowhere; s/ && errno != ENOENT)/ \&\& !errno)/
the file beside stays after a failure; timerwheel/wheels:beside; s/^\t\tunlinkat(place.folder, temporary, 0);/\t\t;/
a file that cannot be synced replaces the old one; timerwheel/wheels:synced; s/ || fsync(fd))/)/
a stranger's file in a sticky directory is kept for him; timerwheel/wheels:save:_to; s/if (planted(&place->old, place->name) || planted(&place->old, path))/if (0)/
a stranger's file in a sticky directory is believed; timerwheel/wheels:of_a_stranger; s/if (planted(&st, reading_name) || planted(&st, path))/if (0)/
only the path of the file counts, not the one given; timerwheel/wheels:shared/away; s/planted(&st, reading_name) || //
only the path given counts, not where a link leads; timerwheel/wheels:folder/there; s/ || planted(&st, path)//
only a directory for all is shared; timerwheel/wheels:for_a_group; s/st.st_mode \& 0022/st.st_mode \& 0002/
the owner of the directory is a stranger; timerwheel/wheels:directory's_owner; s/ && file->st_uid != st.st_uid;/;/
a boot twice; timerwheel/host:a_line; s/ || \*reading->boot ||/ ||/
