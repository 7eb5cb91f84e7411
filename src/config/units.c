/* SPDX-License-Identifier: Apache-2.0 */
#include "config/units.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit durations[] = {
	{ "w", 7 * 86400 * CLOCK_NS_PER_S },
	{ "d", 86400 * CLOCK_NS_PER_S },
	{ "h", 3600 * CLOCK_NS_PER_S },
	{ "m", 60 * CLOCK_NS_PER_S },
	{ "s", CLOCK_NS_PER_S },
	{ "ms", CLOCK_NS_PER_MS },
	{ "us", CLOCK_NS_PER_US },
	{ "ns", 1 },
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1000 },
	{ "kb", 1000 },
	{ "mb", 1000000 },
	{ "gb", 1000000000 },
	{ "tb", 1000000000000 },
	{ "kib", 1ll << 10 },
	{ "mib", 1ll << 20 },
	{ "gib", 1ll << 30 },
	{ "tib", 1ll << 40 },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool is_name(struct slice text, const char *name)
{
	if (text.len != strlen(name))
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (tolower((unsigned char)text.data[i]) != name[i])
			return false;
	return true;
}

/* Splits "12.5ms7s" into 12.5, "ms" and the rest. */
static bool take_number(struct slice *rest, double *ret_number, struct slice *ret_unit)
{
	double value = 0, place = 1;
	bool digits = false, fraction = false;
	size_t at = 0, unit;

	for (; at < rest->len; at++) {
		char c = rest->data[at];

		if (c == '.' && !fraction) {
			fraction = true;
		} else if (isdigit((unsigned char)c)) {
			digits = true;
			value = value * 10 + (c - '0');
			place *= fraction ? 10 : 1;
		} else {
			break;
		}
	}
	unit = at;
	while (at < rest->len && (isalpha((unsigned char)rest->data[at]) || rest->data[at] == '%'))
		at++;
	*ret_number = value / place;
	*ret_unit = slice_from(rest->data + unit, at - unit);
	*rest = slice_tail(*rest, at);
	return digits;
}

int units_parse_duration(struct slice text, int64_t *ret_ns, struct err *err)
{
	struct slice rest = text, unit;
	size_t next = 0;
	double total = 0, number;

	if (slice_is(text, "0")) {
		*ret_ns = 0;
		return 0;
	}
	do {
		if (!take_number(&rest, &number, &unit))
			break;
		while (next < COUNT_OF(durations) && !slice_is(unit, durations[next].name))
			next++;
		if (next == COUNT_OF(durations))
			break;
		total += number * (double)durations[next++].factor;
		if (!rest.len && total < 9.2e18) {
			*ret_ns = (int64_t)total;
			return 0;
		}
	} while (rest.len);
	return err_set(err, ERR_INVALID,
		       "duration \"%.*s\": expected something like 10s, 5m, 1h30m or 7d",
		       SLICE_FMT(text));
}

int units_parse_size(struct slice text, uint64_t *ret_bytes, double *ret_percent, struct err *err)
{
	struct slice rest = text, unit;
	double number;

	if (take_number(&rest, &number, &unit) && !rest.len) {
		if (slice_is(unit, "%") && ret_percent && number <= 100) {
			*ret_percent = number;
			*ret_bytes = 0;
			return 0;
		}
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			if (!is_name(unit, sizes[i].name) ||
			    number * (double)sizes[i].factor > 9e18)
				continue;
			if (ret_percent)
				*ret_percent = 0;
			*ret_bytes = (uint64_t)(number * (double)sizes[i].factor);
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "size \"%.*s\": expected something like 512MB or 10GiB%s",
		       SLICE_FMT(text), ret_percent ? " or 80%" : "");
}

/* number * unit_ns, within the bounds of times. */
static int64_t bounded_time(int64_t number, int64_t unit_ns)
{
	if (number > UNITS_TIME_MAX_NS / unit_ns)
		return UNITS_TIME_MAX_NS;
	if (number < UNITS_TIME_MIN_NS / unit_ns)
		return UNITS_TIME_MIN_NS;
	return number * unit_ns;
}

static bool parse_rfc3339(struct slice text, int64_t *ret_ns)
{
	char copy[64], *rest;
	struct tm tm = { 0 };
	double fraction = 0;
	int64_t zone_s = 0;
	int hours, minutes;
	char sign;

	if (text.len >= sizeof(copy) || text.len < 19)
		return false;
	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
		rest = strptime(copy, "%Y-%m-%d %H:%M:%S", &tm);
	if (!rest)
		return false;
	if (*rest == '.') {
		double place = 0.1;

		for (rest++; isdigit((unsigned char)*rest); rest++, place /= 10)
			fraction += (*rest - '0') * place;
	}
	if (sscanf(rest, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
		zone_s = (sign == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
	else if (strcmp(rest, "Z") && strcmp(rest, "z"))
		return false;
	*ret_ns = bounded_time((int64_t)timegm(&tm) - zone_s, CLOCK_NS_PER_S) +
		  (int64_t)(fraction * (double)CLOCK_NS_PER_S);
	*ret_ns = bounded_time(*ret_ns, 1);
	return true;
}

int units_parse_time(struct slice text, int64_t now_ns, int64_t *ret_ns, struct err *err)
{
	int64_t ago_ns;
	uint64_t ms;

	if (slice_is(text, "now")) {
		*ret_ns = now_ns;
		return 0;
	}
	if (slice_starts_with(text, SLICE_LITERAL("now-"))) {
		int rc = units_parse_duration(slice_tail(text, 4), &ago_ns, err);

		if (!rc)
			*ret_ns = bounded_time(now_ns - ago_ns, 1);
		return rc;
	}
	if (slice_parse_u64(text, &ms) && ms <= INT64_MAX) {
		*ret_ns = bounded_time((int64_t)ms, CLOCK_NS_PER_MS);
		return 0;
	}
	if (parse_rfc3339(text, ret_ns))
		return 0;
	if (!units_parse_duration(text, &ago_ns, NULL)) {
		*ret_ns = bounded_time(now_ns - ago_ns, 1);
		return 0;
	}
	return err_set(err, ERR_INVALID,
		       "time \"%.*s\": expected now, now-1h, 1h (ago), 2026-01-02T15:04:05Z or "
		       "milliseconds since the epoch",
		       SLICE_FMT(text));
}
