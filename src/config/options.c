/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "config/units.h"

#define HELP_COLUMN 44
#define NAME_BYTES_MAX 64
#define OPTIONS_MAX 128 /* of a verb */

static const struct option *find_long(const struct option_verb *verb, struct slice name)
{
	for (size_t i = 0; i < verb->options_count; i++)
		if (slice_is(name, verb->options[i].spec->name))
			return &verb->options[i];
	return NULL;
}

static const struct option *find_letter(const struct option_verb *verb, char letter)
{
	for (size_t i = 0; i < verb->options_count; i++)
		if (verb->options[i].spec->letter && verb->options[i].spec->letter == letter)
			return &verb->options[i];
	return NULL;
}

static size_t edit_distance(const char *a, const char *b)
{
	size_t row[NAME_BYTES_MAX + 1], len = strlen(b);

	if (len > NAME_BYTES_MAX || strlen(a) > NAME_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= len; j++) {
			size_t best = diagonal + (a[i] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[len];
}

const char *options_nearest(const char *text, const char *const *candidates, size_t count)
{
	const char *nearest = NULL;
	size_t best = strlen(text) / 3 + 1;

	for (size_t i = 0; i < count; i++) {
		size_t distance = edit_distance(text, candidates[i]);

		if (distance <= best) {
			best = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}

static int unknown_option(const struct option_verb *verb, const char *given, struct err *err)
{
	const char *names[64], *nearest;
	char bare[NAME_BYTES_MAX + 1];
	size_t count = 0;

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(given + strspn(given, "-"), "="),
		 given + strspn(given, "-"));
	for (size_t i = 0; i < verb->options_count && count < 64; i++)
		names[count++] = verb->options[i].spec->name;
	nearest = options_nearest(bare, names, count);
	return err_set(err, ERR_INVALID, "unknown option \"%s\"%s%s%s; see firn %s --help", given,
		       nearest ? " (did you mean --" : "", nearest ? nearest : "",
		       nearest ? "?)" : "", verb->name);
}

static int store_count(const struct option_spec *option, struct slice text, unsigned *value,
		       struct err *err)
{
	uint64_t number;

	if (!slice_parse_u64(text, &number) || number < option->min || number > option->max)
		return err_set(err, ERR_INVALID,
			       "expected a whole number from %u to %u, not \"%.*s\"", option->min,
			       option->max, SLICE_FMT(text));
	*value = (unsigned)number;
	return 0;
}

static int store_duration(const struct option_spec *option, struct slice text, int64_t *value,
			  struct err *err)
{
	int64_t duration_ns;
	int rc = units_parse_duration(text, &duration_ns, err);

	if (rc)
		return rc;
	if (option->max && (duration_ns < option->min * CLOCK_NS_PER_S ||
			    duration_ns > option->max * CLOCK_NS_PER_S))
		return err_set(err, ERR_INVALID,
			       "expected a duration from %us to %us, not \"%.*s\"", option->min,
			       option->max, SLICE_FMT(text));
	*value = duration_ns;
	return 0;
}

static int store_value(const struct option *option, const char *text, void *values, struct err *err)
{
	void *place = (char *)values + option->offset;
	struct option_list *list = place;
	struct option_size *size = place;

	switch (option->spec->kind) {
	case OPTION_FLAG:
		*(bool *)place = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)place = text;
		return 0;
	case OPTION_LIST:
		if (list->count == OPTION_LIST_MAX)
			return err_set(err, ERR_LIMIT, "given more than %d times", OPTION_LIST_MAX);
		list->items[list->count++] = text;
		return 0;
	case OPTION_COUNT:
		return store_count(option->spec, slice_of(text), place, err);
	case OPTION_DURATION:
		return store_duration(option->spec, slice_of(text), place, err);
	case OPTION_SIZE:
		return units_parse_size(slice_of(text), &size->bytes, &size->percent, err);
	}
	return 0;
}

/*
 * Handles argv[at], which starts with '-'; *ret_used is 1 or 2. `given_before` is by option: of
 * two values one would be dropped in silence.
 */
static int take_option(const struct option_verb *verb, int argc, char **argv, int at, void *values,
		       bool *given_before, int *ret_used, struct err *err)
{
	const char *given = argv[at], *value = NULL;
	const struct option *option;
	bool is_long = given[1] == '-';

	if (is_long) {
		struct slice rest, name = slice_cut(slice_of(given + 2), '=', &rest);

		option = find_long(verb, name);
		value = strchr(given, '=');
		value = value ? value + 1 : NULL;
	} else {
		option = find_letter(verb, given[1]);
		value = given[2] ? given + 2 : NULL;
	}
	if (!option || (!is_long && option->spec->kind == OPTION_FLAG && value))
		return unknown_option(verb, given, err);
	*ret_used = 1;
	if (option->spec->kind == OPTION_FLAG) {
		if (value)
			return err_set(err, ERR_INVALID, "--%s takes no value", option->spec->name);
	} else if (!value) {
		if (at + 1 >= argc)
			return err_set(err, ERR_INVALID, "--%s needs a value (%s)",
				       option->spec->name, option->spec->metavar);
		value = argv[at + 1];
		*ret_used = 2;
	}
	if (given_before[option - verb->options] && option->spec->kind != OPTION_LIST &&
	    option->spec->kind != OPTION_FLAG)
		return err_set(err, ERR_INVALID, "--%s is given twice", option->spec->name);
	given_before[option - verb->options] = true;
	if (store_value(option, value, values, err))
		return err_wrap(err, "--%s", option->spec->name);
	return 0;
}

static int store_presets(const struct option_verb *verb, void *values, struct err *err)
{
	for (size_t i = 0; i < verb->options_count; i++) {
		const struct option *option = &verb->options[i];

		if (option->spec->preset && store_value(option, option->spec->preset, values, err))
			return err_wrap(err, "default of --%s", option->spec->name);
	}
	return 0;
}

int options_parse(const struct option_verb *verb, int argc, char **argv, void *values,
		  struct option_operands *ret, bool *ret_help, struct err *err)
{
	struct option_operands operands = { .items = argv };
	bool given[OPTIONS_MAX] = { false };
	int at = 0;

	assert(verb->options_count <= OPTIONS_MAX);

	*ret_help = false;
	if (store_presets(verb, values, err))
		return -ERR_INVALID;
	while (at < argc) {
		int used = 1, rc;

		if (!strcmp(argv[at], "--")) {
			operands.after_dashes = operands.count == 0;
			at++;
			break;
		}
		if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h")) {
			*ret_help = true;
			return 0;
		}
		if (argv[at][0] != '-' || !argv[at][1]) {
			if (verb->stop_at_operand)
				break;
			operands.items[operands.count++] = argv[at++];
			continue;
		}
		rc = take_option(verb, argc, argv, at, values, given, &used, err);
		if (rc)
			return rc;
		at += used;
	}
	while (at < argc)
		operands.items[operands.count++] = argv[at++];
	if (operands.count && !verb->operands[0])
		return err_set(err, ERR_INVALID, "unexpected operand \"%s\"", operands.items[0]);
	*ret = operands;
	return 0;
}

void options_add_default(const struct option_spec *spec, struct strbuf *out)
{
	if (spec->unset || spec->preset)
		strbuf_addf(out, " (default: %s)", spec->unset ? spec->unset : spec->preset);
}

static void add_option_help(const struct option_spec *spec, struct strbuf *out)
{
	char left[128], letter[8] = "    ";

	if (spec->letter)
		snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, spec->name, spec->metavar ? " " : "",
		 spec->metavar ? spec->metavar : "");
	if (strlen(left) >= HELP_COLUMN)
		strbuf_addf(out, "%s\n%*s", left, HELP_COLUMN, "");
	else
		strbuf_addf(out, "%-*s", HELP_COLUMN, left);
	strbuf_add_text(out, spec->help);
	options_add_default(spec, out);
	strbuf_add_byte(out, '\n');
}

void options_help(const struct option_verb *verb, struct strbuf *out)
{
	strbuf_addf(out, "firn %s - %s\n\nUsage: firn %s [OPTIONS]%s%s\n", verb->name,
		    verb->summary, verb->name, verb->operands[0] ? " " : "", verb->operands);
	if (verb->details[0])
		strbuf_addf(out, "\n%s\n", verb->details);
	if (verb->options_count)
		strbuf_add_text(out, "\nOptions:\n");
	for (size_t i = 0; i < verb->options_count; i++)
		add_option_help(verb->options[i].spec, out);
}
