# SPDX-License-Identifier: GPL-2.0
a date in UTC is taken as local time; timerwheel/wheels:UTC; s/\*end ? timegm(&tm) : mktime(&tm)/mktime(\&tm)/
