# SPDX-License-Identifier: GPL-2.0
the mode of the old file is not kept; timerwheel/wheels:mode; s/place->old.st_mode & 07777/0644/
any error of open is taken for no file; timerwheel/wheels:leads_nowhere; s/ && errno != ENOENT)/ \&\& !errno)/
the file beside stays after a failure; timerwheel/wheels:beside; s/^\t\tunlinkat(place.folder, temporary, 0);/\t\t;/
a file that cannot be synced replaces the old one; timerwheel/wheels:synced; s/ || fsync(fd))/)/
