# SPDX-License-Identifier: GPL-2.0
# In the kernel's tree there is no compat.h: the names in it that are not the kernel's.
/^#include "compat\.h"$/d
/^MODULE_VERSION(/d
/^\ttw_page_unmap(page);$/d
/^\t\ttw_page_map(page\[i\]);$/d
/^\tif (page && kind == TW_DIR_DEADLINES)$/{
N
d
}
s/IS_ENABLED(CONFIG_TIMERWHEEL_URING)/tw_fops.uring_cmd/
s/CONFIG_TIMERWHEEL_URING/CONFIG_IO_URING/
s/tw_devnode_device \*/const struct device */
s/tw_uring_argument(cmd)/io_uring_sqe_cmd(cmd->sqe, struct timerwheel_uring)/
s/return tw_uring_result(cmd, result, issue_flags);/return result;/
s/(IS_ENABLED(CONFIG_BPF_SYSCALL) || !TW_TCP_ABORT_LOCKED)/IS_ENABLED(CONFIG_BPF_SYSCALL)/
/^\tif (!TW_TCP_ABORT_LOCKED)$/{
N
d
}
s/^#include <linux\/ioctl\.h>$/#include <linux\/io_uring\/cmd.h>\n&/

# Comments: what they refer to has another name there, or is not there.
/ README\.md is the map: data flow, states of a timer,$/{
N
s/ README\.md is.*/ For the states of a timer, the order of\n * locks and lifetimes see timerwheel-internals.rst./
}
s/Documentation\/design\(\/[a-z]*\.md\)\?/timerwheel-internals.rst/
s/README\.md/timerwheel-internals.rst/
s/^\( \* .*\); see \(timerwheel-internals.rst.*\)$/\1; see\n *\t\2/
s/so it also builds in user space (selftests\/unit\/wheel)/so wheel_kunit.c tests it alone/
/^ \*$/{
N
/selftests\/model\/resident\.pml/d
}
/^ \* user space\. So this does not wait for it\. Before 6\.5 it may, /{
N
N
s/ Before 6\.5 it may.*//
}
s/ (bpf_sock_destroy(), since 6\.5)/ (bpf_sock_destroy())/
s/ (never without IO_URING_F_NONBLOCK); -EIOCBQUEUED: the result was reported\./ (never without IO_URING_F_NONBLOCK)./
