# SPDX-License-Identifier: GPL-2.0
write: it waits for whoever reads; proxy/run:log_that_nobody_reads; s/return poll(&poll_fd, 1, 0) == 1 \&\& poll_fd.revents \& POLLOUT \&\&/return/
