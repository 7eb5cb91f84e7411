/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/arrow_stacks.h"

#include "base/hash.h"
#include "base/mem.h"
#include "codec/wire/pb.h"

#define LINES_MAX 256 /* of a location: calls that were inlined there */
#define UNKNOWN_STACK "[truncated: no locations]"

/* Fields of perftools.profiles.Profile and of what is in it. */
enum { PROFILE_SAMPLE = 2, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_START = 2, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD };
enum { LOCATION_MAPPING = 2, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_NAME = 2, FUNCTION_SYSTEM, FUNCTION_FILE, FUNCTION_START };

void arrow_stacks_init(struct arrow_stacks *stacks)
{
	*stacks = (struct arrow_stacks){ .place_capacity = 0 };
	arena_init(&stacks->arena, 0); /* the request has paid for it */
	arrow_stacks_string(stacks, SLICE_LITERAL(""));
}

static void free_texts(struct arrow_texts *texts)
{
	idmap_free(&texts->map);
	free(texts->items);
}

void arrow_stacks_free(struct arrow_stacks *stacks)
{
	free_texts(&stacks->strings);
	free_texts(&stacks->mappings);
	free_texts(&stacks->functions);
	free_texts(&stacks->locations);
	free_texts(&stacks->places);
	free(stacks->place_ids);
	strbuf_free(&stacks->samples);
	strbuf_free(&stacks->text);
	strbuf_free(&stacks->line);
	arena_free(&stacks->arena);
}

static bool text_equal(const void *context, uint32_t id, const void *key)
{
	const struct arrow_texts *texts = context;

	return slice_equal(texts->items[id], *(const struct slice *)key);
}

static uint32_t intern(struct arrow_stacks *stacks, struct arrow_texts *texts, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&texts->map, hash, text_equal, texts, &text);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(texts->items, texts->count, texts->capacity);
	id = (uint32_t)texts->count++;
	texts->items[id] = arena_copy(&stacks->arena, text);
	idmap_add(&texts->map, hash, id);
	return id;
}

uint64_t arrow_stacks_string(struct arrow_stacks *stacks, struct slice text)
{
	return intern(stacks, &stacks->strings, text);
}

/* The field of a struct's row; NULL: it has none of that name. */
static const struct arrow_array *field_of(const struct arrow_array *of_struct, const char *name)
{
	size_t count = arrow_fields(of_struct);

	for (size_t i = 0; i < count; i++)
		if (slice_is(arrow_field_name(of_struct, i), name))
			return arrow_field(of_struct, i);
	return NULL;
}

static struct slice text_of(const struct arrow_array *of_struct, const char *name, int64_t row)
{
	const struct arrow_array *field = field_of(of_struct, name);

	return field ? arrow_bytes(field, row) : SLICE_LITERAL("");
}

static uint64_t number_of(const struct arrow_array *of_struct, const char *name, int64_t row)
{
	const struct arrow_array *field = field_of(of_struct, name);

	return field ? (uint64_t)arrow_number(field, row) : 0;
}

static uint64_t mapping_of(struct arrow_stacks *stacks, const struct arrow_array *location,
			   int64_t row)
{
	struct slice file = text_of(location, "mapping_file", row);
	struct slice build_id = text_of(location, "mapping_build_id", row);

	if (!file.len && !build_id.len)
		return 0;
	strbuf_clear(&stacks->line);
	pb_put_varint(&stacks->line, MAPPING_START, number_of(location, "mapping_start", row));
	pb_put_varint(&stacks->line, MAPPING_LIMIT, number_of(location, "mapping_limit", row));
	pb_put_varint(&stacks->line, MAPPING_OFFSET, number_of(location, "mapping_offset", row));
	pb_put_varint(&stacks->line, MAPPING_FILE, arrow_stacks_string(stacks, file));
	pb_put_varint(&stacks->line, MAPPING_BUILD, arrow_stacks_string(stacks, build_id));
	return intern(stacks, &stacks->mappings, strbuf_slice(&stacks->line)) + 1;
}

/* Version 1 has the function's fields in the line, version 2 a struct of them. 0: without name. */
static uint64_t function_of(struct arrow_stacks *stacks, const struct arrow_array *line,
			    int64_t row)
{
	const struct arrow_array *function = field_of(line, "function");
	bool apart = function && arrow_shape(function) == ARROW_SHAPE_STRUCT;
	const struct arrow_array *of = apart ? arrow_struct(function, row, &row) : line;
	struct slice name, system;

	if (!of)
		return 0;
	name = text_of(of, apart ? "name" : "function_name", row);
	system = text_of(of, apart ? "system_name" : "function_system_name", row);
	if (!name.len)
		name = system;
	if (!name.len)
		return 0;
	strbuf_clear(&stacks->line);
	pb_put_varint(&stacks->line, FUNCTION_NAME, arrow_stacks_string(stacks, name));
	pb_put_varint(&stacks->line, FUNCTION_SYSTEM,
		      arrow_stacks_string(stacks, system.len ? system : name));
	pb_put_varint(&stacks->line, FUNCTION_FILE,
		      arrow_stacks_string(
			      stacks, text_of(of, apart ? "filename" : "function_filename", row)));
	pb_put_varint(&stacks->line, FUNCTION_START,
		      number_of(of, apart ? "start_line" : "function_start_line", row));
	return intern(stacks, &stacks->functions, strbuf_slice(&stacks->line)) + 1;
}

static void put_line(struct strbuf *out, uint64_t function, uint64_t line, uint64_t column)
{
	size_t begun = pb_begin(out, LOCATION_LINE);

	pb_put_varint(out, LINE_FUNCTION, function);
	pb_put_varint(out, LINE_LINE, line);
	pb_put_varint(out, LINE_COLUMN, column);
	pb_end(out, begun);
}

static void put_lines(struct arrow_stacks *stacks, const struct arrow_array *location, int64_t row)
{
	const struct arrow_array *field = field_of(location, "lines"), *lines;
	int64_t first, count;

	lines = field ? arrow_items(field, row, &first, &count) : NULL;
	for (int64_t i = 0; lines && i < count && i < LINES_MAX; i++) {
		int64_t at;
		const struct arrow_array *line = arrow_struct(lines, first + i, &at);
		uint64_t function = line ? function_of(stacks, line, at) : 0;

		if (function)
			put_line(&stacks->text, function, number_of(line, "line", at),
				 number_of(line, "column", at));
	}
}

static uint64_t make_location(struct arrow_stacks *stacks, const struct arrow_array *location,
			      int64_t row)
{
	uint64_t mapping = mapping_of(stacks, location, row);

	strbuf_clear(&stacks->text);
	pb_put_varint(&stacks->text, LOCATION_MAPPING, mapping);
	pb_put_varint(&stacks->text, LOCATION_ADDRESS, number_of(location, "address", row));
	put_lines(stacks, location, row);
	return intern(stacks, &stacks->locations, strbuf_slice(&stacks->text)) + 1;
}

/* Id of the location that is an item of a list; 0: it is null. */
static uint64_t location_of(struct arrow_stacks *stacks, const struct arrow_array *items,
			    int64_t item)
{
	struct {
		const struct arrow_array *array;
		int64_t row;
	} place;
	size_t known = stacks->places.count;
	uint32_t id;

	place.array = arrow_struct(items, item, &place.row);
	if (!place.array)
		return 0;
	id = intern(stacks, &stacks->places, slice_from(&place, sizeof(place)));
	if (id < known)
		return stacks->place_ids[id];
	mem_grow(stacks->place_ids, id, stacks->place_capacity);
	stacks->place_ids[id] = make_location(stacks, place.array, place.row);
	return stacks->place_ids[id];
}

/* What stands for a stack that did not come. */
static uint64_t unknown_location(struct arrow_stacks *stacks)
{
	uint64_t function;

	strbuf_clear(&stacks->line);
	pb_put_varint(&stacks->line, FUNCTION_NAME,
		      arrow_stacks_string(stacks, SLICE_LITERAL(UNKNOWN_STACK)));
	function = intern(stacks, &stacks->functions, strbuf_slice(&stacks->line)) + 1;
	strbuf_clear(&stacks->text);
	put_line(&stacks->text, function, 0, 0);
	return intern(stacks, &stacks->locations, strbuf_slice(&stacks->text)) + 1;
}

size_t arrow_stacks_begin(struct arrow_stacks *stacks, const struct arrow_array *items,
			  int64_t first, int64_t count, int64_t value)
{
	size_t sample = pb_begin(&stacks->samples, PROFILE_SAMPLE);

	for (int64_t i = 0; items && i < count && i < ARROW_STACK_DEPTH_MAX; i++) {
		uint64_t location = location_of(stacks, items, first + i);

		if (location)
			pb_put_varint(&stacks->samples, SAMPLE_LOCATION, location);
	}
	if (!items)
		pb_put_varint(&stacks->samples, SAMPLE_LOCATION, unknown_location(stacks));
	pb_put_varint_always(&stacks->samples, SAMPLE_VALUE, (uint64_t)value);
	return sample;
}

void arrow_stacks_label(struct arrow_stacks *stacks, const char *key, struct slice text)
{
	size_t label = pb_begin(&stacks->samples, SAMPLE_LABEL);

	pb_put_varint(&stacks->samples, LABEL_KEY, arrow_stacks_string(stacks, slice_of(key)));
	pb_put_varint(&stacks->samples, LABEL_TEXT, arrow_stacks_string(stacks, text));
	pb_end(&stacks->samples, label);
}

void arrow_stacks_label_number(struct arrow_stacks *stacks, const char *key, int64_t number)
{
	size_t label = pb_begin(&stacks->samples, SAMPLE_LABEL);

	pb_put_varint(&stacks->samples, LABEL_KEY, arrow_stacks_string(stacks, slice_of(key)));
	pb_put_varint(&stacks->samples, LABEL_NUMBER, (uint64_t)number);
	pb_end(&stacks->samples, label);
}

void arrow_stacks_end(struct arrow_stacks *stacks, size_t begun)
{
	pb_end(&stacks->samples, begun);
}

/* Messages of one kind, whose first field is their id. */
static void write_table(const struct arrow_texts *texts, uint32_t field, struct strbuf *out)
{
	for (size_t i = 0; i < texts->count; i++) {
		size_t begun = pb_begin(out, field);

		pb_put_varint(out, 1, i + 1);
		strbuf_add_slice(out, texts->items[i]);
		pb_end(out, begun);
	}
}

void arrow_stacks_write(struct arrow_stacks *stacks, struct strbuf *out)
{
	strbuf_add_slice(out, strbuf_slice(&stacks->samples));
	write_table(&stacks->mappings, PROFILE_MAPPING, out);
	write_table(&stacks->locations, PROFILE_LOCATION, out);
	write_table(&stacks->functions, PROFILE_FUNCTION, out);
	for (size_t i = 0; i < stacks->strings.count; i++)
		pb_put_bytes_always(out, PROFILE_STRING, stacks->strings.items[i]);
}
