/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TW_ONLY in the environment: patterns of the tests to run, separated by commas: FIXTURE.TEST or
 * FIXTURE.VARIANT.TEST as the harness prints them, "global." before those without a fixture. The
 * harness of older kernels has no option for this.
 */
#ifndef ONLY_H
#define ONLY_H

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool tw_wanted(const char *patterns, const struct __fixture_metadata *f,
			     const struct __fixture_variant_metadata *v,
			     const struct __test_metadata *t)
{
	char name[256], list[4096], *next = list, *pattern;

	snprintf(name, sizeof(name), "%s%s%s.%s", f->name, v ? "." : "", v ? v->name : "", t->name);
	snprintf(list, sizeof(list), "%s", patterns);
	while ((pattern = strsep(&next, ","))) {
		if (!fnmatch(pattern, name, 0))
			return true;
	}
	return false;
}

/* Is any test of this variant (NULL: of a fixture without variants), or this test, selected? */
static inline bool tw_wants_variant(const char *patterns, const struct __fixture_metadata *f,
				    const struct __fixture_variant_metadata *v)
{
	const struct __test_metadata *t;

	for (t = f->tests; t; t = t->next) {
		if (tw_wanted(patterns, f, v, t))
			return true;
	}
	return false;
}

static inline bool tw_wants_test(const char *patterns, const struct __fixture_metadata *f,
				 const struct __test_metadata *t)
{
	const struct __fixture_variant_metadata *v = f->variant;

	do {
		if (tw_wanted(patterns, f, v, t))
			return true;
		v = v ? v->next : NULL;
	} while (v);
	return false;
}

/* Remove tests that are not selected from the harness's lists. */
static inline void tw_select(const char *patterns)
{
	struct __fixture_variant_metadata *v, **vlink;
	struct __test_metadata *t, **tlink;
	struct __fixture_metadata *f;

	for (f = __fixture_list; f; f = f->next) {
		struct __fixture_variant_metadata *variants = NULL;

		for (v = f->variant, vlink = &variants; v; v = v->next) {
			if (tw_wants_variant(patterns, f, v)) {
				*vlink = v;
				vlink = &v->next;
			}
		}
		for (tlink = &f->tests; (t = *tlink);) {
			if (tw_wants_test(patterns, f, t))
				tlink = &t->next;
			else
				*tlink = t->next;
		}
		*vlink = NULL;
		f->variant = variants;
	}
}

#undef TEST_HARNESS_MAIN
#define TEST_HARNESS_MAIN \
	static void __attribute__((constructor)) __constructor_order_last(void) \
	{ \
		if (!__constructor_order) \
			__constructor_order = _CONSTRUCTOR_ORDER_BACKWARD; \
	} \
	int main(int argc, char **argv) \
	{ \
		if (getenv("TW_ONLY")) \
			tw_select(getenv("TW_ONLY")); \
		exit(test_harness_run(argc, argv)); \
	}

#endif /* ONLY_H */
