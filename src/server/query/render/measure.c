/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/render/measure.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#define ALIASES_MAX 3
#define UNITS_MAX 9
#define UNIT_BYTES_MAX 32

struct unit {
	const char *name;
	const char *aliases[ALIASES_MAX]; /* lower case, singular */
	double factor;
};

struct dimension {
	struct unit units[UNITS_MAX];
	const char *default_name; /* of values too small for every unit */
	double default_factor;
};

static const struct dimension dimensions[] = {
	{ { { "B", { "b", "byte" }, 1 },
	    { "kB", { "kb", "kbyte", "kilobyte" }, 1024.0 },
	    { "MB", { "mb", "mbyte", "megabyte" }, 1048576.0 },
	    { "GB", { "gb", "gbyte", "gigabyte" }, 1073741824.0 },
	    { "TB", { "tb", "tbyte", "terabyte" }, 1099511627776.0 },
	    { "PB", { "pb", "pbyte", "petabyte" }, 1125899906842624.0 } },
	  "B",
	  1 },
	{ { { "ns", { "ns", "nanosecond" }, 1 },
	    { "us", { "\xce\xbcs", "us", "microsecond" }, 1e3 },
	    { "ms", { "ms", "millisecond" }, 1e6 },
	    { "s", { "s", "sec", "second" }, 1e9 },
	    { "hrs", { "hour", "hr" }, 3600e9 } },
	  "s",
	  1e9 },
	{ { { "n*GCU", { "nanogcu" }, 1e-9 },
	    { "u*GCU", { "microgcu" }, 1e-6 },
	    { "m*GCU", { "milligcu" }, 1e-3 },
	    { "GCU", { "gcu" }, 1 },
	    { "k*GCU", { "kilogcu" }, 1e3 },
	    { "M*GCU", { "megagcu" }, 1e6 },
	    { "G*GCU", { "gigagcu" }, 1e9 },
	    { "T*GCU", { "teragcu" }, 1e12 },
	    { "P*GCU", { "petagcu" }, 1e15 } },
	  "GCU",
	  1 },
};

static const struct unit *find_in(const struct dimension *dimension, struct slice name)
{
	for (size_t i = 0; i < UNITS_MAX && dimension->units[i].name; i++)
		for (size_t a = 0; a < ALIASES_MAX && dimension->units[i].aliases[a]; a++)
			if (slice_is(name, dimension->units[i].aliases[a]))
				return &dimension->units[i];
	return NULL;
}

/* Case and a plural s do not matter. */
static const struct unit *find_unit(struct slice name, const struct dimension **ret_dimension)
{
	char lower[UNIT_BYTES_MAX];

	if (name.len > sizeof(lower))
		return NULL;
	for (size_t i = 0; i < name.len; i++)
		lower[i] = (char)tolower((unsigned char)name.data[i]);
	name.data = lower;
	if (name.len > 2 && lower[name.len - 1] == 's')
		name.len--;
	for (size_t i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); i++) {
		const struct unit *unit = find_in(&dimensions[i], name);

		if (unit) {
			*ret_dimension = &dimensions[i];
			return unit;
		}
	}
	return NULL;
}

struct scaled {
	double value;
	struct slice unit; /* "" = not worth saying */
};

/* The largest unit that the magnitude fills. */
static struct scaled scale_auto(const struct dimension *dimension, double value)
{
	const struct unit *best = NULL;

	for (size_t i = 0; i < UNITS_MAX && dimension->units[i].name; i++)
		if (fabs(value) / dimension->units[i].factor >= 1.0)
			best = &dimension->units[i];
	if (best)
		return (struct scaled){ value / best->factor, slice_of(best->name) };
	return (struct scaled){ value / dimension->default_factor,
				slice_of(dimension->default_name) };
}

static bool is_auto(struct slice unit)
{
	return slice_is(unit, "minimum") || slice_is(unit, "auto");
}

static struct scaled scale(int64_t value, struct slice from, struct slice to)
{
	const struct dimension *dimension = NULL, *other = NULL;
	const struct unit *unit = find_unit(from, &dimension);
	const struct unit *into;

	if (!unit) {
		bool dull = is_auto(to) || slice_is(to, "count") || slice_is(to, "sample") ||
			    slice_is(to, "unit");

		return (struct scaled){ (double)value, dull ? SLICE_LITERAL("") : to };
	}
	if (is_auto(to))
		return scale_auto(dimension, (double)value * unit->factor);
	into = find_unit(to, &other);
	if (!into || other != dimension)
		return (struct scaled){ (double)value * unit->factor / dimension->default_factor,
					slice_of(dimension->default_name) };
	return (struct scaled){ (double)value * unit->factor / into->factor, slice_of(into->name) };
}

struct slice measure_unit_for(int64_t smallest, int64_t largest, struct slice unit)
{
	struct slice min_unit, max_unit;

	if (!smallest)
		smallest = largest;
	min_unit = scale(smallest, unit, SLICE_LITERAL("minimum")).unit;
	max_unit = scale(largest, unit, SLICE_LITERAL("minimum")).unit;
	/* Far apart: larger units, so that the smallest may go down to 0.01. */
	if (!slice_equal(min_unit, max_unit) && smallest < largest / 100)
		min_unit = scale(100 * smallest, unit, SLICE_LITERAL("minimum")).unit;
	return min_unit.len ? min_unit : unit;
}

void measure_value(struct strbuf *out, int64_t value, struct slice unit, struct slice shown_unit)
{
	struct scaled scaled = scale(value, unit, shown_unit);
	char digits[64];
	int len = snprintf(digits, sizeof(digits), "%.2f", scaled.value);

	if (len > 3 && !strcmp(digits + len - 3, ".00"))
		digits[len - 3] = '\0';
	if (!strcmp(digits, "0") || !strcmp(digits, "-0"))
		strbuf_add_text(out, "0");
	else
		strbuf_addf(out, "%s%.*s", digits, SLICE_FMT(scaled.unit));
}

void measure_value_auto(struct strbuf *out, int64_t value, struct slice unit)
{
	measure_value(out, value, unit, SLICE_LITERAL("auto"));
}

void measure_percentage(struct strbuf *out, int64_t value, int64_t total)
{
	double ratio = total ? fabs((double)value / (double)total) * 100 : 0;

	if (ratio >= 99.95 && ratio <= 100.05)
		strbuf_add_text(out, "  100%");
	else if (ratio >= 1.0)
		strbuf_addf(out, "%5.2f%%", ratio);
	else
		strbuf_addf(out, "%5.2g%%", ratio);
}
