# SPDX-License-Identifier: GPL-2.0
an interval may be 0; timerwheel/host:--watch; s/^\t\tif (number < def->min)$/\t\tif (number < def->min \&\& number)/
a negative number is an unknown option; timerwheel/host:a_negative_key; s/c == '?' \&\& isdigit(optopt)/0/
