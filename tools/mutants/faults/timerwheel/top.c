# SPDX-License-Identifier: GPL-2.0
columns of --batch in another order; timerwheel/wheels:the_columns; /{ "CLOCK", "clock", SHOW_TEXT, 9 },/d;s/^.*{ "PENDING", "pending".*/\t{ "CLOCK", "clock", SHOW_TEXT, 9 },\n&/
