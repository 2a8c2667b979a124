# SPDX-License-Identifier: GPL-2.0
CFLAGS += -O2 -g -Wall $(KHDR_INCLUDES) -I$(top_srcdir)/tools/testing/selftests
LDLIBS += -lpthread

TEST_GEN_PROGS := abi deadlines faults handle killed lifetime limits monitor ops resident ring \
	socket

# These also test reads, polls and commands through io_uring.
ifneq ($(shell pkg-config --exists liburing 2>/dev/null && echo y),)
TEST_GEN_PROGS += readers uring
else
$(info timerwheel: no liburing: readers and uring are not built)
endif

LOCAL_HDRS := abuse.h sleeper.h timerwheel-mapped.h tw_model.h tw_test.h

include ../lib.mk

$(OUTPUT)/readers $(OUTPUT)/uring: LDLIBS += -luring
