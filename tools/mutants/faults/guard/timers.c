# SPDX-License-Identifier: GPL-2.0
keys: all kinds have the same; guard/run:two_kinds; s/return cookie << KIND_BITS | kind;/return cookie << KIND_BITS;/
keys: the cookie is something else; guard/run:restart; s/return (int64_t)key >> KIND_BITS;/return key >> 3;/
settings: they do not matter; guard/run:restart_other_timeouts; s/same = has_mark(MARK_SETTINGS, settings());/same = true;/
settings: always others; guard/run:restart; s/same = has_mark(MARK_SETTINGS, settings());/same = false;/
dry run: it ends connections; guard/run:report; s/(options.dry_run ? 0 : TIMERWHEEL_SOCKET_ABORT)/TIMERWHEEL_SOCKET_ABORT/
feature: not looked at; guard/run:old_module; s/!(info.features \& TIMERWHEEL_FEATURE_SOCKET)/0/
kept timers: no word if they cannot be listed; guard/run:restart_without_timers; s/^\tif (n < 0)$/\tif (0)/
take up: marked though former timers remain; guard/run:restart_without_timers; s/return same || n >= 0;/return true;/
choice: always the same; guard/run:restart_other_process_of_port; s/same_choice = same \&\& .*;/same_choice = same;/
choice: the same name for all control groups; guard/run:restart_other_cgroup; s/digest + (unsigned char)texts\[i\]\[k\] + 1/digest/
choice: never the same; guard/run:restart_orphans; s/same_choice = same \&\& .*;/same_choice = false;/
guarded: connections without timers, too; guard/run:mptcp; s/!!(armed \& ALL_KINDS)/!!armed/;s/!!(conn->armed \& ALL_KINDS)/!!conn->armed/
