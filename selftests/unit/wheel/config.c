// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>

#include "config.h"
#include "wheel.h"

/* slots, timers, tick, operations, walk, manual, generation bits */
const struct config config_table[] = {
	{ 8, 8, 1, 400000, 1, false, 0 },
	{ 8, 40, 1000, 1000000, 2, false, 10 },
	{ 8, 300, 1000000, 1000000, 16, false, 20 },
	{ 8, 40, 1, 600000, 2, true, 3 },
	{ 16, 24, 997, 600000, 2, false, 0 },
	{ 16, 100, 1000, 600000, 8, true, 10 },
	{ 32, 60, 1, 600000, 8, false, 12 },
	{ 64, 100, 1048577, 800000, 8, false, 20 },
	{ 64, 1000, 1, 600000, 64, true, 10 },
	{ 128, 200, 999999937, 400000, 32, false, 0 },
	{ 256, 100, 1000000, 1200000, 16, false, 20 },
	{ 256, 2000, 1000000, 600000, 128, false, 16 },
	{ 256, 60, 1, 600000, 32, false, 3 },
	{ 1024, 300, 1000, 500000, 128, false, 10 },
	{ 2048, 300, 3600000000000, 300000, 128, false, 20 },
	{ 4096, 100, 1000000, 500000, 256, false, 0 },
	{ 4096, 4000, 12345, 300000, 1024, false, 12 },
	{ 4096, 300, 1, 300000, 512, true, 10 },
};

const unsigned int config_count = ARRAY_SIZE(config_table);

/* Change the settings named in @text, "slots=8,tick=1,...". Returns false if it is invalid. */
bool config_parse(struct config *c, const char *text)
{
	char name[16];
	int used;

	while (*text) {
		unsigned long long value;

		if (sscanf(text, "%15[a-z]=%llu%n", name, &value, &used) != 2)
			return false;
		text += used;
		if (*text == ',')
			text++;
		if (!strcmp(name, "slots"))
			c->slots = value;
		else if (!strcmp(name, "timers"))
			c->timers = value;
		else if (!strcmp(name, "tick"))
			c->tick = value;
		else if (!strcmp(name, "ops"))
			c->ops = value;
		else if (!strcmp(name, "walk"))
			c->walk = value;
		else if (!strcmp(name, "manual"))
			c->manual = value;
		else if (!strcmp(name, "bits"))
			c->bits = value;
		else
			return false;
	}
	return c->slots >= TW_SLOTS_MIN && c->slots <= TW_SLOTS_MAX &&
	       !(c->slots & (c->slots - 1)) && c->timers && c->tick && c->walk &&
	       c->bits < 32 && (!c->bits || c->bits > 2);
}

/* Print the text from which config_parse() makes @c. Returns what snprintf() does. */
int config_print(const struct config *c, char *text, size_t size)
{
	return snprintf(text, size,
			"slots=%u,timers=%u,tick=%llu,ops=%llu,walk=%u,manual=%u,bits=%u",
			c->slots, c->timers, c->tick, c->ops, c->walk, c->manual, c->bits);
}
