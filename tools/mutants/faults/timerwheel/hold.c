# SPDX-License-Identifier: GPL-2.0
SIGTERM is not held back; timerwheel/wheels:took_nothing_away; s/SIGTERM, //
an ignored signal stops the program; timerwheel/wheels:ignored; s/ && action.sa_handler != SIG_IGN//
a file that is too large ends the program; timerwheel/wheels; s/^\tsignal(SIGXFSZ, SIG_IGN);//
