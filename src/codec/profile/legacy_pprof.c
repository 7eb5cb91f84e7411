/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/legacy_pprof.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/process/procmaps.h"

#define HEADER_WORDS 5
#define MAPS_MAX 65536
#define DEPTH_MAX 1024
#define NS_PER_US 1000
#define NS_PER_S 1e9
#define VALUE_MAX 9e18

/* Words of a CPU profile. */
struct words {
	struct slice bytes;
	size_t size; /* 4 or 8 */
	bool big;
};

#define WORDS_NATIVE 0
#define WORDS_JAVA 1
#define COUNT_NAME_BYTES 64
#define COUNT_TOTAL "profile: total "

struct map {
	uint64_t start, end, offset;
	struct slice path;
};

struct maps {
	struct map *list;
	size_t count, capacity;
};

static bool take_word(struct words *words, uint64_t *ret)
{
	uint64_t value = 0;

	if (words->bytes.len < words->size)
		return false;
	for (size_t i = 0; i < words->size; i++) {
		size_t at = words->big ? i : words->size - 1 - i;

		value = value << 8 | (unsigned char)words->bytes.data[at];
	}
	words->bytes = slice_tail(words->bytes, words->size);
	*ret = value;
	return true;
}

/* The header in one of four shapes; *ret stands behind it. */
static bool open_words(struct slice bytes, uint64_t version, struct words *ret,
		       uint64_t *ret_period_us)
{
	for (int shape = 0; shape < 4; shape++) {
		struct words words = { bytes, shape & 1 ? 4 : 8, shape & 2 };
		uint64_t header[HEADER_WORDS] = { 1 };
		bool whole = true;

		for (int i = 0; whole && i < HEADER_WORDS; i++)
			whole = take_word(&words, &header[i]);
		if (whole && !header[0] && header[1] == 3 && header[2] == version && header[3] &&
		    header[3] <= UINT32_MAX && !header[4]) {
			*ret = words;
			*ret_period_us = header[3];
			return true;
		}
	}
	return false;
}

static bool is_heap(struct slice text)
{
	return slice_starts_with(text, SLICE_LITERAL("heap profile:"));
}

static bool is_contention(struct slice text)
{
	return slice_starts_with(text, SLICE_LITERAL("--- contention")) ||
	       slice_starts_with(text, SLICE_LITERAL("--- mutex"));
}

/* "goroutine profile: total 7"; the name in *ret_name. */
static bool is_go_count(struct slice text, struct slice *ret_name)
{
	struct slice line = slice_trim(slice_cut(text, '\n', &text)), total;
	uint64_t number;

	*ret_name = slice_cut(line, ' ', &total);
	if (!ret_name->len || ret_name->len >= COUNT_NAME_BYTES ||
	    !slice_starts_with(total, SLICE_LITERAL(COUNT_TOTAL)))
		return false;
	return slice_parse_u64(slice_tail(total, sizeof(COUNT_TOTAL) - 1), &number);
}

static bool is_threads(struct slice text)
{
	return slice_starts_with(text, SLICE_LITERAL("--- threadz ")) ||
	       slice_starts_with(text, SLICE_LITERAL("--- Thread "));
}

static bool is_java(struct slice bytes)
{
	struct slice rest, second;
	struct words words;
	uint64_t period_us;

	if (open_words(bytes, WORDS_JAVA, &words, &period_us))
		return true;
	slice_cut(bytes, '\n', &rest);
	second = slice_trim(slice_cut(rest, '\n', &rest));
	return slice_starts_with(bytes, SLICE_LITERAL("--- ")) && slice_is(second, "format = java");
}

bool legacy_pprof_is(struct slice bytes)
{
	struct words words;
	struct slice name;
	uint64_t period_us;

	return is_heap(bytes) || is_contention(bytes) || is_go_count(bytes, &name) ||
	       is_threads(bytes) || is_java(bytes) ||
	       open_words(bytes, WORDS_NATIVE, &words, &period_us);
}

/* Lines of /proc/PID/maps; others are skipped. */
static void read_maps(struct slice text, struct maps *maps)
{
	while (text.len && maps->count < MAPS_MAX) {
		struct slice line = slice_trim(slice_cut(text, '\n', &text));
		struct procmaps_line parsed;

		if (procmaps_parse_line(line, &parsed, NULL) || !parsed.executable ||
		    !parsed.path.len)
			continue;
		mem_grow(maps->list, maps->count, maps->capacity);
		maps->list[maps->count++] =
			(struct map){ parsed.start, parsed.end, parsed.offset, parsed.path };
	}
}

static void push_address(const struct maps *maps, uint64_t address, bool leaf,
			 struct stack_builder *into)
{
	struct stack_builder_frame frame = { 0 };

	frame.address = leaf || !address ? address : address - 1;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->list[i];

		if (frame.address < map->start || frame.address >= map->end)
			continue;
		frame.mapping = map->path;
		frame.address = frame.address - map->start + map->offset;
		break;
	}
	stack_builder_push(into, &frame);
}

static int64_t scaled(int64_t value, double scale)
{
	double result = (double)value * scale;

	return result < VALUE_MAX ? (int64_t)result : INT64_MAX;
}

static int cut_short(struct err *err)
{
	return err_set(err, ERR_INVALID, "CPU profile: it ends within a sample");
}

static int skip_samples(struct words words, struct slice *ret_maps, struct err *err)
{
	uint64_t count, depth, first = 0;

	for (;;) {
		if (!take_word(&words, &count) || !take_word(&words, &depth))
			return cut_short(err);
		if (depth > DEPTH_MAX || words.bytes.len / words.size < depth || !depth)
			return cut_short(err);
		take_word(&words, &first);
		words.bytes = slice_tail(words.bytes, (depth - 1) * words.size);
		if (!count && depth == 1 && !first)
			break;
	}
	*ret_maps = words.bytes;
	return 0;
}

static int decode_cpu(struct words words, uint64_t period_us, struct stack_builder *into,
		      struct err *err)
{
	struct maps maps = { 0 };
	struct slice text = { 0 };
	int rc = skip_samples(words, &text, err);

	if (rc)
		return rc;
	read_maps(text, &maps);
	stack_builder_type(into, "samples", "count");
	stack_builder_type(into, "cpu", "nanoseconds");
	into->profile.period_type = into->profile.sample_types.data[1];
	into->profile.period = (int64_t)(period_us * NS_PER_US);
	while (words.bytes.len > text.len) {
		uint64_t count = 0, depth = 0, address = 0;
		int64_t values[2];

		take_word(&words, &count);
		take_word(&words, &depth);
		for (uint64_t i = 0; i < depth; i++) {
			take_word(&words, &address);
			if (count)
				push_address(&maps, address, i == 0, into);
		}
		values[0] = count <= INT32_MAX ? (int64_t)count : INT32_MAX;
		if (__builtin_mul_overflow(values[0], into->profile.period, &values[1]))
			values[1] = INT64_MAX;
		if (count)
			stack_builder_sample(into, false, values);
	}
	free(maps.list);
	return stack_builder_check(into, "CPU profile", err);
}

/* Numbers of a line up to '@', in any brackets and colons; -1 when there is no '@'. */
static int take_numbers(struct slice *line, int64_t *values, int max)
{
	size_t at = slice_find_byte(*line, '@');
	int count = 0;

	if (at == SIZE_MAX)
		return -1;
	for (size_t i = 0; i < at && count < max;) {
		uint64_t value = 0;
		size_t start = i;

		while (i < at && line->data[i] >= '0' && line->data[i] <= '9')
			i++;
		if (i > start) {
			if (!slice_parse_u64((struct slice){ line->data + start, i - start },
					     &value) ||
			    value > INT64_MAX)
				return -1;
			values[count++] = (int64_t)value;
		} else {
			i++;
		}
	}
	*line = slice_trim(slice_tail(*line, at + 1));
	return count;
}

static int push_addresses(struct slice text, const struct maps *maps, struct stack_builder *into)
{
	for (int depth = 0; text.len && depth < DEPTH_MAX; depth++) {
		struct slice word = slice_cut(text, ' ', &text);
		char copy[24], *end;
		uint64_t address;

		if (!word.len)
			continue;
		if (word.len >= sizeof(copy))
			return -1;
		memcpy(copy, word.data, word.len);
		copy[word.len] = 0;
		address = strtoull(copy, &end, 16);
		if (*end)
			return -1;
		push_address(maps, address, false, into);
	}
	return 0;
}

/* How the lines of a heap or contention profile are read: one in so many was recorded. */
struct lines_form {
	int columns;	     /* 4: of a heap; 2: of contention; 1: counts */
	uint64_t rate;	     /* heap: bytes between samples; 0 or 1: all were recorded */
	double count, delay; /* contention: what to multiply by */
};

/* What samples stand for: a block is recorded with a chance of 1 - exp(-size / rate). */
static void unsample(int64_t pair[2], uint64_t rate)
{
	double scale;

	if (!pair[0] || !pair[1])
		pair[0] = pair[1] = 0;
	if (!pair[0] || rate <= 1)
		return;
	scale = -1 / expm1(-((double)pair[1] / (double)pair[0]) / (double)rate);
	pair[0] = scaled(pair[0], scale);
	pair[1] = scaled(pair[1], scale);
}

static void scale_values(const struct lines_form *form, int64_t values[4])
{
	int64_t delay = values[0];

	if (form->columns == 1)
		return;
	if (form->columns == 4) {
		unsample(&values[0], form->rate);
		unsample(&values[2], form->rate);
		return;
	}
	values[0] = scaled(values[1], form->count);
	values[1] = scaled(delay, form->delay);
}

/* Sums of a heap or contention profile, one line after the other, up to its mappings. */
static int decode_lines(struct slice text, const struct lines_form *form,
			struct stack_builder *into, struct err *err)
{
	struct maps maps = { 0 };
	size_t number = 1;
	int rc = 0;

	read_maps(text, &maps);
	while (!rc && text.len) {
		struct slice line = slice_trim(slice_cut(text, '\n', &text));
		int64_t values[4] = { 0 };
		int found;

		number++;
		if (slice_is(line, "MAPPED_LIBRARIES:") || slice_is(line, "--- Memory map: ---"))
			break;
		if (line.len && line.data[0] == '#') /* names may hold anything */
			continue;
		found = take_numbers(&line, values, form->columns);
		if (found < 0)
			continue;
		if (found < form->columns || push_addresses(line, &maps, into))
			rc = err_set(
				err, ERR_INVALID,
				"legacy profile: line %zu is not a sample: expected %d numbers, "
				"@ and addresses",
				number, form->columns);
		scale_values(form, values);
		if (!rc)
			stack_builder_sample(into, false, values);
	}
	free(maps.list);
	return rc ? rc : stack_builder_check(into, "legacy profile", err);
}

/* "... @ heap_v2/524288": bytes between samples; Go's "heap/1048576" tells twice as many. */
static uint64_t heap_rate(struct slice header)
{
	struct slice name, number;
	uint64_t rate = 0;

	slice_cut(header, '@', &name);
	name = slice_cut(slice_trim(name), '/', &number);
	if (!slice_parse_u64(slice_trim(number), &rate))
		return 0;
	if (slice_is(name, "heap"))
		return rate / 2;
	return slice_is(name, "heap_v2") || slice_is(name, "heapz_v2") ? rate : 0;
}

static int decode_heap(struct slice text, struct stack_builder *into, struct err *err)
{
	struct lines_form form = { .columns = 4 };

	form.rate = heap_rate(slice_cut(text, '\n', &text));
	stack_builder_type(into, "inuse_objects", "count");
	stack_builder_type(into, "inuse_space", "bytes");
	stack_builder_type(into, "alloc_objects", "count");
	stack_builder_type(into, "alloc_space", "bytes");
	return decode_lines(text, &form, into, err);
}

static int decode_contention(struct slice text, struct stack_builder *into, struct err *err)
{
	struct lines_form form = { .columns = 2, .count = 1, .delay = 1 };
	struct slice rest = text;
	double ns_per_cycle = 1;

	while (rest.len) {
		struct slice line = slice_trim(slice_cut(rest, '\n', &rest));
		struct slice value, key = slice_trim(slice_cut(line, '=', &value));
		uint64_t number;

		if (!slice_parse_u64(slice_trim(value), &number) || !number)
			continue;
		if (slice_is(key, "cycles/second"))
			ns_per_cycle = NS_PER_S / (double)number;
		else if (slice_is(key, "sampling period"))
			form.count = (double)number;
	}
	stack_builder_type(into, "contentions", "count");
	stack_builder_type(into, "delay", "nanoseconds");
	form.delay = ns_per_cycle * form.count;
	return decode_lines(text, &form, into, err);
}

static int decode_go_count(struct slice text, struct slice name, struct stack_builder *into,
			   struct err *err)
{
	const struct lines_form form = { .columns = 1 };
	char type[COUNT_NAME_BYTES];

	slice_cut(text, '\n', &text);
	memcpy(type, name.data, name.len);
	type[name.len] = 0;
	stack_builder_type(into, type, "count");
	return decode_lines(text, &form, into, err);
}

int legacy_pprof_decode(struct slice bytes, struct stack_builder *into, struct err *err)
{
	uint64_t period_us;
	struct words words;
	struct slice name;

	if (is_threads(bytes) || is_java(bytes))
		return err_set(
			err, ERR_UNSUPPORTED,
			"a legacy profile of %s: `go tool pprof -proto FILE > profile.pb.gz` "
			"makes one that can be read",
			is_java(bytes) ? "Java" : "threads");
	if (is_heap(bytes))
		return decode_heap(bytes, into, err);
	if (is_contention(bytes))
		return decode_contention(bytes, into, err);
	if (is_go_count(bytes, &name))
		return decode_go_count(bytes, name, into, err);
	if (open_words(bytes, WORDS_NATIVE, &words, &period_us))
		return decode_cpu(words, period_us, into, err);
	return err_set(err, ERR_INVALID, "this is not a profile of gperftools");
}
