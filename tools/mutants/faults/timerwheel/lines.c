# SPDX-License-Identifier: GPL-2.0
the last line is lost if nothing ends it; timerwheel/wheels:last_line; s/^\tif (used) {/\tif (0) {/
