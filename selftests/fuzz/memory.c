// SPDX-License-Identifier: GPL-2.0
/* Memory for arguments: good, missing, read-only, or changing under the call. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

/* Number of bytes before and behind an argument that no call may write. */
#define MARGIN	64

static char *map(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	char *p = mmap(at, size, prot, flags, fd, offset);

	if (p == MAP_FAILED) {
		perror("abi_fuzz: mmap");
		exit(1);
	}
	return p;
}

/* A view of a file, followed by a page that cannot be touched. */
static char *map_view(int fd, size_t size)
{
	size_t page = getpagesize();
	char *p = map(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return map(p, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

void arena_init(struct arena *arena, size_t size, bool flip)
{
	size_t page = getpagesize();
	int fd = memfd_create("abi_fuzz", MFD_CLOEXEC);

	arena->size = (size + 2 * MARGIN + READ_ONLY + page - 1) / page * page;
	if (fd < 0 || ftruncate(fd, arena->size)) {
		perror("abi_fuzz: memfd");
		exit(1);
	}
	arena->plain = map_view(fd, arena->size);
	arena->edge = map_view(fd, arena->size);
	if (mprotect(arena->edge + arena->size - READ_ONLY, READ_ONLY, PROT_READ))
		exit(1);
	arena->alias = map(NULL, arena->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (flip)
		arena->flip = map(NULL, FLIP_PAGES * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void arena_free(struct arena *arena)
{
	size_t page = getpagesize();

	munmap(arena->plain, arena->size + page);
	munmap(arena->edge, arena->size + page);
	munmap(arena->alias, arena->size);
	if (arena->flip)
		munmap(arena->flip, FLIP_PAGES * page);
}

/* A spot at @offset from the start of a view. */
static void spot_at(const struct arena *arena, char *view, size_t offset, struct spot *spot)
{
	spot->p = view + offset;
	spot->alias = arena->alias + offset;
	spot->len = arena->size - offset;
	spot->rd = spot->len;
	spot->rw = spot->len;
	if (view == arena->edge)
		spot->rw -= READ_ONLY;
}

static char *address(unsigned int place, unsigned int cut, size_t len)
{
	static const uintptr_t kernel[] = {
		(uintptr_t)0xffff888000000000ULL, (uintptr_t)0xffffffff81000000ULL,
		(uintptr_t)0x800000000000ULL, (uintptr_t)0x8000000000000000ULL,
	};

	switch (place) {
	case PLACE_KERNEL:
		return (char *)(kernel[cut % ARRAY_LEN(kernel)] + cut / 4 * 8);
	case PLACE_WRAP:
		return (char *)(-(uintptr_t)(cut % 2 ? len / 2 + 1 : cut));
	default:
		return (char *)(uintptr_t)(cut % 64);
	}
}

/**
 * spot_choose - find a place
 * @arena: where
 * @place: enum place
 * @cut: for places that are valid in part
 * @cold: make its pages fault again (they keep their contents)
 * @len: bytes
 * @spot: is filled in
 */
void spot_choose(const struct arena *arena, unsigned int place, unsigned int cut, bool cold,
		 size_t len, struct spot *spot)
{
	size_t page = getpagesize();

	memset(spot, 0, sizeof(*spot));
	if (place == PLACE_FLIP && !arena->flip)
		place = PLACE_ODD;
	switch (place) {
	case PLACE_PLAIN:
	case PLACE_ODD:
		spot_at(arena, arena->plain, MARGIN + (place == PLACE_ODD ? cut % 64 : 0), spot);
		break;
	case PLACE_EDGE:
		spot_at(arena, arena->plain, arena->size - len, spot);
		break;
	case PLACE_CUT:
		if (cut > len)
			cut = len;
		spot_at(arena, arena->plain, arena->size - cut, spot);
		break;
	case PLACE_READ_ONLY:
		if (cut > len)
			cut = len;
		spot_at(arena, arena->edge, arena->size - READ_ONLY - cut, spot);
		break;
	case PLACE_FLIP:
		/* Often across two pages. */
		spot->p = arena->flip + cut % ((FLIP_PAGES - 1) * page);
		spot->flips = true;
		break;
	default:
		spot->p = address(place, cut, len);
	}
	if (cold && spot->alias) {
		size_t in_page = (uintptr_t)spot->p % page;

		madvise(spot->p - in_page, in_page + (len < spot->len ? len : spot->len),
			MADV_DONTNEED);
	}
}

static size_t margin_before(const struct spot *spot)
{
	/* The start of an arena is as far away as a margin is long. */
	return spot->alias ? MARGIN : 0;
}

static size_t margin_after(const struct spot *spot, size_t len)
{
	return spot->len < len + MARGIN ? spot->len - len : MARGIN;
}

/* Put @len bytes there, as far as they fit, with poison before and behind them. */
void spot_fill(const struct spot *spot, const void *from, size_t len)
{
	struct iovec local = { .iov_base = (void *)from, .iov_len = len };
	struct iovec remote = { .iov_base = spot->p, .iov_len = len };

	/* A plain store might fault. */
	if (spot->flips)
		process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
	if (!spot->alias)
		return;
	if (len > spot->len)
		len = spot->len;
	memset(spot->alias - margin_before(spot), POISON, margin_before(spot));
	memcpy(spot->alias, from, len);
	memset(spot->alias + len, POISON, margin_after(spot, len));
}

static bool poisoned(const char *p, size_t len)
{
	while (len--)
		if ((__u8)*p++ != POISON)
			return false;
	return true;
}

const char *spot_differs(const struct spot *spot, const void *want, size_t len)
{
	if (!spot->alias)
		return NULL;
	if (len > spot->len)
		len = spot->len;
	if (memcmp(spot->alias, want, len))
		return "memory is not what it should be";
	if (!poisoned(spot->alias - margin_before(spot), margin_before(spot)))
		return "memory before it was written";
	if (!poisoned(spot->alias + len, margin_after(spot, len)))
		return "memory behind it was written";
	return NULL;
}

void arena_flip(const struct arena *arena, __u64 *random)
{
	size_t page = getpagesize();
	unsigned int first = rnd_to(random, FLIP_PAGES);
	unsigned int n = 1 + rnd_to(random, FLIP_PAGES - first);
	char *p = arena->flip + first * page;
	const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	int prot = prots[rnd_to(random, ARRAY_LEN(prots))];

	/* No other thread maps anything meanwhile: see threads.c. */
	switch (rnd_to(random, 4)) {
	case 0:
		munmap(p, n * page);
		break;
	case 1:
		madvise(p, n * page, MADV_DONTNEED);
		break;
	case 2:
		/* Fails where it is unmapped. */
		mprotect(p, n * page, prot);
		break;
	default:
		map(p, n * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
}

/* Leave no hole in the flip memory in which later mappings would be placed. */
void arena_unflip(const struct arena *arena)
{
	map(arena->flip, FLIP_PAGES * getpagesize(), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
