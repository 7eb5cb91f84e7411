/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/otlp.h"

#include <stdlib.h>

#include "base/budget.h"
#include "codec/profile/otlp_dialect.h"
#include "codec/profile/otlp_int.h"

/* Where the dialects put the fields that moved. */
struct otlp_layout {
	uint32_t profile_id, profile_attributes;
	uint32_t sample_values, sample_attributes, sample_link;
};

static const struct otlp_layout layouts[OTLP_DIALECTS] = {
	[OTLP_1_8] = { 8, 12, 2, 3, 4 },
	[OTLP_1_9] = { 7, 11, 2, 3, 4 },
	[OTLP_1_10] = { OTLP_PROFILE_PROFILE_ID, OTLP_PROFILE_ATTRIBUTE_INDICES, OTLP_SAMPLE_VALUES,
			OTLP_SAMPLE_ATTRIBUTE_INDICES, OTLP_SAMPLE_LINK_INDEX },
};

void otlp_init(struct otlp *request)
{
	*request = (struct otlp){ 0 };
}

void otlp_free(struct otlp *request)
{
	COLUMN_FREE(&request->resources, request->budget);
	COLUMN_FREE(&request->scopes, request->budget);
	COLUMN_FREE(&request->profiles, request->budget);
	COLUMN_FREE(&request->samples, request->budget);
	COLUMN_FREE(&request->own_attributes, request->budget);
	COLUMN_FREE(&request->numbers, request->budget);
	COLUMN_FREE(&request->mappings, request->budget);
	COLUMN_FREE(&request->locations, request->budget);
	COLUMN_FREE(&request->lines, request->budget);
	COLUMN_FREE(&request->functions, request->budget);
	COLUMN_FREE(&request->strings, request->budget);
	COLUMN_FREE(&request->attributes, request->budget);
	COLUMN_FREE(&request->stacks, request->budget);
	COLUMN_FREE(&request->links, request->budget);
	request->stack_bytes = 0;
}

static void clear(struct otlp *request)
{
	request->resources.count = request->scopes.count = request->profiles.count = 0;
	request->samples.count = request->own_attributes.count = request->numbers.count = 0;
	request->mappings.count = request->locations.count = request->lines.count = 0;
	request->functions.count = request->strings.count = request->attributes.count = 0;
	request->stacks.count = request->links.count = 0;
	request->stack_bytes = 0;
}

int otlp_fail_limit(struct otlp_decoder *decoder, size_t elements_max)
{
	return err_set(decoder->err, ERR_LIMIT,
		       "decode OTLP profiles: more than %zu elements of a kind", elements_max);
}

int otlp_fail_memory(struct otlp_decoder *decoder, size_t bytes)
{
	return budget_fail(decoder->budget, bytes, "decode OTLP profiles", decoder->err);
}

int otlp_end_of(struct otlp_decoder *decoder, const struct pb_reader *in,
		const struct pb_shape *shape)
{
	return in->problem ? pb_fail(in, shape->name, decoder->err) : 0;
}

/*
 * Room for `more` numbers of a field, behind those that it has. All of one go to one run. A message
 * whose fields come in turns has its runs moved each time: as often as an encoder might, not as
 * often as somebody likes who wants a few bytes to become many.
 */
static int extend_run(struct otlp_decoder *decoder, size_t more, struct otlp_run *run)
{
	struct otlp *request = decoder->request;
	bool moves = run->count && run->first + run->count != request->numbers.count;
	size_t room = moves ? more + run->count : more;

	if (moves && run->count > decoder->moves_left)
		return err_set(
			decoder->err, ERR_LIMIT,
			"decode OTLP profiles: the numbers of a field come in too many pieces");
	if (!COLUMN_ROOM_PAID(&request->numbers, decoder->budget, room, decoder->elements_max))
		return request->numbers.count + room > decoder->elements_max
			       ? otlp_fail_limit(decoder, decoder->elements_max)
			       : otlp_fail_memory(decoder, room * sizeof(uint64_t));
	if (moves) {
		decoder->moves_left -= run->count;
		memcpy(request->numbers.data + request->numbers.count,
		       request->numbers.data + run->first, run->count * sizeof(uint64_t));
		run->first = (uint32_t)request->numbers.count;
		request->numbers.count += run->count;
	} else if (!run->count) {
		run->first = (uint32_t)request->numbers.count;
	}
	return 0;
}

/* A repeated number, packed (varints) or not. */
int otlp_add_numbers(struct otlp_decoder *decoder, const struct pb_reader *in,
		     const struct pb_field *field, struct otlp_run *run)
{
	struct otlp *request = decoder->request;
	int status = extend_run(decoder, pb_numbers_count(field), run);
	size_t added = 1;
	bool whole = true;

	if (status)
		return status;
	if (field->wire == PB_VARINT)
		request->numbers.data[request->numbers.count] = field->value;
	else if (field->bytes.len == 1 && (uint8_t)field->bytes.data[0] < 0x80)
		request->numbers.data[request->numbers.count] = (uint8_t)field->bytes.data[0];
	else
		added = pb_varints(field->bytes, request->numbers.data + request->numbers.count,
				   &whole);
	request->numbers.count += added;
	run->count += (uint32_t)added;
	return whole ? 0 : pb_fail_packed(in, "ExportProfilesServiceRequest", decoder->err);
}

/* A repeated number of eight bytes, packed or not. */
static int add_fixed_numbers(struct otlp_decoder *decoder, const struct pb_reader *in,
			     const struct pb_field *field, struct otlp_run *run)
{
	struct otlp *request = decoder->request;
	size_t count = field->wire == PB_BYTES ? field->bytes.len / sizeof(uint64_t) : 1;
	int status = extend_run(decoder, count ? count : 1, run);
	uint64_t *to;

	if (status)
		return status;
	to = request->numbers.data + request->numbers.count;
	if (field->wire == PB_BYTES)
		memcpy(to, field->bytes.data, count * sizeof(*to));
	else
		*to = field->value;
	request->numbers.count += count;
	run->count += (uint32_t)count;
	return field->wire == PB_BYTES && field->bytes.len % sizeof(uint64_t)
		       ? pb_fail_packed(in, "ExportProfilesServiceRequest", decoder->err)
		       : 0;
}

/* A number that may stand once per field; the last wins, as in protobuf. */
static int64_t number_of(const struct pb_field *field)
{
	return (int64_t)field->value;
}

int otlp_decode_value_type(struct otlp_decoder *decoder, struct pb_reader in,
			   struct otlp_value_type *ret)
{
	static const struct pb_shape shape = { .name = "ValueType", .varints = PB_BITS(1, 3) };
	struct pb_field field;

	*ret = (struct otlp_value_type){ 0 };
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_VALUE_TYPE_TYPE)
			ret->type = number_of(&field);
		else if (field.number == OTLP_VALUE_TYPE_UNIT)
			ret->unit = number_of(&field);
		else
			ret->temporality = field.value;
	}
	return otlp_end_of(decoder, &in, &shape);
}

/*
 * Samples, locations and stacks are nearly all that a request has, and senders write each in one
 * way: fields in order, none twice. These are read with all that is known of them in registers,
 * and written once. False: it is not one of these, and nothing has changed.
 */
/* The numbers of a packed field, whose length stands at `at`; the place behind them, or NULL. */
static const uint8_t *plain_numbers(struct otlp_decoder *decoder, const uint8_t *at,
				    const uint8_t *end, struct otlp_run *run)
{
	struct otlp *request = decoder->request;
	size_t len = *at++, added = 1;
	bool whole = true;

	if (at > end || len >= 0x80 || len > (size_t)(end - at) || run->count ||
	    !COLUMN_ROOM_PAID(&request->numbers, decoder->budget, len + 1, decoder->elements_max))
		return NULL;
	if (len == 1 && *at < 0x80)
		request->numbers.data[request->numbers.count] = *at;
	else
		added = pb_varints(slice_from(at, len),
				   request->numbers.data + request->numbers.count, &whole);
	run->first = (uint32_t)request->numbers.count;
	run->count = (uint32_t)added;
	request->numbers.count += added;
	return whole ? at + len : NULL;
}

static const uint8_t *plain_times(struct otlp_decoder *decoder, const uint8_t *at,
				  const uint8_t *end, struct otlp_run *run)
{
	struct otlp *request = decoder->request;
	size_t len = *at++, count = len / sizeof(uint64_t);

	if (at > end || len >= 0x80 || len > (size_t)(end - at) || len % sizeof(uint64_t) ||
	    run->count ||
	    !COLUMN_ROOM_PAID(&request->numbers, decoder->budget, count + 1, decoder->elements_max))
		return NULL;
	memcpy(request->numbers.data + request->numbers.count, at, len);
	run->first = (uint32_t)request->numbers.count;
	run->count = (uint32_t)count;
	request->numbers.count += count;
	return at + len;
}

static bool plain_sample(struct otlp_decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	const struct otlp_layout *layout = decoder->layout;
	struct otlp *request = decoder->request;
	struct otlp_run values = { 0 }, attributes = { 0 }, times = { 0 };
	size_t numbers = request->numbers.count;
	struct otlp_sample *to;
	uint64_t stack = 0;

	if (end > decoder->plain_end ||
	    !COLUMN_ROOM_PAID(&request->samples, decoder->budget, 1, decoder->samples_max))
		return false;
	if (at < end && *at == PB_TAG(OTLP_SAMPLE_STACK_INDEX, PB_VARINT))
		at = pb_plain_varint(at + 1, &stack);
	while (at && at < end) {
		uint8_t tag = *at++;

		if (tag == PB_TAG(layout->sample_values, PB_BYTES))
			at = plain_numbers(decoder, at, end, &values);
		else if (tag == PB_TAG(layout->sample_attributes, PB_BYTES))
			at = plain_numbers(decoder, at, end, &attributes);
		else if (tag == PB_TAG(OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO, PB_BYTES))
			at = plain_times(decoder, at, end, &times);
		else
			at = NULL;
	}
	if (at != end) {
		request->numbers.count = numbers;
		return false;
	}
	to = &request->samples.data[request->samples.count++];
	to->stack = (int64_t)stack;
	to->link = 0;
	to->attributes = attributes;
	to->values = values;
	to->timestamps = times;
	return true;
}

static int decode_sample(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Sample",
					       .varints = PB_BITS(1, 4),
					       .bytes = PB_BITS(2, 5),
					       .fixed64s = PB_BIT(5) };
	const struct otlp_layout *layout = decoder->layout;
	struct otlp *request = decoder->request;
	struct otlp_sample sample = { 0 };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		uint32_t number = field.number;

		if (number == layout->sample_values)
			status = otlp_add_numbers(decoder, &in, &field, &sample.values);
		else if (number == layout->sample_attributes)
			status = otlp_add_numbers(decoder, &in, &field, &sample.attributes);
		else if (number == OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO)
			status = add_fixed_numbers(decoder, &in, &field, &sample.timestamps);
		else if (number == OTLP_SAMPLE_STACK_INDEX)
			sample.stack = number_of(&field);
		else
			sample.link = number_of(&field);
	}
	if (status || !OTLP_ROOM_UP_TO(decoder, &request->samples, decoder->samples_max))
		return status ? status : -ERR_LIMIT;
	request->samples.data[request->samples.count++] = sample;
	return otlp_end_of(decoder, &in, &shape);
}

static int profile_field(struct otlp_decoder *decoder, const struct pb_reader *in,
			 const struct pb_field *field, struct otlp_profile *profile)
{
	struct pb_reader inner = pb_reader_into(in, field->bytes);

	if (field->number == decoder->layout->profile_id && field->wire == PB_BYTES)
		profile->profile_id = field->bytes;
	else if (field->number == decoder->layout->profile_attributes)
		return otlp_add_numbers(decoder, in, field, &profile->attributes);
	switch (field->number) {
	case OTLP_PROFILE_SAMPLE_TYPE:
		return otlp_decode_value_type(decoder, inner, &profile->sample_type);
	case OTLP_PROFILE_SAMPLES:
		return decode_sample(decoder, inner);
	case OTLP_PROFILE_TIME_UNIX_NANO:
		profile->time_unix_nano = field->value;
		return 0;
	case OTLP_PROFILE_DURATION_NANO:
		profile->duration_nano = field->value;
		return 0;
	case OTLP_PROFILE_PERIOD_TYPE:
		return otlp_decode_value_type(decoder, inner, &profile->period_type);
	case OTLP_PROFILE_PERIOD:
		profile->period = number_of(field);
		return 0;
	default:
		return 0; /* dropped counts, comments, the original payload */
	}
}

static int decode_profile(struct otlp_decoder *decoder, struct pb_reader in, uint32_t scope)
{
	static const struct pb_shape shape = {
		.name = "Profile",
		.varints = PB_BIT(4) | PB_BITS(6, 9) | PB_BITS(11, 12),
		.bytes = PB_BITS(1, 2) | PB_BIT(5) | PB_BITS(7, 12),
		.fixed64s = PB_BIT(OTLP_PROFILE_TIME_UNIX_NANO),
	};
	struct otlp *request = decoder->request;
	struct otlp_profile profile = { .scope = scope,
					.sample_first = (uint32_t)request->samples.count };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		const uint8_t *at = (const uint8_t *)field.bytes.data;

		if (field.number != OTLP_PROFILE_SAMPLES ||
		    !plain_sample(decoder, at, at + field.bytes.len))
			status = profile_field(decoder, &in, &field, &profile);
	}
	if (status || !OTLP_ROOM_UP_TO(decoder, &request->profiles, decoder->profiles_max))
		return status ? status : -ERR_LIMIT;
	profile.sample_count = (uint32_t)request->samples.count - profile.sample_first;
	request->profiles.data[request->profiles.count++] = profile;
	return otlp_end_of(decoder, &in, &shape);
}

/* KeyValue of resources and scopes. */
static int add_own_attribute(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "KeyValue",
					       .varints = PB_BIT(OTLP_KEY_VALUE_KEY_STRINDEX),
					       .bytes = PB_BITS(1, 2) };
	struct otlp *request = decoder->request;
	struct otlp_attribute attribute = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_KEY_VALUE_KEY)
			attribute.key = field.bytes;
		else if (field.number == OTLP_KEY_VALUE_VALUE)
			attribute.value = field.bytes;
		else
			attribute.key_index = number_of(&field);
	}
	if (!OTLP_ROOM(decoder, &request->own_attributes))
		return -ERR_LIMIT;
	request->own_attributes.data[request->own_attributes.count++] = attribute;
	return otlp_end_of(decoder, &in, &shape);
}

static int decode_resource(struct otlp_decoder *decoder, struct pb_reader in,
			   struct otlp_resource *resource)
{
	static const struct pb_shape shape = { .name = "Resource",
					       .bytes = PB_BIT(OTLP_RESOURCE_ATTRIBUTES) };
	struct otlp *request = decoder->request;
	struct pb_field field;
	int status = 0;

	resource->bytes = slice_from(in.at, (size_t)(in.end - in.at));
	resource->attribute_first = (uint32_t)request->own_attributes.count;
	while (!status && pb_next_known(&in, &shape, &field))
		status = add_own_attribute(decoder, pb_reader_into(&in, field.bytes));
	resource->attribute_count =
		(uint32_t)request->own_attributes.count - resource->attribute_first;
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

static int decode_scope(struct otlp_decoder *decoder, struct pb_reader in, struct otlp_scope *scope)
{
	static const struct pb_shape shape = { .name = "InstrumentationScope",
					       .bytes = PB_BITS(1, 3) };
	struct otlp *request = decoder->request;
	struct pb_field field;
	int status = 0;

	scope->attribute_first = (uint32_t)request->own_attributes.count;
	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_SCOPE_NAME)
			scope->name = field.bytes;
		else if (field.number == OTLP_SCOPE_ATTRIBUTES)
			status = add_own_attribute(decoder, pb_reader_into(&in, field.bytes));
	}
	scope->attribute_count = (uint32_t)request->own_attributes.count - scope->attribute_first;
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

/* The scope may follow its profiles on the wire, so its place is taken first. */
static int decode_scope_profiles(struct otlp_decoder *decoder, struct pb_reader in,
				 uint32_t resource)
{
	static const struct pb_shape shape = { .name = "ScopeProfiles", .bytes = PB_BITS(1, 2) };
	struct otlp *request = decoder->request;
	uint32_t id = (uint32_t)request->scopes.count;
	struct pb_field field;
	int status = 0;

	if (!OTLP_ROOM(decoder, &request->scopes))
		return -ERR_LIMIT;
	request->scopes.data[request->scopes.count++] = (struct otlp_scope){ .resource = resource };
	while (!status && pb_next_known(&in, &shape, &field)) {
		struct pb_reader inner = pb_reader_into(&in, field.bytes);

		if (field.number == OTLP_SCOPE_PROFILES_SCOPE)
			status = decode_scope(decoder, inner, &request->scopes.data[id]);
		else if (request->dialect < OTLP_1_8)
			status = otlp_old_profile(decoder, inner, id);
		else
			status = decode_profile(decoder, inner, id);
	}
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

static int decode_resource_profiles(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "ResourceProfiles", .bytes = PB_BITS(1, 2) };
	struct otlp *request = decoder->request;
	uint32_t id = (uint32_t)request->resources.count;
	struct pb_field field;
	int status = 0;

	if (!OTLP_ROOM(decoder, &request->resources))
		return -ERR_LIMIT;
	request->resources.data[request->resources.count++] = (struct otlp_resource){ 0 };
	while (!status && pb_next_known(&in, &shape, &field)) {
		struct pb_reader inner = pb_reader_into(&in, field.bytes);

		if (field.number == OTLP_RESOURCE_PROFILES_RESOURCE)
			status = decode_resource(decoder, inner, &request->resources.data[id]);
		else
			status = decode_scope_profiles(decoder, inner, id);
	}
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

int otlp_add_mapping(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Mapping",
					       .varints = PB_BITS(1, 5),
					       .bytes = PB_BIT(OTLP_MAPPING_ATTRIBUTE_INDICES) };
	struct otlp *request = decoder->request;
	struct otlp_mapping mapping = { 0 };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_MAPPING_MEMORY_START)
			mapping.memory_start = field.value;
		else if (field.number == OTLP_MAPPING_MEMORY_LIMIT)
			mapping.memory_limit = field.value;
		else if (field.number == OTLP_MAPPING_FILE_OFFSET)
			mapping.file_offset = field.value;
		else if (field.number == OTLP_MAPPING_FILENAME)
			mapping.filename = number_of(&field);
		else
			status = otlp_add_numbers(decoder, &in, &field, &mapping.attributes);
	}
	if (status || !OTLP_ROOM(decoder, &request->mappings))
		return status ? status : -ERR_LIMIT;
	request->mappings.data[request->mappings.count++] = mapping;
	return otlp_end_of(decoder, &in, &shape);
}

int otlp_add_line(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Line", .varints = PB_BITS(1, 3) };
	struct otlp *request = decoder->request;
	struct otlp_line line = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_LINE_FUNCTION_INDEX)
			line.function = number_of(&field);
		else if (field.number == OTLP_LINE_LINE)
			line.line = number_of(&field);
		else
			line.column = number_of(&field);
	}
	if (!OTLP_ROOM(decoder, &request->lines))
		return -ERR_LIMIT;
	request->lines.data[request->lines.count++] = line;
	return otlp_end_of(decoder, &in, &shape);
}

/* Without lines, and with one attribute at most. */
static bool plain_location(struct otlp_decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	struct otlp *request = decoder->request;
	uint64_t mapping = 0, address = 0;
	struct otlp_run attributes = { 0 };
	size_t numbers = request->numbers.count;
	struct otlp_location *to;

	if (end > decoder->plain_end ||
	    !COLUMN_ROOM_PAID(&request->locations, decoder->budget, 1, decoder->elements_max))
		return false;
	if (at < end && *at == PB_TAG(OTLP_LOCATION_MAPPING_INDEX, PB_VARINT))
		at = pb_plain_varint(at + 1, &mapping);
	if (at && at < end && *at == PB_TAG(OTLP_LOCATION_ADDRESS, PB_VARINT))
		at = pb_plain_varint(at + 1, &address);
	if (at && at < end && *at == PB_TAG(OTLP_LOCATION_ATTRIBUTE_INDICES, PB_BYTES))
		at = plain_numbers(decoder, at + 1, end, &attributes);
	if (at != end) {
		request->numbers.count = numbers;
		return false;
	}
	to = &request->locations.data[request->locations.count++];
	to->mapping = (int64_t)mapping;
	to->address = address;
	to->line_first = (uint32_t)request->lines.count;
	to->line_count = 0;
	to->attributes = attributes;
	return true;
}

static int add_location(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = {
		.name = "Location",
		.varints = PB_BITS(1, 2) | PB_BIT(OTLP_LOCATION_ATTRIBUTE_INDICES),
		.bytes = PB_BITS(OTLP_LOCATION_LINES, OTLP_LOCATION_ATTRIBUTE_INDICES),
	};
	struct otlp *request = decoder->request;
	struct otlp_location location = { .line_first = (uint32_t)request->lines.count };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_LOCATION_MAPPING_INDEX)
			location.mapping = number_of(&field);
		else if (field.number == OTLP_LOCATION_ADDRESS)
			location.address = field.value;
		else if (field.number == OTLP_LOCATION_LINES)
			status = otlp_add_line(decoder, pb_reader_into(&in, field.bytes));
		else
			status = otlp_add_numbers(decoder, &in, &field, &location.attributes);
	}
	if (status || !OTLP_ROOM(decoder, &request->locations))
		return status ? status : -ERR_LIMIT;
	location.line_count = (uint32_t)request->lines.count - location.line_first;
	request->locations.data[request->locations.count++] = location;
	return otlp_end_of(decoder, &in, &shape);
}

int otlp_add_function(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Function", .varints = PB_BITS(1, 4) };
	struct otlp *request = decoder->request;
	struct otlp_function function = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_FUNCTION_NAME)
			function.name = number_of(&field);
		else if (field.number == OTLP_FUNCTION_SYSTEM_NAME)
			function.system_name = number_of(&field);
		else if (field.number == OTLP_FUNCTION_FILENAME)
			function.filename = number_of(&field);
		else
			function.start_line = number_of(&field);
	}
	if (!OTLP_ROOM(decoder, &request->functions))
		return -ERR_LIMIT;
	request->functions.data[request->functions.count++] = function;
	return otlp_end_of(decoder, &in, &shape);
}

/* KeyValueAndUnit of the dictionary. */
static int add_attribute(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "KeyValueAndUnit",
					       .varints = PB_BIT(OTLP_ATTRIBUTE_KEY) |
							  PB_BIT(OTLP_ATTRIBUTE_UNIT),
					       .bytes = PB_BIT(OTLP_ATTRIBUTE_VALUE) };
	struct otlp *request = decoder->request;
	struct otlp_attribute attribute = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_ATTRIBUTE_KEY)
			attribute.key_index = number_of(&field);
		else if (field.number == OTLP_ATTRIBUTE_VALUE)
			attribute.value = field.bytes;
		else
			attribute.unit_index = number_of(&field);
	}
	if (!OTLP_ROOM(decoder, &request->attributes))
		return -ERR_LIMIT;
	request->attributes.data[request->attributes.count++] = attribute;
	return otlp_end_of(decoder, &in, &shape);
}

/* The one field that encoders write stays as it is; with further ones, all become numbers. */
static int add_places(struct otlp_decoder *decoder, const struct pb_reader *in,
		      const struct pb_field *field, struct otlp_stack *stack)
{
	struct pb_field before = { .wire = PB_BYTES, .bytes = stack->packed };
	int status;

	if (field->wire == PB_BYTES && !stack->packed.len && !stack->apart.count) {
		stack->packed = field->bytes;
		return 0;
	}
	stack->packed = SLICE_LITERAL("");
	status = before.bytes.len ? otlp_add_numbers(decoder, in, &before, &stack->apart) : 0;
	return status ? status : otlp_add_numbers(decoder, in, field, &stack->apart);
}

static bool plain_stack(struct otlp_decoder *decoder, const uint8_t *at, const uint8_t *end)
{
	struct otlp *request = decoder->request;
	struct otlp_stack *to;
	uint64_t len;

	if (end > decoder->plain_end || end - at < 3 || end[-1] >= 0x80 ||
	    *at != PB_TAG(OTLP_STACK_LOCATION_INDICES, PB_BYTES) ||
	    !COLUMN_ROOM_PAID(&request->stacks, decoder->budget, 1, decoder->elements_max))
		return false;
	at = pb_plain_varint(at + 1, &len);
	if (!at || !len || len != (uint64_t)(end - at))
		return false;
	to = &request->stacks.data[request->stacks.count++];
	to->packed.data = (const char *)at;
	to->packed.len = len;
	to->apart = (struct otlp_run){ 0 };
	request->stack_bytes += len;
	return true;
}

static int add_stack(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Stack",
					       .varints = PB_BIT(OTLP_STACK_LOCATION_INDICES),
					       .bytes = PB_BIT(OTLP_STACK_LOCATION_INDICES) };
	struct otlp *request = decoder->request;
	struct otlp_stack stack = { 0 };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field))
		status = add_places(decoder, &in, &field, &stack);
	if (!status && stack.packed.len && stack.packed.data[stack.packed.len - 1] & 0x80)
		return pb_fail_packed(&in, "ExportProfilesServiceRequest", decoder->err);
	if (status || !OTLP_ROOM(decoder, &request->stacks))
		return status ? status : -ERR_LIMIT;
	request->stacks.data[request->stacks.count++] = stack;
	request->stack_bytes += stack.packed.len;
	return otlp_end_of(decoder, &in, &shape);
}

int otlp_add_string(struct otlp_decoder *decoder, struct slice text)
{
	struct otlp *request = decoder->request;

	if (!OTLP_ROOM(decoder, &request->strings))
		return -ERR_LIMIT;
	request->strings.data[request->strings.count++] = text;
	return 0;
}

int otlp_add_link(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "Link", .bytes = PB_BITS(1, 2) };
	struct otlp *request = decoder->request;
	struct otlp_link link = { 0 };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_LINK_TRACE_ID)
			link.trace_id = field.bytes;
		else
			link.span_id = field.bytes;
	}
	if (!OTLP_ROOM(decoder, &request->links))
		return -ERR_LIMIT;
	request->links.data[request->links.count++] = link;
	return otlp_end_of(decoder, &in, &shape);
}

static bool plain_entry(struct otlp_decoder *decoder, const struct pb_field *field)
{
	const uint8_t *at = (const uint8_t *)field->bytes.data, *end = at + field->bytes.len;

	if (field->number == OTLP_DICTIONARY_LOCATION_TABLE)
		return plain_location(decoder, at, end);
	return field->number == OTLP_DICTIONARY_STACK_TABLE && plain_stack(decoder, at, end);
}

static int decode_dictionary(struct otlp_decoder *decoder, struct pb_reader in)
{
	static const struct pb_shape shape = { .name = "ProfilesDictionary",
					       .bytes = PB_BITS(1, 7) };
	struct pb_field field;
	int status = 0;

	while (!status && pb_next_known(&in, &shape, &field)) {
		struct pb_reader inner;

		if (plain_entry(decoder, &field))
			continue;
		inner = pb_reader_into(&in, field.bytes);
		if (field.number == OTLP_DICTIONARY_MAPPING_TABLE)
			status = otlp_add_mapping(decoder, inner);
		else if (field.number == OTLP_DICTIONARY_LOCATION_TABLE)
			status = add_location(decoder, inner);
		else if (field.number == OTLP_DICTIONARY_FUNCTION_TABLE)
			status = otlp_add_function(decoder, inner);
		else if (field.number == OTLP_DICTIONARY_STRING_TABLE)
			status = otlp_add_string(decoder, field.bytes);
		else if (field.number == OTLP_DICTIONARY_ATTRIBUTE_TABLE)
			status = add_attribute(decoder, inner);
		else if (field.number == OTLP_DICTIONARY_STACK_TABLE)
			status = add_stack(decoder, inner);
		else
			status = otlp_add_link(decoder, inner);
	}
	return status ? status : otlp_end_of(decoder, &in, &shape);
}

int otlp_decode(struct slice bytes, size_t elements_max, struct otlp *ret, struct err *err)
{
	static const struct pb_shape shape = { .name = "ExportProfilesServiceRequest",
					       .bytes = PB_BITS(1, 2) };
	struct otlp_decoder decoder = { .request = ret, .budget = ret->budget, .err = err };
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;
	int status;

	clear(ret);
	status = otlp_dialect_detect(bytes, &ret->dialect, err);
	decoder.layout = &layouts[ret->dialect];
	decoder.plain_end = bytes.len > PB_PLAIN_BYTES ? in.end - PB_PLAIN_BYTES : in.at;
	decoder.elements_max = elements_max < UINT32_MAX ? elements_max : UINT32_MAX;
	decoder.samples_max = ret->samples_max ? ret->samples_max : decoder.elements_max;
	decoder.profiles_max = ret->profiles_max ? ret->profiles_max : decoder.elements_max;
	decoder.moves_left = bytes.len;
	if (!status && ret->dialect < OTLP_1_8)
		status = otlp_old_begin(&decoder);
	while (!status && pb_next_known(&in, &shape, &field)) {
		struct pb_reader inner = pb_reader_into(&in, field.bytes);

		if (field.number == OTLP_REQUEST_RESOURCE_PROFILES)
			status = decode_resource_profiles(&decoder, inner);
		else if (ret->dialect < OTLP_1_8)
			status = otlp_old_dictionary(&decoder, inner);
		else
			status = decode_dictionary(&decoder, inner);
	}
	return status ? status : otlp_end_of(&decoder, &in, &shape);
}

struct slice otlp_string(const struct otlp *request, int64_t index, bool *ret_dangling)
{
	if (index >= 0 && (uint64_t)index < request->strings.count)
		return request->strings.data[index];
	*ret_dangling = true;
	return SLICE_LITERAL("");
}

int otlp_any_decode(const struct otlp *request, struct slice bytes, struct otlp_any *ret,
		    struct err *err)
{
	static const struct pb_shape shape = {
		.name = "AnyValue",
		.varints = PB_BITS(OTLP_ANY_BOOL, OTLP_ANY_INT) | PB_BIT(OTLP_ANY_STRING_STRINDEX),
		.bytes = PB_BIT(OTLP_ANY_STRING) | PB_BITS(OTLP_ANY_ARRAY, OTLP_ANY_BYTES),
		.fixed64s = PB_BIT(OTLP_ANY_DOUBLE),
	};
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;

	*ret = (struct otlp_any){ 0 };
	while (pb_next_known(&in, &shape, &field)) {
		*ret = (struct otlp_any){ .bytes = field.bytes, .number = number_of(&field) };
		if (field.number == OTLP_ANY_STRING_STRINDEX) {
			ret->type = OTLP_TYPE_STRING;
			ret->bytes = otlp_string(request, ret->number, &ret->dangling);
			ret->number = 0;
		} else {
			ret->type = (enum otlp_any_type)field.number; /* one order */
		}
		if (ret->type == OTLP_TYPE_DOUBLE)
			memcpy(&ret->real, &field.value, sizeof(ret->real));
	}
	return in.problem ? pb_fail(&in, shape.name, err) : 0;
}
