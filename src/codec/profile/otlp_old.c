/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_old - the dialects 1.5 and 1.7. Index 0 of their tables (but strings) is an entry like any
 * other, and absence is told by absence; since 1.8, entry 0 stands for absence. So such an entry
 * is put before their tables, and their indexes are shifted. The tables of a profile of 1.5 follow
 * those of the profile before it.
 */
#include "base/budget.h"
#include "codec/profile/otlp_int.h"

#define TYPES_MAX 64 /* of one profile */
#define NOWHERE INT64_MAX

/* Where a profile's tables begin in the columns, and how many entries each has. */
struct span {
	int64_t first, count;
};
struct tables_at {
	struct span strings, mappings, locations, functions, links, attributes;
};

/* The fields whose number depends on the dialect. */
static const struct old_layout {
	uint32_t places, time, duration, period_type, period, id, attributes;
	struct pb_shape shape;
} layouts[] = {
	[OTLP_1_5] = { 5,
		       11,
		       12,
		       13,
		       14,
		       17,
		       22,
		       { .name = "Profile",
			 .varints = PB_BIT(5) | PB_BITS(11, 12) | PB_BIT(14) | PB_BIT(22),
			 .bytes = PB_BITS(1, 10) | PB_BIT(13) | PB_BIT(17) | PB_BIT(22) } },
	[OTLP_1_7] = { 3,
		       4,
		       5,
		       6,
		       7,
		       10,
		       14,
		       { .name = "Profile",
			 .varints = PB_BITS(3, 5) | PB_BIT(7) | PB_BIT(14),
			 .bytes = PB_BITS(1, 3) | PB_BIT(6) | PB_BIT(10) | PB_BIT(14) } },
};

static const struct pb_shape sample_shape = { .name = "Sample",
					      .varints = PB_BITS(1, 6),
					      .bytes = PB_BITS(3, 4) | PB_BIT(6) };

/* The fields of one Profile but its samples and tables. */
struct old_profile {
	struct otlp_profile common;
	struct otlp_value_type types[TYPES_MAX];
	uint32_t types_count;
	struct otlp_run places; /* that samples take ranges of */
	struct tables_at at;
};

static int64_t shifted(struct span span, uint64_t index)
{
	return index < (uint64_t)span.count ? span.first + (int64_t)index : NOWHERE;
}

static int64_t shifted_string(const struct tables_at *at, int64_t index)
{
	return index ? shifted(at->strings, (uint64_t)index) : 0;
}

static void shift_run(struct otlp *request, const struct otlp_run *run, struct span span)
{
	for (uint32_t i = 0; i < run->count; i++) {
		uint64_t *number = &request->numbers.data[run->first + i];

		*number = (uint64_t)shifted(span, *number);
	}
}

/* Tables of a dictionary are all there is: what leads beyond them leads nowhere by itself. */
static const struct tables_at whole_dictionary = {
	.strings = { 0, INT32_MAX },
	.mappings = { 1, INT32_MAX },
	.locations = { 1, INT32_MAX },
	.functions = { 1, INT32_MAX },
	.links = { 1, INT32_MAX },
	.attributes = { 0, INT32_MAX },
};

int otlp_old_begin(struct otlp_decoder *decoder)
{
	struct otlp *request = decoder->request;

	if (!OTLP_ROOM(decoder, &request->mappings) || !OTLP_ROOM(decoder, &request->locations) ||
	    !OTLP_ROOM(decoder, &request->functions) || !OTLP_ROOM(decoder, &request->links) ||
	    !OTLP_ROOM(decoder, &request->stacks))
		return -ERR_LIMIT;
	request->mappings.data[request->mappings.count++] = (struct otlp_mapping){ 0 };
	request->locations.data[request->locations.count++] = (struct otlp_location){ 0 };
	request->functions.data[request->functions.count++] = (struct otlp_function){ 0 };
	request->links.data[request->links.count++] = (struct otlp_link){ 0 };
	request->stacks.data[request->stacks.count++] = (struct otlp_stack){ 0 };
	return request->dialect == OTLP_1_5 ? otlp_add_string(decoder, SLICE_LITERAL("")) : 0;
}

static int add_mapping(struct otlp_decoder *decoder, struct pb_reader in,
		       const struct tables_at *at)
{
	struct otlp *request = decoder->request;
	struct otlp_mapping *mapping;
	int status = otlp_add_mapping(decoder, in);

	if (status)
		return status;
	mapping = &request->mappings.data[request->mappings.count - 1];
	mapping->filename = shifted_string(at, mapping->filename);
	shift_run(request, &mapping->attributes, at->attributes);
	return 0;
}

static int add_line(struct otlp_decoder *decoder, struct pb_reader in, const struct tables_at *at)
{
	struct otlp *request = decoder->request;
	int status = otlp_add_line(decoder, in);
	struct otlp_line *line;

	if (status)
		return status;
	line = &request->lines.data[request->lines.count - 1];
	line->function = shifted(at->functions, (uint64_t)line->function);
	return 0;
}

static int add_location(struct otlp_decoder *decoder, struct pb_reader in,
			const struct tables_at *at)
{
	static const struct pb_shape shape = { .name = "Location",
					       .varints = PB_BITS(1, 2) | PB_BITS(4, 5),
					       .bytes = PB_BIT(3) | PB_BIT(5) };
	struct otlp *request = decoder->request;
	struct otlp_location location = { .line_first = (uint32_t)request->lines.count };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == 1)
			location.mapping = shifted(at->mappings, field.value);
		else if (field.number == 2)
			location.address = field.value;
		else if (field.number == 3)
			status = add_line(decoder, pb_reader_into(&in, field.bytes), at);
		else if (field.number == 5)
			status = otlp_add_numbers(decoder, &in, &field, &location.attributes);
	}
	if (status || !OTLP_ROOM(decoder, &request->locations))
		return status ? status : -ERR_LIMIT;
	shift_run(request, &location.attributes, at->attributes);
	location.line_count = (uint32_t)request->lines.count - location.line_first;
	request->locations.data[request->locations.count++] = location;
	return otlp_end_of(decoder, &in, &shape);
}

static int add_function(struct otlp_decoder *decoder, struct pb_reader in,
			const struct tables_at *at)
{
	struct otlp *request = decoder->request;
	struct otlp_function *function;
	int status = otlp_add_function(decoder, in);

	if (status)
		return status;
	function = &request->functions.data[request->functions.count - 1];
	function->name = shifted_string(at, function->name);
	function->system_name = shifted_string(at, function->system_name);
	function->filename = shifted_string(at, function->filename);
	return 0;
}

/* KeyValue with its key as text. */
static int add_attribute(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "KeyValue", .bytes = PB_BITS(1, 2) };
	struct otlp *request = decoder->request;
	struct otlp_attribute attribute = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_KEY_VALUE_KEY)
			attribute.key = field.bytes;
		else
			attribute.value = field.bytes;
	}
	if (!OTLP_ROOM(decoder, &request->attributes))
		return -ERR_LIMIT;
	request->attributes.data[request->attributes.count++] = attribute;
	return otlp_end_of(decoder, &in, &shape);
}

enum table { TABLE_MAPPING, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_KEY };

static int add_entry(struct otlp_decoder *decoder, enum table table, const struct pb_reader *outer,
		     struct slice bytes, const struct tables_at *at)
{
	struct pb_reader in = pb_reader_into(outer, bytes);

	switch (table) {
	case TABLE_MAPPING:
		return add_mapping(decoder, in, at);
	case TABLE_LOCATION:
		return add_location(decoder, in, at);
	case TABLE_FUNCTION:
		return add_function(decoder, in, at);
	case TABLE_LINK:
		return otlp_add_link(decoder, in);
	case TABLE_STRING:
		return otlp_add_string(decoder, bytes);
	default:
		return add_attribute(decoder, in);
	}
}

int otlp_old_dictionary(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "ProfilesDictionary",
					       .bytes = PB_BITS(1, 7) };
	static const enum table tables[] = {
		[1] = TABLE_MAPPING, [2] = TABLE_LOCATION, [3] = TABLE_FUNCTION,
		[4] = TABLE_LINK,    [5] = TABLE_STRING,   [6] = TABLE_KEY,
	};
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field))
		if (field.number != 7) /* units of attributes */
			status = add_entry(decoder, tables[field.number], &in, field.bytes,
					   &whole_dictionary);
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

/* The tables inside a Profile of 1.5: counted first, so that no index leads into another's. */
static int own_tables(struct otlp_decoder *decoder, struct pb_reader in, struct tables_at *ret)
{
	static const enum table tables[] = {
		[3] = TABLE_MAPPING, [4] = TABLE_LOCATION, [6] = TABLE_FUNCTION,
		[7] = TABLE_KEY,     [9] = TABLE_LINK,	   [10] = TABLE_STRING,
	};
	const struct pb_shape *shape = &layouts[OTLP_1_5].shape;
	const uint32_t known = PB_BITS(3, 4) | PB_BITS(6, 7) | PB_BITS(9, 10);
	const struct otlp *request = decoder->request;
	int64_t counts[sizeof(tables) / sizeof(tables[0])] = { 0 };
	struct pb_reader again = in;
	struct pb_field field;
	int status = 0;

	while (pb_next_known(&in, shape, &field))
		if (PB_BIT(field.number) & known)
			counts[field.number]++;
	*ret = (struct tables_at){
		.strings = { (int64_t)request->strings.count, counts[10] },
		.mappings = { (int64_t)request->mappings.count, counts[3] },
		.locations = { (int64_t)request->locations.count, counts[4] },
		.functions = { (int64_t)request->functions.count, counts[6] },
		.links = { (int64_t)request->links.count, counts[9] },
		.attributes = { (int64_t)request->attributes.count, counts[7] },
	};
	while (!status && pb_next_known(&again, shape, &field))
		if (PB_BIT(field.number) & known)
			status = add_entry(decoder, tables[field.number], &again, field.bytes, ret);
	return status ? status : otlp_end_of(decoder, &again, shape);
}

static int add_type(struct otlp_decoder *decoder, struct pb_reader in, struct old_profile *profile)
{
	struct otlp_value_type type;
	int status;

	if (profile->types_count == TYPES_MAX)
		return err_set(decoder->err, ERR_LIMIT,
			       "decode OTLP profiles: more than %d sample types", TYPES_MAX);
	status = otlp_decode_value_type(decoder, in, &type);
	type.type = shifted_string(&profile->at, type.type);
	type.unit = shifted_string(&profile->at, type.unit);
	profile->types[profile->types_count++] = type;
	return status;
}

static int read_fields(struct otlp_decoder *decoder, struct pb_reader in,
		       struct old_profile *profile)
{
	const struct old_layout *layout = &layouts[decoder->request->dialect];
	struct otlp_profile *common = &profile->common;
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &layout->shape, &field)) {
		struct pb_reader inner = pb_reader_into(&in, field.bytes);

		if (field.number == OTLP_PROFILE_SAMPLE_TYPE)
			status = add_type(decoder, inner, profile);
		else if (field.number == layout->places)
			status = otlp_add_numbers(decoder, &in, &field, &profile->places);
		else if (field.number == layout->time)
			common->time_unix_nano = field.value;
		else if (field.number == layout->duration)
			common->duration_nano = field.value;
		else if (field.number == layout->period_type)
			status = otlp_decode_value_type(decoder, inner, &common->period_type);
		else if (field.number == layout->period)
			common->period = (int64_t)field.value;
		else if (field.number == layout->id)
			common->profile_id = field.bytes;
		else if (field.number == layout->attributes)
			status = otlp_add_numbers(decoder, &in, &field, &common->attributes);
	}
	if (status)
		return status;
	common->period_type.type = shifted_string(&profile->at, common->period_type.type);
	common->period_type.unit = shifted_string(&profile->at, common->period_type.unit);
	shift_run(decoder->request, &profile->places, profile->at.locations);
	shift_run(decoder->request, &common->attributes, profile->at.attributes);
	return otlp_end_of(decoder, &in, &layout->shape);
}

/* The stack that is a range of the profile's places; one out of range leads nowhere. */
static int add_stack(struct otlp_decoder *decoder, const struct old_profile *profile,
		     uint64_t first, uint64_t count, int64_t *ret)
{
	struct otlp *request = decoder->request;
	struct otlp_stack stack = { .packed = SLICE_LITERAL("") };

	*ret = count ? NOWHERE : 0;
	if (!count || first > profile->places.count || count > profile->places.count - first)
		return 0;
	stack.apart.first = profile->places.first + (uint32_t)first;
	stack.apart.count = (uint32_t)count;
	if (!OTLP_ROOM(decoder, &request->stacks))
		return -ERR_LIMIT;
	*ret = (int64_t)request->stacks.count;
	request->stacks.data[request->stacks.count++] = stack;
	return 0;
}

/* The sample with all its values, as the last of the column. */
static int add_sample(struct otlp_decoder *decoder, struct pb_reader in,
		      const struct old_profile *profile)
{
	struct otlp *request = decoder->request;
	struct otlp_sample sample = { 0 };
	uint64_t first = 0, count = 0;
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &sample_shape, &field)) {
		if (field.number == 1)
			first = field.value;
		else if (field.number == 2)
			count = field.value;
		else if (field.number == 3)
			status = otlp_add_numbers(decoder, &in, &field, &sample.values);
		else if (field.number == 4)
			status = otlp_add_numbers(decoder, &in, &field, &sample.attributes);
		else if (field.number == 5)
			sample.link = shifted(profile->at.links, field.value);
		else
			status = otlp_add_numbers(decoder, &in, &field, &sample.timestamps);
	}
	if (!status)
		status = otlp_end_of(decoder, &in, &sample_shape);
	if (!status)
		status = add_stack(decoder, profile, first, count, &sample.stack);
	if (status || !OTLP_ROOM_UP_TO(decoder, &request->samples, decoder->samples_max))
		return status ? status : -ERR_LIMIT;
	shift_run(request, &sample.attributes, profile->at.attributes);
	request->samples.data[request->samples.count++] = sample;
	return 0;
}

static int add_samples(struct otlp_decoder *decoder, struct pb_reader in,
		       const struct old_profile *profile)
{
	const struct pb_shape *shape = &layouts[decoder->request->dialect].shape;
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, shape, &field))
		if (field.number == OTLP_PROFILE_SAMPLES)
			status = add_sample(decoder, pb_reader_into(&in, field.bytes), profile);
	return status;
}

/* The values of one type among those of the samples at `first`. */
static int split_off(struct otlp_decoder *decoder, const struct old_profile *profile,
		     uint32_t first, uint32_t count, uint32_t type)
{
	struct otlp *request = decoder->request;

	for (uint32_t i = 0; i < count; i++) {
		struct otlp_sample sample = request->samples.data[first + i];

		if (profile->types_count > 1 && sample.values.count) {
			if (sample.values.count != profile->types_count)
				return err_set(decoder->err, ERR_INVALID,
					       "decode OTLP profiles: sample %u has %u values, but "
					       "the profile has %u sample types",
					       i, sample.values.count, profile->types_count);
			sample.values.first += type;
			sample.values.count = 1;
		}
		if (!OTLP_ROOM_UP_TO(decoder, &request->samples, decoder->samples_max))
			return -ERR_LIMIT;
		request->samples.data[request->samples.count++] = sample;
	}
	return 0;
}

static int add_profile(struct otlp_decoder *decoder, const struct otlp_profile *profile)
{
	struct otlp *request = decoder->request;

	if (!OTLP_ROOM_UP_TO(decoder, &request->profiles, decoder->profiles_max))
		return -ERR_LIMIT;
	request->profiles.data[request->profiles.count++] = *profile;
	return 0;
}

int otlp_old_profile(struct otlp_decoder *decoder, struct pb_reader in, uint32_t scope)
{
	struct otlp *request = decoder->request;
	struct old_profile profile = { .common = { .scope = scope }, .at = whole_dictionary };
	uint32_t first, count;
	int status = 0;

	if (request->dialect == OTLP_1_5)
		status = own_tables(decoder, in, &profile.at);
	if (!status)
		status = read_fields(decoder, in, &profile);
	first = (uint32_t)request->samples.count;
	if (!status)
		status = add_samples(decoder, in, &profile);
	count = (uint32_t)request->samples.count - first;
	if (!status && profile.types_count < 2) {
		profile.common.sample_type = profile.types[0];
		profile.common.sample_first = first;
		profile.common.sample_count = count;
		return add_profile(decoder, &profile.common);
	}
	for (uint32_t type = 0; type < profile.types_count && !status; type++) {
		profile.common.sample_type = profile.types[type];
		profile.common.sample_first = (uint32_t)request->samples.count;
		profile.common.sample_count = count;
		status = split_off(decoder, &profile, first, count, type);
		if (!status)
			status = add_profile(decoder, &profile.common);
	}
	return status;
}
