/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/jfr_chunk.h"

#include <endian.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/hash.h"
#include "base/mem.h"

#define HEADER_BYTES 68u
#define FEATURE_COMPRESSED 1u
#define DEPTH_MAX 32u /* of structures in structures, and of elements of the description */
#define WORK_PER_BYTE 64u
#define TEXT_PER_BYTE 4u
#define ELEMENTS_MIN 8 /* what arrays begin with */
#define STRING_POOL 2  /* how strings are written: a constant */
#define EVENT_METADATA 0
#define EVENT_CONSTANTS 1

static bool fail(struct jfr_reader *reader, enum err_code code, const char *why)
{
	if (!reader->failed)
		err_set(reader->chunk->err, code, "JFR: chunk %zu: %s at byte %zu",
			reader->chunk->number, why, reader->at);
	reader->failed = true;
	return false;
}

static uint64_t big_endian(struct slice bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes.data + at, sizeof(word));
	return be64toh(word);
}

/* Seven bits a byte, the lowest first; a ninth byte counts whole. */
static int64_t read_number(struct jfr_reader *reader)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < 9 && !reader->failed; i++) {
		uint8_t byte;

		if (reader->at >= reader->end) {
			fail(reader, ERR_INVALID, "a number exceeds the input");
			return 0;
		}
		byte = (uint8_t)reader->chunk->bytes.data[reader->at++];
		if (i == 8)
			return (int64_t)(number | (uint64_t)byte << 56);
		number |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			break;
	}
	return reader->failed ? 0 : (int64_t)number;
}

static struct slice take(struct jfr_reader *reader, uint64_t len)
{
	struct slice bytes = { "", 0 };

	if (reader->failed)
		return bytes;
	if (len > reader->end - reader->at) {
		fail(reader, ERR_INVALID, "a value exceeds the input");
		return bytes;
	}
	bytes = slice_from(reader->chunk->bytes.data + reader->at, (size_t)len);
	reader->at += len;
	return bytes;
}

uint64_t jfr_read_count(struct jfr_reader *reader)
{
	uint64_t count = (uint64_t)read_number(reader);

	if (!reader->failed && count > reader->end - reader->at)
		fail(reader, ERR_INVALID, "more elements than bytes for them");
	return reader->failed ? 0 : count;
}

bool jfr_pay(struct jfr_reader *reader, size_t bytes)
{
	struct jfr_chunk *chunk = reader->chunk;

	if (reader->failed)
		return false;
	if (!budget_take(chunk->budget, bytes)) {
		reader->failed = budget_fail(chunk->budget, bytes, "decode JFR", chunk->err) != 0;
		return false;
	}
	chunk->paid_bytes += bytes;
	return true;
}

/* Room for one more of an array that doubles; all is paid until the chunk is freed. */
#define GROW(reader, array, count, capacity)                                                       \
	((count) < (capacity) ||                                                                   \
	 (jfr_pay(reader, ((capacity) + ELEMENTS_MIN) * 2 * sizeof(*(array))) && ({                \
		  mem_grow(array, count, capacity);                                                \
		  true;                                                                            \
	  })))

static void add_utf8(char *to, size_t *len, uint32_t c)
{
	if (c < 0x80) {
		to[(*len)++] = (char)c;
	} else if (c < 0x800) {
		to[(*len)++] = (char)(0xc0 | c >> 6);
		to[(*len)++] = (char)(0x80 | (c & 0x3f));
	} else {
		to[(*len)++] = (char)(0xe0 | c >> 12);
		to[(*len)++] = (char)(0x80 | (c >> 6 & 0x3f));
		to[(*len)++] = (char)(0x80 | (c & 0x3f));
	}
}

static struct slice read_chars(struct jfr_reader *reader)
{
	uint64_t count = jfr_read_count(reader);
	size_t len = 0;
	char *to;

	if (count > reader->chunk->text_left)
		fail(reader, ERR_LIMIT, "too much text to convert");
	if (!jfr_pay(reader, count * 3 + 1))
		return SLICE_LITERAL("");
	reader->chunk->text_left -= count;
	to = arena_alloc(&reader->chunk->arena, count * 3 + 1);
	for (uint64_t i = 0; i < count && !reader->failed; i++)
		add_utf8(to, &len, (uint16_t)read_number(reader));
	return slice_from(to, reader->failed ? 0 : len);
}

static struct slice constant_text(struct jfr_chunk *chunk, int64_t key);

static struct slice read_string(struct jfr_reader *reader)
{
	struct slice how = take(reader, 1);

	switch (how.len ? how.data[0] : 0) {
	case 0:
	case 1:
		return SLICE_LITERAL("");
	case STRING_POOL:
		return constant_text(reader->chunk, read_number(reader));
	case 3:
	case 5: /* Latin-1; what is not ASCII is repaired by whoever takes the profile */
		return take(reader, (uint64_t)read_number(reader));
	case 4:
		return read_chars(reader);
	default:
		fail(reader, ERR_INVALID, "a string in an unknown encoding");
		return SLICE_LITERAL("");
	}
}

/* Big-endian, whatever the chunk's numbers are. */
static double read_real(struct jfr_reader *reader, enum jfr_primitive primitive)
{
	size_t len = primitive == JFR_FLOAT ? sizeof(float) : sizeof(double);
	struct slice bytes = take(reader, len);
	uint64_t bits64;
	uint32_t bits32;
	double real;
	float single;

	if (bytes.len != len)
		return 0;
	if (primitive == JFR_FLOAT) {
		memcpy(&bits32, bytes.data, len);
		bits32 = be32toh(bits32);
		memcpy(&single, &bits32, len);
		return single;
	}
	memcpy(&bits64, bytes.data, len);
	bits64 = be64toh(bits64);
	memcpy(&real, &bits64, len);
	return real;
}

static void skip_struct(struct jfr_reader *reader, uint32_t class, unsigned depth);

static struct jfr_value read_one(struct jfr_reader *reader, const struct jfr_field *field,
				 unsigned depth)
{
	struct jfr_chunk *chunk = reader->chunk;
	struct jfr_value value = { .at = reader->at, .text = { "", 0 } };
	struct slice bytes;

	if (!chunk->work_left--) {
		chunk->work_left = 0;
		fail(reader, ERR_LIMIT, "too many values");
		return value;
	}
	if (field->is_constant) {
		value.number = read_number(reader);
		return value;
	}
	if (field->class == JFR_NO_CLASS) {
		fail(reader, ERR_INVALID, "a field of a class that is not described");
		return value;
	}
	switch (chunk->classes[field->class].primitive) {
	case JFR_BYTE:
		bytes = take(reader, 1);
		value.number = bytes.len ? bytes.data[0] : 0;
		break;
	case JFR_NUMBER:
		value.number = read_number(reader);
		break;
	case JFR_FLOAT:
	case JFR_DOUBLE:
		value.real = read_real(reader, chunk->classes[field->class].primitive);
		break;
	case JFR_STRING:
		value.text = read_string(reader);
		break;
	case JFR_STRUCT:
		skip_struct(reader, field->class, depth + 1);
		break;
	}
	return value;
}

static struct jfr_value read_field(struct jfr_reader *reader, const struct jfr_field *field,
				   unsigned depth)
{
	struct jfr_value value = { .at = reader->at, .text = { "", 0 } };
	uint64_t count;

	if (!field->is_array)
		return read_one(reader, field, depth);
	count = jfr_read_count(reader);
	for (uint64_t i = 0; i < count && !reader->failed; i++)
		read_one(reader, field, depth);
	return value;
}

static void skip_struct(struct jfr_reader *reader, uint32_t class, unsigned depth)
{
	const struct jfr_class *is = &reader->chunk->classes[class];

	if (depth > DEPTH_MAX) {
		fail(reader, ERR_INVALID, "structures nested too deeply");
		return;
	}
	for (uint32_t i = 0; i < is->field_count && !reader->failed; i++)
		read_field(reader, &reader->chunk->fields[is->field_first + i], depth);
}

struct jfr_value jfr_read(struct jfr_reader *reader, const struct jfr_field *field)
{
	return read_field(reader, field, 0);
}

/* The description of classes: a tree of elements with attributes, all texts by number. */

static struct slice read_text(struct jfr_reader *reader)
{
	uint64_t index = (uint64_t)read_number(reader);

	if (!reader->failed && index < reader->chunk->strings_count)
		return reader->chunk->strings[index];
	fail(reader, ERR_INVALID, "a text of the description that is not there");
	return SLICE_LITERAL("");
}

static bool room(struct jfr_reader *reader, size_t count)
{
	return count < reader->chunk->elements_max ||
	       fail(reader, ERR_LIMIT, "more elements than allowed");
}

static enum jfr_primitive primitive_of(struct slice name)
{
	static const struct {
		const char *name;
		enum jfr_primitive primitive;
	} primitives[] = { { "boolean", JFR_BYTE },
			   { "byte", JFR_BYTE },
			   { "char", JFR_NUMBER },
			   { "short", JFR_NUMBER },
			   { "int", JFR_NUMBER },
			   { "long", JFR_NUMBER },
			   { "float", JFR_FLOAT },
			   { "double", JFR_DOUBLE },
			   { "java.lang.String", JFR_STRING } };

	for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++)
		if (slice_is(name, primitives[i].name))
			return primitives[i].primitive;
	return JFR_STRUCT;
}

static int64_t signed_of(struct slice text)
{
	uint64_t number;
	bool negative = slice_starts_with(text, SLICE_LITERAL("-"));

	if (!slice_parse_u64(slice_tail(text, negative), &number) || number > INT64_MAX)
		return -1;
	return negative ? -(int64_t)number : (int64_t)number;
}

struct attributes {
	struct slice name, id, class, constant, dimension;
};

static void read_attributes(struct jfr_reader *reader, struct attributes *ret)
{
	uint64_t count = jfr_read_count(reader);

	*ret = (struct attributes){ .name = { "", 0 } };
	for (uint64_t i = 0; i < count && !reader->failed; i++) {
		struct slice key = read_text(reader), value = read_text(reader);

		if (slice_is(key, "name"))
			ret->name = value;
		else if (slice_is(key, "id"))
			ret->id = value;
		else if (slice_is(key, "class"))
			ret->class = value;
		else if (slice_is(key, "constantPool"))
			ret->constant = value;
		else if (slice_is(key, "dimension"))
			ret->dimension = value;
	}
}

static void add_class(struct jfr_reader *reader, const struct attributes *attributes)
{
	struct jfr_chunk *chunk = reader->chunk;

	if (!room(reader, chunk->classes_count) || !jfr_pay(reader, IDMAP_ENTRY_BYTES_MAX) ||
	    !GROW(reader, chunk->classes, chunk->classes_count, chunk->classes_capacity))
		return;
	chunk->classes[chunk->classes_count++] =
		(struct jfr_class){ .id = signed_of(attributes->id),
				    .name = attributes->name,
				    .primitive = primitive_of(attributes->name),
				    .field_first = (uint32_t)chunk->fields_count };
}

static void add_field(struct jfr_reader *reader, const struct attributes *attributes)
{
	struct jfr_chunk *chunk = reader->chunk;

	if (!chunk->classes_count || !room(reader, chunk->fields_count) ||
	    !GROW(reader, chunk->fields, chunk->fields_count, chunk->fields_capacity))
		return;
	chunk->fields[chunk->fields_count++] =
		(struct jfr_field){ .name = attributes->name,
				    .class_id = signed_of(attributes->class),
				    .is_constant = slice_is(attributes->constant, "true"),
				    .is_array = slice_is(attributes->dimension, "1") };
	chunk->classes[chunk->classes_count - 1].field_count++;
}

/* Classes stand one behind another, each with its fields, so fields belong to the last class. */
static void read_element(struct jfr_reader *reader, unsigned depth)
{
	struct slice name = read_text(reader);
	struct attributes attributes;
	uint64_t children;

	if (depth > DEPTH_MAX) {
		fail(reader, ERR_INVALID, "the description is nested too deeply");
		return;
	}
	read_attributes(reader, &attributes);
	if (slice_is(name, "class"))
		add_class(reader, &attributes);
	else if (slice_is(name, "field"))
		add_field(reader, &attributes);
	children = jfr_read_count(reader);
	for (uint64_t i = 0; i < children && !reader->failed; i++)
		read_element(reader, depth + 1);
}

static uint64_t hash_of(uint32_t class, int64_t key)
{
	return hash_mix(hash_mix(0, class), (uint64_t)key);
}

static bool has_id(const void *context, uint32_t class, const void *key)
{
	return ((const struct jfr_chunk *)context)->classes[class].id == *(const int64_t *)key;
}

static uint32_t class_by_id(const struct jfr_chunk *chunk, int64_t id)
{
	uint32_t class = idmap_find(&chunk->by_id, hash_of(0, id), has_id, chunk, &id);

	return class == IDMAP_NONE ? JFR_NO_CLASS : class;
}

uint32_t jfr_chunk_class(const struct jfr_chunk *chunk, const char *name)
{
	for (size_t i = 0; i < chunk->classes_count; i++)
		if (slice_is(chunk->classes[i].name, name))
			return (uint32_t)i;
	return JFR_NO_CLASS;
}

static void read_metadata(struct jfr_reader *reader)
{
	struct jfr_chunk *chunk = reader->chunk;
	uint64_t count;

	for (int i = 0; i < 3; i++)
		read_number(reader); /* start, duration, id */
	count = jfr_read_count(reader);
	for (uint64_t i = 0; i < count && !reader->failed && room(reader, i); i++) {
		struct slice text = read_string(reader);

		if (!GROW(reader, chunk->strings, chunk->strings_count, chunk->strings_capacity))
			break;
		chunk->strings[chunk->strings_count++] = text;
	}
	if (!reader->failed)
		read_element(reader, 0);
	if (chunk->classes_count > UINT16_MAX)
		fail(reader, ERR_LIMIT, "too many classes");
	for (size_t i = 0; i < chunk->classes_count && !reader->failed; i++)
		if (class_by_id(chunk, chunk->classes[i].id) == JFR_NO_CLASS)
			idmap_add(&chunk->by_id, hash_of(0, chunk->classes[i].id), (uint32_t)i);
	chunk->string_class = jfr_chunk_class(chunk, "java.lang.String");
	for (size_t i = 0; i < chunk->fields_count && !reader->failed; i++)
		chunk->fields[i].class = class_by_id(chunk, chunk->fields[i].class_id);
}

/* Constants. */

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct jfr_constant *a = &((const struct jfr_chunk *)context)->constants[id];
	const struct jfr_constant *b = key;

	return a->class == b->class && a->key == b->key;
}

static struct jfr_constant *find_constant(struct jfr_chunk *chunk, uint32_t class, int64_t key)
{
	struct jfr_constant wanted = { .class = class, .key = key };
	uint32_t id = idmap_find(&chunk->by_key, hash_of(class, key), is_same, chunk, &wanted);

	return id == IDMAP_NONE ? NULL : &chunk->constants[id];
}

struct jfr_constant *jfr_constant_of(struct jfr_chunk *chunk, const struct jfr_field *field,
				     int64_t key)
{
	return field && field->is_constant ? find_constant(chunk, field->class, key) : NULL;
}

static struct slice constant_text(struct jfr_chunk *chunk, int64_t key)
{
	const struct jfr_constant *constant = find_constant(chunk, chunk->string_class, key);
	struct jfr_reader reader = { .chunk = chunk, .end = chunk->bytes.len };

	if (!constant)
		return SLICE_LITERAL("");
	reader.at = constant->at;
	/* A constant that is one itself leads nowhere: or it could lead to itself. */
	if (reader.at >= reader.end || chunk->bytes.data[reader.at] == STRING_POOL)
		return SLICE_LITERAL("");
	return read_string(&reader);
}

static void add_constant(struct jfr_reader *reader, uint32_t class)
{
	struct jfr_chunk *chunk = reader->chunk;
	struct jfr_field whole = { .class = class };
	int64_t key = read_number(reader);
	struct jfr_constant constant = { .class = class, .key = key, .at = reader->at };

	read_one(reader, &whole, 0);
	if (reader->failed || find_constant(chunk, class, key) ||
	    !room(reader, chunk->constants_count) || !jfr_pay(reader, IDMAP_ENTRY_BYTES_MAX) ||
	    !GROW(reader, chunk->constants, chunk->constants_count, chunk->constants_capacity))
		return;
	idmap_add(&chunk->by_key, hash_of(class, key), (uint32_t)chunk->constants_count);
	chunk->constants[chunk->constants_count++] = constant;
}

static void read_constants(struct jfr_reader *reader)
{
	uint64_t pools;

	for (int i = 0; i < 3; i++)
		read_number(reader); /* start, duration, where the one before it is */
	take(reader, 1);	     /* why it was written */
	pools = jfr_read_count(reader);
	for (uint64_t i = 0; i < pools && !reader->failed; i++) {
		uint32_t class = class_by_id(reader->chunk, read_number(reader));
		uint64_t count = jfr_read_count(reader);

		if (class == JFR_NO_CLASS && count)
			fail(reader, ERR_INVALID, "constants of a class that is not described");
		for (uint64_t k = 0; k < count && !reader->failed; k++)
			add_constant(reader, class);
	}
}

struct jfr_value jfr_constant_field(struct jfr_chunk *chunk, const struct jfr_constant *constant,
				    const char *name, const struct jfr_field **ret_field)
{
	const struct jfr_class *class = &chunk->classes[constant->class];
	struct jfr_reader reader = { .chunk = chunk, .at = constant->at, .end = chunk->bytes.len };

	for (uint32_t i = 0; i < class->field_count && !reader.failed; i++) {
		const struct jfr_field *field = &chunk->fields[class->field_first + i];

		if (slice_is(field->name, name)) {
			if (ret_field)
				*ret_field = field;
			return read_field(&reader, field, 0);
		}
		read_field(&reader, field, 0);
	}
	if (ret_field)
		*ret_field = NULL;
	return (struct jfr_value){ .text = { "", 0 } };
}

/* Events. */

static bool next_event(struct jfr_chunk *chunk, size_t *at, int64_t *ret_type,
		       struct jfr_reader *ret)
{
	struct jfr_reader reader = { .chunk = chunk, .at = *at, .end = chunk->bytes.len };
	uint64_t size;

	*ret = reader;
	if (*at >= chunk->bytes.len)
		return false;
	size = (uint64_t)read_number(&reader);
	if (!reader.failed && (!size || size > chunk->bytes.len - *at))
		fail(&reader, ERR_INVALID, "an event of impossible size");
	if (!reader.failed) {
		reader.end = *at + size;
		*at = reader.end;
		*ret_type = read_number(&reader);
	}
	*ret = reader;
	return !reader.failed;
}

bool jfr_chunk_event(struct jfr_chunk *chunk, size_t *at, uint32_t *ret_class,
		     struct jfr_reader *ret)
{
	int64_t type = 0;

	if (!*at)
		*at = HEADER_BYTES;
	if (!next_event(chunk, at, &type, ret))
		return false;
	*ret_class = type > EVENT_CONSTANTS ? class_by_id(chunk, type) : JFR_NO_CLASS;
	return true;
}

int jfr_chunk_length(struct slice bytes, size_t number, uint64_t *ret, struct err *err)
{
	if (bytes.len < HEADER_BYTES || memcmp(bytes.data, "FLR\0", 4) != 0)
		return err_set(err, ERR_INVALID, "JFR: chunk %zu: no header of a chunk", number);
	*ret = big_endian(bytes, 8);
	return 0;
}

/* The description, or all constants: what the wanted type of event reads. */
static bool each_of(struct jfr_chunk *chunk, int64_t wanted, void (*read)(struct jfr_reader *))
{
	struct jfr_reader reader = { .failed = false };
	size_t at = HEADER_BYTES;
	int64_t type;

	while (next_event(chunk, &at, &type, &reader)) {
		if (type != wanted)
			continue;
		read(&reader);
		if (reader.failed)
			return false;
	}
	return !reader.failed;
}

int jfr_chunk_open(struct jfr_chunk *chunk, struct slice bytes, size_t number, size_t elements_max,
		   struct budget *budget, struct err *err)
{
	struct jfr_reader metadata = { .chunk = chunk, .end = bytes.len };
	size_t at = (size_t)big_endian(bytes, 24);
	int64_t type;

	*chunk = (struct jfr_chunk){ .bytes = bytes,
				     .number = number,
				     .start_ns = (int64_t)big_endian(bytes, 32),
				     .duration_ns = (int64_t)big_endian(bytes, 40),
				     .start_ticks = (int64_t)big_endian(bytes, 48),
				     .ticks_per_s = (int64_t)big_endian(bytes, 56),
				     .elements_max = elements_max,
				     .budget = budget,
				     .work_left = bytes.len * WORK_PER_BYTE,
				     .text_left = bytes.len * TEXT_PER_BYTE,
				     .err = err };
	arena_init(&chunk->arena, 0);
	if (!(bytes.data[67] & FEATURE_COMPRESSED))
		return err_set(err, ERR_UNSUPPORTED, "JFR: chunk %zu: numbers are not compressed",
			       number);
	if (chunk->ticks_per_s <= 0)
		return err_set(err, ERR_INVALID, "JFR: chunk %zu: no ticks per second", number);
	if (at < HEADER_BYTES || !next_event(chunk, &at, &type, &metadata) ||
	    type != EVENT_METADATA)
		return err_set(err, ERR_INVALID, "JFR: chunk %zu: no description of events",
			       number);
	read_metadata(&metadata);
	if (metadata.failed || !each_of(chunk, EVENT_CONSTANTS, read_constants))
		return -(int)err->code;
	return 0;
}

void jfr_chunk_free(struct jfr_chunk *chunk)
{
	free(chunk->strings);
	free(chunk->classes);
	free(chunk->fields);
	free(chunk->constants);
	idmap_free(&chunk->by_key);
	idmap_free(&chunk->by_id);
	arena_free(&chunk->arena);
	budget_give(chunk->budget, chunk->paid_bytes);
}
