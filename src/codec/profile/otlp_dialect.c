/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/otlp_dialect.h"

#include "codec/wire/pb.h"

/* Numbers of a sample compared for repetition; a sample with more has no attributes there. */
#define ATTRIBUTES_COMPARED_MAX 64
/* A sender does not change its mind: behind so many samples that told, more are not looked at. */
#define SAMPLES_THAT_TELL 64

/*
 * The two readings of Sample: {stack, values, attributes, link, times} up to 1.9, and {stack,
 * attributes, link, values, times} since.
 */
enum reading { READING_OLD, READING_NEW, READINGS };
#define SAMPLE_TIMES 5u

static const struct {
	uint32_t values, attributes, link; /* field numbers */
} readings[READINGS] = { [READING_OLD] = { 2, 3, 4 }, [READING_NEW] = { 4, 2, 3 } };

/* What speaks against a reading, the strongest first. */
enum objection {
	LINK_MANY,	/* the link is packed, or stands twice in a sample */
	SAMPLE_VOID,	/* a sample has neither values nor times */
	LENGTHS_DIFFER, /* of values and times of a sample, when it has both */
	INDEX_WRONG,	/* attributes that repeat in a sample or lead nowhere; such a link */
	WIRE_ODD,	/* the link is a number where the values come packed, or so it seems */
	OBJECTIONS
};

/* One field of a sample, taken as a set of numbers, whether it came packed or not. */
struct numbers {
	size_t count;
	bool packed, plain, repeats;
	uint64_t min, max;
	uint64_t seen[ATTRIBUTES_COMPARED_MAX];
};

struct marks {
	bool dictionary, profiles;
	bool before_1_8; /* Profile laid out as in 1.7 */
	bool own_tables; /* Profile laid out as in 1.5 */
	bool profile_1_8, profile_1_9;
	bool objections[READINGS][OBJECTIONS];
	uint64_t attribute_max[READINGS], link_max[READINGS];
	uint32_t samples; /* looked at */
};

/* Like pb_next, for walking: the nested message or packed numbers that the field holds. */
static struct pb_reader within(const struct pb_reader *in, const struct pb_field *field)
{
	return pb_reader_into(in, field->bytes);
}

static void see_number(struct numbers *numbers, uint64_t number)
{
	size_t count = numbers->count++;

	if (!count || number < numbers->min)
		numbers->min = number;
	if (!count || number > numbers->max)
		numbers->max = number;
	if (count >= ATTRIBUTES_COMPARED_MAX) {
		numbers->repeats = true;
		return;
	}
	for (size_t i = 0; i < count && !numbers->repeats; i++)
		numbers->repeats = numbers->seen[i] == number;
	numbers->seen[count] = number;
}

static void see_field(struct numbers *numbers, const struct pb_reader *in,
		      const struct pb_field *field)
{
	struct pb_reader packed = within(in, field);
	uint64_t number;

	if (field->wire == PB_VARINT) {
		numbers->plain = true;
		see_number(numbers, field->value);
	} else if (field->wire == PB_BYTES) {
		numbers->packed = true;
		while (pb_varint(&packed, &number))
			see_number(numbers, number);
	}
}

/* `fields` are of a sample, by number; `times` is how many it has. */
static void try_reading(struct marks *marks, enum reading reading, const struct numbers *fields,
			size_t times)
{
	const struct numbers *values = &fields[readings[reading].values];
	const struct numbers *attributes = &fields[readings[reading].attributes];
	const struct numbers *link = &fields[readings[reading].link];
	bool *objections = marks->objections[reading];

	objections[LINK_MANY] |= link->packed || link->count > 1;
	objections[SAMPLE_VOID] |= !values->count && !times;
	objections[LENGTHS_DIFFER] |= values->count && times && values->count != times;
	objections[INDEX_WRONG] |= attributes->count && (attributes->repeats || !attributes->min);
	objections[WIRE_ODD] |= values->plain || attributes->plain;
	if (attributes->count && attributes->max > marks->attribute_max[reading])
		marks->attribute_max[reading] = attributes->max;
	if (link->count && link->max > marks->link_max[reading])
		marks->link_max[reading] = link->max;
}

static int scan_sample(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct numbers fields[SAMPLE_TIMES];
	struct pb_field field;
	size_t times = 0;

	for (size_t i = 0; i < SAMPLE_TIMES; i++) {
		fields[i].count = 0;
		fields[i].packed = fields[i].plain = fields[i].repeats = false;
	}
	while (pb_next(&in, &field)) {
		if (field.number > 1 && field.number < SAMPLE_TIMES)
			see_field(&fields[field.number], &in, &field);
		else if (field.number == SAMPLE_TIMES)
			times += field.wire == PB_BYTES ? field.bytes.len / sizeof(uint64_t) : 1;
		else if (field.number == 6)
			marks->before_1_8 = true;
	}
	if (in.problem)
		return pb_fail(&in, "Sample", err);
	marks->samples++;
	try_reading(marks, READING_OLD, fields, times);
	try_reading(marks, READING_NEW, fields, times);
	return 0;
}

static int scan_sample_type(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct pb_field field;

	while (pb_next(&in, &field))
		marks->profile_1_8 |= field.number == OTLP_VALUE_TYPE_TEMPORALITY;
	return in.problem ? pb_fail(&in, "ValueType", err) : 0;
}

/* Only what the samples say by themselves: the tables may come behind them. */
static bool have_told(const struct marks *marks)
{
	return marks->samples >= SAMPLES_THAT_TELL &&
	       marks->objections[READING_OLD][LINK_MANY] !=
		       marks->objections[READING_NEW][LINK_MANY];
}

static int scan_profile(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct pb_field field;
	int status = 0;

	marks->profiles = true;
	while (!status && pb_next(&in, &field)) {
		bool is_bytes = field.wire == PB_BYTES, is_varint = field.wire == PB_VARINT;
		bool is_id = is_bytes && field.bytes.len == 16;
		uint32_t number = field.number;

		if (number == OTLP_PROFILE_SAMPLE_TYPE && is_bytes)
			status = scan_sample_type(marks, within(&in, &field), err);
		else if (number == OTLP_PROFILE_SAMPLES && is_bytes && !have_told(marks))
			status = scan_sample(marks, within(&in, &field), err);
		marks->own_tables |= (number == 4 && is_bytes) || (number == 13 && is_bytes) ||
				     (number == 11 && is_varint);
		marks->before_1_8 |= (number == 3 && field.wire != PB_FIXED64) ||
				     (number == 5 && is_varint) || (number == 6 && is_bytes);
		marks->profile_1_8 |=
			(number == 8 && is_id) || (number == 9 && is_varint) || number == 12;
		marks->profile_1_9 |= (number == 7 && is_id) || (number == 8 && is_varint);
	}
	if (status)
		return status;
	return in.problem ? pb_fail(&in, "Profile", err) : 0;
}

static int scan_scope_profiles(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct pb_field field;
	int status = 0;

	while (!status && pb_next(&in, &field))
		if (field.number == OTLP_SCOPE_PROFILES_PROFILES && field.wire == PB_BYTES)
			status = scan_profile(marks, within(&in, &field), err);
	if (status)
		return status;
	return in.problem ? pb_fail(&in, "ScopeProfiles", err) : 0;
}

static int scan_resource_profiles(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct pb_field field;
	int status = 0;

	while (!status && pb_next(&in, &field))
		if (field.number == OTLP_RESOURCE_PROFILES_SCOPE_PROFILES && field.wire == PB_BYTES)
			status = scan_scope_profiles(marks, within(&in, &field), err);
	if (status)
		return status;
	return in.problem ? pb_fail(&in, "ResourceProfiles", err) : 0;
}

/* Entries of the dictionary's tables that samples point into. */
static void count_entries(struct slice request, uint64_t *ret_attributes, uint64_t *ret_links)
{
	struct pb_reader in = pb_reader_of(request);
	struct pb_field field, entry;

	*ret_attributes = *ret_links = 0;
	while (pb_next(&in, &field)) {
		struct pb_reader dictionary = within(&in, &field);

		if (field.number != OTLP_REQUEST_DICTIONARY || field.wire != PB_BYTES)
			continue;
		while (pb_next(&dictionary, &entry)) {
			*ret_attributes += entry.number == OTLP_DICTIONARY_ATTRIBUTE_TABLE;
			*ret_links += entry.number == OTLP_DICTIONARY_LINK_TABLE;
		}
	}
}

/* The reading against which less speaks; the newer one when nothing tells. */
static enum reading choose(struct marks *marks, struct slice request)
{
	uint64_t attributes, links;

	count_entries(request, &attributes, &links);
	for (int i = 0; i < READINGS; i++)
		marks->objections[i][INDEX_WRONG] |=
			(marks->attribute_max[i] && marks->attribute_max[i] >= attributes) ||
			(marks->link_max[i] && marks->link_max[i] >= links);
	for (int i = 0; i < OBJECTIONS; i++) {
		bool old = marks->objections[READING_OLD][i];

		if (old != marks->objections[READING_NEW][i])
			return old ? READING_NEW : READING_OLD;
	}
	return READING_NEW;
}

static int judge(struct marks *marks, struct slice request, enum otlp_dialect *ret, struct err *err)
{
	bool not_old = marks->objections[READING_OLD][LINK_MANY];
	bool not_new = marks->objections[READING_NEW][LINK_MANY] || marks->profile_1_8;

	if (marks->profiles && !marks->dictionary && !marks->own_tables)
		return err_set(err, ERR_UNSUPPORTED,
			       "decode OTLP profiles: neither a dictionary nor tables in the "
			       "profiles, so this is not a version from 1.5 on");
	if (marks->profiles && (!marks->dictionary || marks->before_1_8)) {
		*ret = marks->dictionary ? OTLP_1_7 : OTLP_1_5;
		return 0;
	}
	if ((marks->profile_1_8 && marks->profile_1_9) || (not_old && not_new))
		return err_set(err, ERR_INVALID,
			       "decode OTLP profiles: the request mixes fields of version %s with "
			       "fields of version %s",
			       marks->profile_1_8 ? "1.8" : "1.9", not_old ? "1.10" : "1.9");
	if (marks->profile_1_8)
		*ret = OTLP_1_8;
	else
		*ret = choose(marks, request) == READING_OLD ? OTLP_1_9 : OTLP_1_10;
	return 0;
}

int otlp_dialect_detect(struct slice request, enum otlp_dialect *ret, struct err *err)
{
	struct marks marks = { 0 };
	struct pb_reader in = pb_reader_of(request);
	struct pb_field field;
	int status = 0;

	while (!status && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == OTLP_REQUEST_RESOURCE_PROFILES)
			status = scan_resource_profiles(&marks, within(&in, &field), err);
		else if (field.number == OTLP_REQUEST_DICTIONARY)
			marks.dictionary = true;
	}
	if (status)
		return status;
	if (in.problem)
		return pb_fail(&in, "ExportProfilesServiceRequest", err);
	return judge(&marks, request, ret, err);
}

const char *otlp_dialect_name(enum otlp_dialect dialect)
{
	static const char *const names[OTLP_DIALECTS] = { "1.5", "1.7", "1.8", "1.9", "1.10" };

	return names[dialect];
}
