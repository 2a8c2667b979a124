// SPDX-License-Identifier: GPL-2.0
/* Lateness, counted in fine buckets and drawn in coarse ones. */
#include <stdio.h>
#include <string.h>

#include "bulk.h"
#include "util.h"

#define FINE	8
#define WIDTH	50

/* Bucket of ns: the power of two, then its next three bits. */
static unsigned int bucket_of(__u64 ns)
{
	unsigned int log;

	if (ns < FINE)
		return ns;
	log = 63 - __builtin_clzll(ns);
	return (log - 2) * FINE + ((ns >> (log - 3)) & (FINE - 1));
}

/* The largest value that falls into a bucket. */
static __u64 bucket_end(unsigned int bucket)
{
	unsigned int log = bucket / FINE + 2;

	if (bucket < FINE)
		return bucket;
	return ((__u64)(FINE + bucket % FINE + 1) << (log - 3)) - 1;
}

void histogram_add(struct histogram *h, __u64 ns)
{
	h->count++;
	h->buckets[bucket_of(ns)]++;
	if (ns > h->max)
		h->max = ns;
}

__u64 histogram_quantile(const struct histogram *h, double q)
{
	__u64 wanted = (__u64)(h->count * q), seen = 0;
	unsigned int i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen > wanted)
			return bucket_end(i) < h->max ? bucket_end(i) : h->max;
	}
	return h->max;
}

/* Draw one line for each of these bounds, which are easier to read than powers of two. */
static const struct bound {
	const char *name;
	__u64 ns;
} bounds[] = {
	{ "10 us", 10000 }, { "30 us", 30000 }, { "100 us", 100000 }, { "300 us", 300000 },
	{ "1 ms", 1000000 }, { "2 ms", 2000000 }, { "3 ms", 3000000 }, { "5 ms", 5000000 },
	{ "10 ms", 10000000 }, { "20 ms", 20000000 }, { "50 ms", 50000000 },
	{ "100 ms", 100000000 }, { "200 ms", 200000000 }, { "500 ms", 500000000 },
	{ "1 s", 1000000000 }, { "2 s", 2000000000 }, { "5 s", 5000000000 },
};

#define LINES	(ARRAY_SIZE(bounds) + 1)

static void draw_bar(__u64 n, __u64 most)
{
	/* Eighths of a character. */
	static const char * const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	__u64 eighths = most ? n * WIDTH * 8 / most : 0;
	__u64 i;

	if (n && !eighths)
		eighths = 1;
	for (i = 0; i < eighths / 8; i++)
		fputs("█", stdout);
	fputs(parts[eighths % 8], stdout);
}

void histogram_draw(const struct histogram *h, const char *title)
{
	__u64 lines[LINES] = { 0 };
	__u64 most = 0;
	unsigned int i, line, first = LINES, last = 0;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		for (line = 0; line < ARRAY_SIZE(bounds) && bucket_end(i) >= bounds[line].ns;)
			line++;
		lines[line] += h->buckets[i];
	}
	for (line = 0; line < LINES; line++) {
		if (!lines[line])
			continue;
		if (lines[line] > most)
			most = lines[line];
		if (first == LINES)
			first = line;
		last = line;
	}
	printf("\n%s\n", title);
	if (!h->count) {
		printf("  not measured: the program never had time to wait\n\n");
		return;
	}
	for (line = first; line <= last && line < LINES; line++) {
		char label[32] = "more";

		if (line < ARRAY_SIZE(bounds))
			snprintf(label, sizeof(label), "< %s", bounds[line].name);
		printf("  %9s %11s  ", label, commas(lines[line]));
		draw_bar(lines[line], most);
		putchar('\n');
	}
	printf("  median %s, 99%% within %s, 99.9%% within %s, largest %s\n\n",
	       duration(histogram_quantile(h, 0.5)), duration(histogram_quantile(h, 0.99)),
	       duration(histogram_quantile(h, 0.999)), duration(h->max));
}
