/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns grow by doubling and are kept between calls: with warm columns decoding allocates
 * nothing. Packed numbers reserve room for their bytes' count at once, so the inner loop of
 * location ids, where most of a profile's bytes are, only decodes and stores.
 */
#include "codec/profile/pprof.h"

#include "base/arena.h"
#include "base/budget.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "codec/wire/pb.h"

#define STRING_BYTES 32u /* besides its own: its end, and what aligns the next */

/* Field numbers of perftools.profiles (proto/profile.proto). */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_KEEP_FRAMES = 8,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	PROFILE_DOC_URL = 15,

	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,

	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,

	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	LABEL_NUM_UNIT = 4,

	MAPPING_ID = 1,
	MAPPING_MEMORY_START = 2,
	MAPPING_MEMORY_LIMIT = 3,
	MAPPING_FILE_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,

	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LOCATION_IS_FOLDED = 5,

	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	LINE_COLUMN = 3,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

void pprof_init(struct pprof *profile)
{
	*profile = (struct pprof){ 0 };
}

void pprof_free(struct pprof *profile)
{
	COLUMN_FREE(&profile->sample_types, profile->budget);
	COLUMN_FREE(&profile->samples, profile->budget);
	COLUMN_FREE(&profile->location_ids, profile->budget);
	COLUMN_FREE(&profile->values, profile->budget);
	COLUMN_FREE(&profile->labels, profile->budget);
	COLUMN_FREE(&profile->mappings, profile->budget);
	COLUMN_FREE(&profile->locations, profile->budget);
	COLUMN_FREE(&profile->lines, profile->budget);
	COLUMN_FREE(&profile->functions, profile->budget);
	COLUMN_FREE(&profile->strings, profile->budget);
	COLUMN_FREE(&profile->comments, profile->budget);
	pprof_clear(profile);
}

void pprof_clear(struct pprof *profile)
{
	profile->sample_types.count = profile->samples.count = profile->location_ids.count = 0;
	profile->values.count = profile->labels.count = profile->mappings.count = 0;
	profile->locations.count = profile->lines.count = profile->functions.count = 0;
	profile->strings.count = profile->comments.count = 0;
	profile->period_type = (struct pprof_value_type){ 0 };
	profile->drop_frames = profile->keep_frames = profile->time_nanos = 0;
	profile->duration_nanos = profile->period = profile->default_sample_type = 0;
	profile->doc_url = 0;
}

struct decoder {
	struct pprof *profile;
	size_t elements_max;	  /* of each column, */
	size_t samples_max;	  /* but for samples */
	struct budget *budget;	  /* the struct's */
	const uint8_t *plain_end; /* before it, PB_PLAIN_BYTES can be read */
	struct err *err;
};

static int fail_limit(struct decoder *decoder, size_t elements_max)
{
	return err_set(decoder->err, ERR_LIMIT, "decode Profile: more than %zu elements of a kind",
		       elements_max);
}

static int fail_memory(struct decoder *decoder, size_t bytes)
{
	return budget_fail(decoder->budget, bytes, "decode Profile", decoder->err);
}

/* Whether the column has (or now got) room; says so in `err` when it has none. */
#define ROOM_UP_TO(decoder, column, more, most)                                                    \
	(COLUMN_ROOM_PAID(column, (decoder)->budget, more, most) ||                                \
	 ((column)->count + (more) > (most)                                                        \
		  ? fail_limit(decoder, most)                                                      \
		  : fail_memory(decoder, (more) * sizeof(*(column)->data)),                        \
	  false))
#define ROOM(decoder, column, more) ROOM_UP_TO(decoder, column, more, (decoder)->elements_max)

/* 0 at the end of a message, else the error that the reader stopped at. */
static int end_of(struct decoder *decoder, const struct pb_reader *in, const struct pb_shape *shape)
{
	return in->problem ? pb_fail(in, shape->name, decoder->err) : 0;
}

/* Appends a repeated number, packed or not; `to` has room for pb_numbers_count more. */
static int decode_numbers(struct decoder *decoder, const struct pb_reader *in,
			  const struct pb_field *field, uint64_t *to, size_t *count)
{
	bool whole = true;

	if (field->wire == PB_VARINT)
		to[(*count)++] = field->value;
	else
		*count += pb_varints(field->bytes, to + *count, &whole);
	return whole ? 0 : pb_fail_packed(in, "Profile", decoder->err);
}

static int decode_value_type(struct decoder *decoder, struct pb_reader in,
			     struct pprof_value_type *ret)
{
	static const struct pb_shape shape = { .name = "ValueType", .varints = PB_BITS(1, 2) };
	struct pb_field field;

	*ret = (struct pprof_value_type){ 0 };
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == VALUE_TYPE_TYPE)
			ret->type = (int64_t)field.value;
		else
			ret->unit = (int64_t)field.value;
	}
	return end_of(decoder, &in, &shape);
}

static int decode_label(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Label", .varints = PB_BITS(1, 4) };
	struct pprof *profile = decoder->profile;
	struct pprof_label label = { 0 };
	struct pb_field field;

	if (!ROOM(decoder, &profile->labels, 1))
		return -ERR_LIMIT;
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == LABEL_KEY)
			label.key = (int64_t)field.value;
		else if (field.number == LABEL_STR)
			label.str = (int64_t)field.value;
		else if (field.number == LABEL_NUM)
			label.num = (int64_t)field.value;
		else
			label.num_unit = (int64_t)field.value;
	}
	profile->labels.data[profile->labels.count++] = label;
	return end_of(decoder, &in, &shape);
}

/*
 * Samples, locations and functions are nearly all that a profile has, and most are written in one
 * way: fields in order, none twice. These are read with all that is known of them in registers, and
 * written once. False: it is not one of these, and nothing has changed.
 */

/* The packed numbers of the field whose tag stands at `at`; the place behind them, or NULL. */
static const uint8_t *plain_numbers(const uint8_t *at, const uint8_t *end, uint64_t *to,
				    size_t *count)
{
	bool whole = true;
	uint64_t len;

	at = pb_plain_varint(at + 1, &len);
	if (!at || at > end || len > (uint64_t)(end - at))
		return NULL;
	if (len == 1 && *at < 0x80)
		to[(*count)++] = *at;
	else
		*count += pb_varints(slice_from(at, (size_t)len), to + *count, &whole);
	return whole ? at + len : NULL;
}

/* Without labels. */
static bool plain_sample(struct decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	struct pprof *p = decoder->profile;
	size_t location_first = p->location_ids.count, locations = location_first;
	size_t value_first = p->values.count, values = value_first, room = (size_t)(end - at) + 1;
	struct pprof_sample *to;

	if (end > decoder->plain_end ||
	    !COLUMN_ROOM_PAID(&p->samples, decoder->budget, 1, decoder->samples_max) ||
	    !COLUMN_ROOM_PAID(&p->location_ids, decoder->budget, room, decoder->elements_max) ||
	    !COLUMN_ROOM_PAID(&p->values, decoder->budget, room, decoder->elements_max))
		return false;
	if (at < end && *at == PB_TAG(SAMPLE_LOCATION_ID, PB_BYTES))
		at = plain_numbers(at, end, p->location_ids.data, &locations);
	if (at && at < end && *at == PB_TAG(SAMPLE_VALUE, PB_BYTES))
		at = plain_numbers(at, end, (uint64_t *)p->values.data, &values);
	if (at != end)
		return false;
	to = &p->samples.data[p->samples.count++];
	to->location_first = (uint32_t)location_first;
	to->location_count = (uint32_t)(locations - location_first);
	to->value_first = (uint32_t)value_first;
	to->value_count = (uint32_t)(values - value_first);
	to->label_first = (uint32_t)p->labels.count;
	to->label_count = 0;
	p->location_ids.count = locations;
	p->values.count = values;
	return true;
}

/* The number of the field that `tag` begins, if it stands at `at`; the place behind it, or NULL. */
static inline const uint8_t *plain_number(const uint8_t *at, const uint8_t *end, uint8_t tag,
					  uint64_t *ret)
{
	return at && at < end && *at == tag ? pb_plain_varint(at + 1, ret) : at;
}

/* Of one line; `at` stands behind its tag. Returns the place behind it, or NULL. */
static const uint8_t *plain_line(const uint8_t *at, const uint8_t *end, struct pprof_line *to)
{
	uint64_t len, function_id = 0, line = 0, column = 0;
	const uint8_t *line_end;

	at = pb_plain_varint(at, &len);
	if (!at || at > end || len > (uint64_t)(end - at))
		return NULL;
	line_end = at + len;
	at = plain_number(at, line_end, PB_TAG(LINE_FUNCTION_ID, PB_VARINT), &function_id);
	at = plain_number(at, line_end, PB_TAG(LINE_LINE, PB_VARINT), &line);
	at = plain_number(at, line_end, PB_TAG(LINE_COLUMN, PB_VARINT), &column);
	to->function_id = function_id;
	to->line = (int64_t)line;
	to->column = (int64_t)column;
	return at == line_end ? at : NULL;
}

/* With one line at most. */
static bool plain_location(struct decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	struct pprof *p = decoder->profile;
	uint64_t id = 0, mapping_id = 0, address = 0;
	struct pprof_location *to;
	uint32_t lines = 0;

	if (end > decoder->plain_end ||
	    !COLUMN_ROOM_PAID(&p->locations, decoder->budget, 1, decoder->elements_max) ||
	    !COLUMN_ROOM_PAID(&p->lines, decoder->budget, 1, decoder->elements_max))
		return false;
	at = plain_number(at, end, PB_TAG(LOCATION_ID, PB_VARINT), &id);
	at = plain_number(at, end, PB_TAG(LOCATION_MAPPING_ID, PB_VARINT), &mapping_id);
	at = plain_number(at, end, PB_TAG(LOCATION_ADDRESS, PB_VARINT), &address);
	if (at && at < end && *at == PB_TAG(LOCATION_LINE, PB_BYTES)) {
		at = plain_line(at + 1, end, &p->lines.data[p->lines.count]);
		lines = 1;
	}
	if (at != end)
		return false;
	to = &p->locations.data[p->locations.count++];
	to->id = id;
	to->mapping_id = mapping_id;
	to->address = address;
	to->line_first = (uint32_t)p->lines.count;
	to->line_count = lines;
	to->is_folded = false;
	p->lines.count += lines;
	return true;
}

static bool plain_function(struct decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	struct pprof *p = decoder->profile;
	uint64_t id = 0, name = 0, system_name = 0, filename = 0, start_line = 0;
	struct pprof_function *to;

	if (end > decoder->plain_end ||
	    !COLUMN_ROOM_PAID(&p->functions, decoder->budget, 1, decoder->elements_max))
		return false;
	at = plain_number(at, end, PB_TAG(FUNCTION_ID, PB_VARINT), &id);
	at = plain_number(at, end, PB_TAG(FUNCTION_NAME, PB_VARINT), &name);
	at = plain_number(at, end, PB_TAG(FUNCTION_SYSTEM_NAME, PB_VARINT), &system_name);
	at = plain_number(at, end, PB_TAG(FUNCTION_FILENAME, PB_VARINT), &filename);
	at = plain_number(at, end, PB_TAG(FUNCTION_START_LINE, PB_VARINT), &start_line);
	if (at != end)
		return false;
	to = &p->functions.data[p->functions.count++];
	to->id = id;
	to->name = (int64_t)name;
	to->system_name = (int64_t)system_name;
	to->filename = (int64_t)filename;
	to->start_line = (int64_t)start_line;
	return true;
}

static int decode_sample(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Sample",
					       .varints = PB_BITS(1, 2),
					       .bytes = PB_BITS(1, 3) };
	struct pprof *p = decoder->profile;
	size_t location_first = p->location_ids.count, value_first = p->values.count;
	size_t label_first = p->labels.count;
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == SAMPLE_LABEL)
			status = decode_label(decoder, pb_reader_into(&in, field.bytes));
		else if (field.number == SAMPLE_LOCATION_ID)
			status =
				!ROOM(decoder, &p->location_ids, pb_numbers_count(&field))
					? -ERR_LIMIT
					: decode_numbers(decoder, &in, &field, p->location_ids.data,
							 &p->location_ids.count);
		else
			status = !ROOM(decoder, &p->values, pb_numbers_count(&field))
					 ? -ERR_LIMIT
					 : decode_numbers(decoder, &in, &field,
							  (uint64_t *)p->values.data,
							  &p->values.count);
	}
	if (status || !ROOM_UP_TO(decoder, &p->samples, 1, decoder->samples_max))
		return status ? status : -ERR_LIMIT;
	p->samples.data[p->samples.count++] = (struct pprof_sample){
		.location_first = (uint32_t)location_first,
		.location_count = (uint32_t)(p->location_ids.count - location_first),
		.value_first = (uint32_t)value_first,
		.value_count = (uint32_t)(p->values.count - value_first),
		.label_first = (uint32_t)label_first,
		.label_count = (uint32_t)(p->labels.count - label_first),
	};
	return end_of(decoder, &in, &shape);
}

static void set_mapping_field(struct pprof_mapping *mapping, const struct pb_field *field)
{
	switch (field->number) {
	case MAPPING_ID:
		mapping->id = field->value;
		break;
	case MAPPING_MEMORY_START:
		mapping->memory_start = field->value;
		break;
	case MAPPING_MEMORY_LIMIT:
		mapping->memory_limit = field->value;
		break;
	case MAPPING_FILE_OFFSET:
		mapping->file_offset = field->value;
		break;
	case MAPPING_FILENAME:
		mapping->filename = (int64_t)field->value;
		break;
	case MAPPING_BUILD_ID:
		mapping->build_id = (int64_t)field->value;
		break;
	case MAPPING_HAS_FUNCTIONS:
		mapping->has_functions = field->value;
		break;
	case MAPPING_HAS_FILENAMES:
		mapping->has_filenames = field->value;
		break;
	case MAPPING_HAS_LINE_NUMBERS:
		mapping->has_line_numbers = field->value;
		break;
	case MAPPING_HAS_INLINE_FRAMES:
		mapping->has_inline_frames = field->value;
		break;
	}
}

static int decode_mapping(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Mapping", .varints = PB_BITS(1, 10) };
	struct pprof *profile = decoder->profile;
	struct pprof_mapping mapping = { 0 };
	struct pb_field field;

	if (!ROOM(decoder, &profile->mappings, 1))
		return -ERR_LIMIT;
	while (pb_next_known(&in, &shape, &field))
		set_mapping_field(&mapping, &field);
	profile->mappings.data[profile->mappings.count++] = mapping;
	return end_of(decoder, &in, &shape);
}

static int decode_line(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Line", .varints = PB_BITS(1, 3) };
	struct pprof *profile = decoder->profile;
	struct pprof_line line = { 0 };
	struct pb_field field;

	if (!ROOM(decoder, &profile->lines, 1))
		return -ERR_LIMIT;
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == LINE_FUNCTION_ID)
			line.function_id = field.value;
		else if (field.number == LINE_LINE)
			line.line = (int64_t)field.value;
		else
			line.column = (int64_t)field.value;
	}
	profile->lines.data[profile->lines.count++] = line;
	return end_of(decoder, &in, &shape);
}

static int decode_location(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Location",
					       .varints =
						       PB_BITS(1, 3) | PB_BIT(LOCATION_IS_FOLDED),
					       .bytes = PB_BIT(LOCATION_LINE) };
	struct pprof *profile = decoder->profile;
	struct pprof_location location = { .line_first = (uint32_t)profile->lines.count };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == LOCATION_LINE)
			status = decode_line(decoder, pb_reader_into(&in, field.bytes));
		else if (field.number == LOCATION_ID)
			location.id = field.value;
		else if (field.number == LOCATION_MAPPING_ID)
			location.mapping_id = field.value;
		else if (field.number == LOCATION_ADDRESS)
			location.address = field.value;
		else
			location.is_folded = field.value;
	}
	if (status || !ROOM(decoder, &profile->locations, 1))
		return status ? status : -ERR_LIMIT;
	location.line_count = (uint32_t)(profile->lines.count - location.line_first);
	profile->locations.data[profile->locations.count++] = location;
	return end_of(decoder, &in, &shape);
}

static int decode_function(struct decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Function", .varints = PB_BITS(1, 5) };
	struct pprof *profile = decoder->profile;
	struct pprof_function function = { 0 };
	struct pb_field field;

	if (!ROOM(decoder, &profile->functions, 1))
		return -ERR_LIMIT;
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == FUNCTION_ID)
			function.id = field.value;
		else if (field.number == FUNCTION_NAME)
			function.name = (int64_t)field.value;
		else if (field.number == FUNCTION_SYSTEM_NAME)
			function.system_name = (int64_t)field.value;
		else if (field.number == FUNCTION_FILENAME)
			function.filename = (int64_t)field.value;
		else
			function.start_line = (int64_t)field.value;
	}
	profile->functions.data[profile->functions.count++] = function;
	return end_of(decoder, &in, &shape);
}

static int add_sample_type(struct decoder *decoder, struct pb_reader in)
{
	struct pprof *profile = decoder->profile;

	if (!ROOM(decoder, &profile->sample_types, 1))
		return -ERR_LIMIT;
	return decode_value_type(decoder, in,
				 &profile->sample_types.data[profile->sample_types.count++]);
}

static int add_string(struct decoder *decoder, struct slice text)
{
	struct pprof *profile = decoder->profile;

	if (!ROOM(decoder, &profile->strings, 1))
		return -ERR_LIMIT;
	profile->strings.data[profile->strings.count++] = text;
	return 0;
}

static int add_comments(struct decoder *decoder, const struct pb_reader *in,
			const struct pb_field *field)
{
	struct pprof *profile = decoder->profile;

	if (!ROOM(decoder, &profile->comments, pb_numbers_count(field)))
		return -ERR_LIMIT;
	return decode_numbers(decoder, in, field, (uint64_t *)profile->comments.data,
			      &profile->comments.count);
}

/* A second time means that two profiles were glued together: their ids and strings would clash. */
static int set_time(struct decoder *decoder, int64_t time_nanos)
{
	if (decoder->profile->time_nanos)
		return err_set(
			decoder->err, ERR_INVALID,
			"decode Profile: concatenated profiles detected (a second time_nanos)");
	decoder->profile->time_nanos = time_nanos;
	return 0;
}

static bool plain_field(struct decoder *decoder, const struct pb_field *field)
{
	const uint8_t *at = (const uint8_t *)field->bytes.data, *end;

	if (!at) /* a number */
		return false;
	end = at + field->bytes.len;
	if (field->number == PROFILE_SAMPLE)
		return plain_sample(decoder, at, end);
	if (field->number == PROFILE_LOCATION)
		return plain_location(decoder, at, end);
	return field->number == PROFILE_FUNCTION && plain_function(decoder, at, end);
}

static int decode_field(struct decoder *decoder, const struct pb_reader *in,
			const struct pb_field *field)
{
	struct pprof *profile = decoder->profile;
	int64_t number = (int64_t)field->value;

	switch (field->number) {
	case PROFILE_SAMPLE_TYPE:
		return add_sample_type(decoder, pb_reader_into(in, field->bytes));
	case PROFILE_SAMPLE:
		return decode_sample(decoder, pb_reader_into(in, field->bytes));
	case PROFILE_MAPPING:
		return decode_mapping(decoder, pb_reader_into(in, field->bytes));
	case PROFILE_LOCATION:
		return decode_location(decoder, pb_reader_into(in, field->bytes));
	case PROFILE_FUNCTION:
		return decode_function(decoder, pb_reader_into(in, field->bytes));
	case PROFILE_STRING_TABLE:
		return add_string(decoder, field->bytes);
	case PROFILE_DROP_FRAMES:
		profile->drop_frames = number;
		return 0;
	case PROFILE_KEEP_FRAMES:
		profile->keep_frames = number;
		return 0;
	case PROFILE_TIME_NANOS:
		return set_time(decoder, number);
	case PROFILE_DURATION_NANOS:
		profile->duration_nanos = number;
		return 0;
	case PROFILE_PERIOD_TYPE:
		return decode_value_type(decoder, pb_reader_into(in, field->bytes),
					 &profile->period_type);
	case PROFILE_PERIOD:
		profile->period = number;
		return 0;
	case PROFILE_COMMENT:
		return add_comments(decoder, in, field);
	case PROFILE_DEFAULT_SAMPLE_TYPE:
		profile->default_sample_type = number;
		return 0;
	default:
		profile->doc_url = number;
		return 0;
	}
}

int pprof_decode(struct slice bytes, size_t elements_max, struct pprof *ret, struct err *err)
{
	static const struct pb_shape shape = {
		.name = "Profile",
		.varints = PB_BITS(PROFILE_DROP_FRAMES, PROFILE_DURATION_NANOS) |
			   PB_BITS(PROFILE_PERIOD, PROFILE_DOC_URL),
		.bytes = PB_BITS(PROFILE_SAMPLE_TYPE, PROFILE_STRING_TABLE) |
			 PB_BIT(PROFILE_PERIOD_TYPE) | PB_BIT(PROFILE_COMMENT),
	};
	struct decoder decoder = { .profile = ret, .budget = ret->budget, .err = err };
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;
	int status = 0;

	decoder.elements_max = elements_max < UINT32_MAX ? elements_max : UINT32_MAX;
	decoder.samples_max = ret->samples_max ? ret->samples_max : decoder.elements_max;
	decoder.plain_end = bytes.len > PB_PLAIN_BYTES ? in.end - PB_PLAIN_BYTES : in.at;
	pprof_clear(ret);
	while (!status && pb_next_known(&in, &shape, &field))
		if (!plain_field(&decoder, &field))
			status = decode_field(&decoder, &in, &field);
	return status ? status : end_of(&decoder, &in, &shape);
}

static void encode_value_type(struct strbuf *out, uint32_t field,
			      const struct pprof_value_type *type)
{
	size_t begun = pb_begin(out, field);

	pb_put_varint(out, VALUE_TYPE_TYPE, (uint64_t)type->type);
	pb_put_varint(out, VALUE_TYPE_UNIT, (uint64_t)type->unit);
	pb_end(out, begun);
}

static void encode_sample(struct strbuf *out, const struct pprof *profile,
			  const struct pprof_sample *sample)
{
	const uint64_t *values = (const uint64_t *)profile->values.data;
	size_t begun = pb_begin(out, PROFILE_SAMPLE);

	if (sample->location_count)
		pb_put_packed(out, SAMPLE_LOCATION_ID,
			      profile->location_ids.data + sample->location_first,
			      sample->location_count);
	if (sample->value_count)
		pb_put_packed(out, SAMPLE_VALUE, values + sample->value_first, sample->value_count);
	for (uint32_t i = 0; i < sample->label_count; i++) {
		const struct pprof_label *label = &profile->labels.data[sample->label_first + i];
		size_t label_begun = pb_begin(out, SAMPLE_LABEL);

		pb_put_varint(out, LABEL_KEY, (uint64_t)label->key);
		pb_put_varint(out, LABEL_STR, (uint64_t)label->str);
		pb_put_varint(out, LABEL_NUM, (uint64_t)label->num);
		pb_put_varint(out, LABEL_NUM_UNIT, (uint64_t)label->num_unit);
		pb_end(out, label_begun);
	}
	pb_end(out, begun);
}

static void encode_mapping(struct strbuf *out, const struct pprof_mapping *mapping)
{
	size_t begun = pb_begin(out, PROFILE_MAPPING);

	pb_put_varint(out, MAPPING_ID, mapping->id);
	pb_put_varint(out, MAPPING_MEMORY_START, mapping->memory_start);
	pb_put_varint(out, MAPPING_MEMORY_LIMIT, mapping->memory_limit);
	pb_put_varint(out, MAPPING_FILE_OFFSET, mapping->file_offset);
	pb_put_varint(out, MAPPING_FILENAME, (uint64_t)mapping->filename);
	pb_put_varint(out, MAPPING_BUILD_ID, (uint64_t)mapping->build_id);
	pb_put_varint(out, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
	pb_put_varint(out, MAPPING_HAS_FILENAMES, mapping->has_filenames);
	pb_put_varint(out, MAPPING_HAS_LINE_NUMBERS, mapping->has_line_numbers);
	pb_put_varint(out, MAPPING_HAS_INLINE_FRAMES, mapping->has_inline_frames);
	pb_end(out, begun);
}

static void encode_location(struct strbuf *out, const struct pprof *profile,
			    const struct pprof_location *location)
{
	size_t begun = pb_begin(out, PROFILE_LOCATION);

	pb_put_varint(out, LOCATION_ID, location->id);
	pb_put_varint(out, LOCATION_MAPPING_ID, location->mapping_id);
	pb_put_varint(out, LOCATION_ADDRESS, location->address);
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct pprof_line *line = &profile->lines.data[location->line_first + i];
		size_t line_begun = pb_begin(out, LOCATION_LINE);

		pb_put_varint(out, LINE_FUNCTION_ID, line->function_id);
		pb_put_varint(out, LINE_LINE, (uint64_t)line->line);
		pb_put_varint(out, LINE_COLUMN, (uint64_t)line->column);
		pb_end(out, line_begun);
	}
	pb_put_varint(out, LOCATION_IS_FOLDED, location->is_folded);
	pb_end(out, begun);
}

static void encode_function(struct strbuf *out, const struct pprof_function *function)
{
	size_t begun = pb_begin(out, PROFILE_FUNCTION);

	pb_put_varint(out, FUNCTION_ID, function->id);
	pb_put_varint(out, FUNCTION_NAME, (uint64_t)function->name);
	pb_put_varint(out, FUNCTION_SYSTEM_NAME, (uint64_t)function->system_name);
	pb_put_varint(out, FUNCTION_FILENAME, (uint64_t)function->filename);
	pb_put_varint(out, FUNCTION_START_LINE, (uint64_t)function->start_line);
	pb_end(out, begun);
}

static void encode_scalars(struct strbuf *out, const struct pprof *profile)
{
	pb_put_varint(out, PROFILE_DROP_FRAMES, (uint64_t)profile->drop_frames);
	pb_put_varint(out, PROFILE_KEEP_FRAMES, (uint64_t)profile->keep_frames);
	pb_put_varint(out, PROFILE_TIME_NANOS, (uint64_t)profile->time_nanos);
	pb_put_varint(out, PROFILE_DURATION_NANOS, (uint64_t)profile->duration_nanos);
	if (profile->period_type.type || profile->period_type.unit)
		encode_value_type(out, PROFILE_PERIOD_TYPE, &profile->period_type);
	pb_put_varint(out, PROFILE_PERIOD, (uint64_t)profile->period);
	pb_put_packed(out, PROFILE_COMMENT, (const uint64_t *)profile->comments.data,
		      profile->comments.count);
	pb_put_varint(out, PROFILE_DEFAULT_SAMPLE_TYPE, (uint64_t)profile->default_sample_type);
	pb_put_varint(out, PROFILE_DOC_URL, (uint64_t)profile->doc_url);
}

void pprof_encode(const struct pprof *profile, struct strbuf *out)
{
	for (size_t i = 0; i < profile->sample_types.count; i++)
		encode_value_type(out, PROFILE_SAMPLE_TYPE, &profile->sample_types.data[i]);
	for (size_t i = 0; i < profile->samples.count; i++)
		encode_sample(out, profile, &profile->samples.data[i]);
	for (size_t i = 0; i < profile->mappings.count; i++)
		encode_mapping(out, &profile->mappings.data[i]);
	for (size_t i = 0; i < profile->locations.count; i++)
		encode_location(out, profile, &profile->locations.data[i]);
	for (size_t i = 0; i < profile->functions.count; i++)
		encode_function(out, &profile->functions.data[i]);
	for (size_t i = 0; i < profile->strings.count; i++)
		pb_put_bytes_always(out, PROFILE_STRING_TABLE, profile->strings.data[i]);
	encode_scalars(out, profile);
}

struct pprof_builder {
	struct pprof *profile;
	struct budget *budget; /* the profile's, which may be freed first */
	struct arena texts;
	struct idmap map; /* over profile->strings */
	size_t paid_bytes;
	bool is_broke;
};

struct pprof_builder *pprof_builder_new(struct pprof *profile)
{
	struct pprof_builder *builder = mem_new(struct pprof_builder);

	builder->profile = profile;
	builder->budget = profile->budget;
	arena_init(&builder->texts, 0);
	pprof_builder_string(builder, SLICE_LITERAL(""));
	return builder;
}

void pprof_builder_free(struct pprof_builder *builder)
{
	if (!builder)
		return;
	budget_give(builder->budget, builder->paid_bytes);
	arena_free(&builder->texts);
	idmap_free(&builder->map);
	free(builder);
}

static bool string_equal(const void *context, uint32_t id, const void *key)
{
	const struct pprof *profile = context;

	return slice_equal(profile->strings.data[id], *(const struct slice *)key);
}

/* For a text, its places in the column and in the map. */
static bool pay_string(struct pprof_builder *builder, size_t len)
{
	struct pprof *profile = builder->profile;
	size_t bytes = len + IDMAP_ENTRY_BYTES_MAX + STRING_BYTES;

	if (builder->is_broke ||
	    !COLUMN_ROOM_PAID(&profile->strings, builder->budget, 1, IDMAP_NONE - 1) ||
	    !budget_take(builder->budget, bytes)) {
		builder->is_broke = true;
		return false;
	}
	builder->paid_bytes += bytes;
	return true;
}

bool pprof_builder_is_broke(const struct pprof_builder *builder)
{
	return builder->is_broke;
}

int64_t pprof_builder_string(struct pprof_builder *builder, struct slice text)
{
	struct pprof *profile = builder->profile;
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&builder->map, hash, string_equal, profile, &text);

	if (id != IDMAP_NONE)
		return id;
	if (!pay_string(builder, text.len))
		return 0;
	id = (uint32_t)profile->strings.count;
	profile->strings.data[profile->strings.count++] = arena_copy(&builder->texts, text);
	idmap_add(&builder->map, hash, id);
	return id;
}
