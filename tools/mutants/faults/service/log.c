# SPDX-License-Identifier: GPL-2.0
open: stderr shares its open file with other processes; proxy/run:log_full_meanwhile; s/dup2(fd, std);/;/
open: it waits for whoever reads; proxy/run:log_full_meanwhile; s/O_WRONLY | O_NONBLOCK | O_NOCTTY/O_WRONLY | O_NOCTTY/
closed: a descriptor gets the number of a standard one; guard/run:closed_descriptors; s/fd <= STDERR_FILENO/fd < 0/
usage: nothing is said of the file with the options; guard/run:options_file; s/^\tif (file)/\tif (0)/
