// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"

static void (*context_print)(const void *context);
static const void *context_arg;

void fail_context(void (*print)(const void *context), const void *context)
{
	context_print = print;
	context_arg = context;
}

void fail(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	if (context_print)
		context_print(context_arg);
	fflush(stdout);
	abort();
}
