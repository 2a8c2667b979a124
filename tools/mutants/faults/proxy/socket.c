# SPDX-License-Identifier: GPL-2.0
end: a process that dies ends connections well; proxy/run:killed; s/^\tset_linger(fd, true);/\t;/
end: a good end is a reset; proxy/run:idle proxy/run:client_closes_first; s/^\tset_linger(fd, false);/\t;/
gap: a kept SYN counts as bytes after a lost byte; proxy/run:kept_syn; s/ \&\& state.disordered \&\&/ \&\&/
gap: an end of file counts as bytes after a lost byte; proxy/run:end_after_repair; s/ \&\& !fin_received(state.state) \&\&/ \&\&/
