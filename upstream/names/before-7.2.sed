# SPDX-License-Identifier: GPL-2.0
# alarm_start_timer() came with 7.2, and so did the second argument of io_uring_sqe_cmd().
s/alarm_start_timer(\(.*\), true);/alarm_start_relative(\1);/
s/io_uring_sqe_cmd(cmd->sqe, struct timerwheel_uring)/io_uring_sqe_cmd(cmd->sqe)/
