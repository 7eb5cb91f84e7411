/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/otlp_dialect.h"

#include "codec/wire/pb.h"

/* Numbers of a sample compared for repetition; a sample with more has no attributes there. */
#define ATTRIBUTES_COMPARED_MAX 64
/* A sender does not change its mind: behind so many samples that told, more are not looked at. */
#define SAMPLES_THAT_TELL 64

struct marks {
	bool dictionary, profiles;
	bool before_1_8; /* Profile laid out as in 1.7 */
	bool profile_1_8, profile_1_9;
	bool sample_1_9, sample_1_10;
	bool values_alone;		 /* a sample with field 2 and no times */
	bool lengths_differ;		 /* of fields 2 and 5 */
	bool repeats;			 /* a number of field 2 repeats within its sample */
	bool second_field;		 /* any sample has field 2 */
	uint64_t number_min, number_max; /* of all numbers in field 2 */
	uint32_t samples;		 /* looked at */
};

/* Like pb_next, for walking: the nested message or packed numbers that the field holds. */
static struct pb_reader within(const struct pb_reader *in, const struct pb_field *field)
{
	return pb_reader_into(in, field->bytes);
}

static void see_number(struct marks *marks, uint64_t number, uint64_t *seen, size_t count)
{
	if (number < marks->number_min)
		marks->number_min = number;
	if (number > marks->number_max)
		marks->number_max = number;
	if (count >= ATTRIBUTES_COMPARED_MAX) {
		marks->repeats = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		marks->repeats = marks->repeats || seen[i] == number;
	seen[count] = number;
}

/* Counts the numbers of field 2, and looks at each. */
static size_t see_second_field(struct marks *marks, const struct pb_reader *in,
			       const struct pb_field *field, uint64_t *seen, size_t count)
{
	struct pb_reader packed = within(in, field);
	uint64_t number = field->value;

	if (field->wire == PB_VARINT) {
		see_number(marks, number, seen, count);
		return count + 1;
	}
	for (; pb_varint(&packed, &number); count++)
		see_number(marks, number, seen, count);
	return count;
}

static int scan_sample(struct marks *marks, struct pb_reader in, struct err *err)
{
	uint64_t seen[ATTRIBUTES_COMPARED_MAX];
	size_t numbers = 0, times = 0;
	struct pb_field field;

	while (pb_next(&in, &field)) {
		bool is_bytes = field.wire == PB_BYTES, is_varint = field.wire == PB_VARINT;

		if (field.number == 2 && (is_bytes || is_varint))
			numbers = see_second_field(marks, &in, &field, seen, numbers);
		else if (field.number == 5)
			times += is_bytes ? field.bytes.len / 8 : 1;
		else if (field.number == 6)
			marks->before_1_8 = true;
		marks->sample_1_9 |=
			(field.number == 3 && is_bytes) || (field.number == 4 && is_varint);
		marks->sample_1_10 |=
			(field.number == 3 && is_varint) || (field.number == 4 && is_bytes);
	}
	if (in.problem)
		return pb_fail(&in, "Sample", err);
	marks->samples++;
	marks->second_field |= numbers > 0;
	marks->values_alone |= numbers && !times;
	marks->lengths_differ |= numbers && times && numbers != times;
	return 0;
}

static int scan_sample_type(struct marks *marks, struct pb_reader in, struct err *err)
{
	struct pb_field field;

	while (pb_next(&in, &field))
		marks->profile_1_8 |= field.number == OTLP_VALUE_TYPE_TEMPORALITY;
	return in.problem ? pb_fail(&in, "ValueType", err) : 0;
}

static bool have_told(const struct marks *marks)
{
	return marks->samples >= SAMPLES_THAT_TELL && marks->sample_1_9 + marks->sample_1_10 == 1;
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
		marks->before_1_8 |= (number == 3 && is_bytes) || (number == 5 && is_varint) ||
				     (number == 6 && is_bytes);
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

/* Entries of the attribute table: looked at where nothing else tells. */
static uint64_t count_attributes(struct slice request)
{
	struct pb_reader in = pb_reader_of(request);
	struct pb_field field, entry;
	uint64_t count = 0;

	while (pb_next(&in, &field)) {
		struct pb_reader dictionary = within(&in, &field);

		if (field.number != OTLP_REQUEST_DICTIONARY || field.wire != PB_BYTES)
			continue;
		while (pb_next(&dictionary, &entry))
			count += entry.number == OTLP_DICTIONARY_ATTRIBUTE_TABLE;
	}
	return count;
}

/* Whether the numbers in Sample field 2 are attributes when nothing else tells. */
static bool second_is_attributes(const struct marks *marks, struct slice request)
{
	if (!marks->second_field)
		return true;
	if (marks->values_alone)
		return false;
	if (marks->lengths_differ)
		return true;
	return !marks->repeats && marks->number_min >= 1 &&
	       marks->number_max < count_attributes(request);
}

static int judge(const struct marks *marks, struct slice request, enum otlp_dialect *ret,
		 struct err *err)
{
	bool old = marks->sample_1_9 || marks->profile_1_8;

	if (marks->profiles && !marks->dictionary)
		return err_set(
			err, ERR_UNSUPPORTED,
			"decode OTLP profiles: no dictionary, so this is version 1.5 or older; "
			"upgrade the sender to 1.8 or newer");
	if (marks->before_1_8)
		return err_set(
			err, ERR_UNSUPPORTED,
			"decode OTLP profiles: this is version 1.7; upgrade the sender to 1.8 "
			"or newer");
	if ((marks->profile_1_8 && marks->profile_1_9) || (old && marks->sample_1_10))
		return err_set(err, ERR_INVALID,
			       "decode OTLP profiles: the request mixes fields of version %s with "
			       "fields of version %s",
			       marks->profile_1_8 ? "1.8" : "1.9",
			       marks->sample_1_10 ? "1.10" : "1.9");
	if (marks->profile_1_8)
		*ret = OTLP_1_8;
	else if (old || (!marks->sample_1_10 && !second_is_attributes(marks, request)))
		*ret = OTLP_1_9;
	else
		*ret = OTLP_1_10;
	return 0;
}

int otlp_dialect_detect(struct slice request, enum otlp_dialect *ret, struct err *err)
{
	struct marks marks = { .number_min = UINT64_MAX };
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
	static const char *const names[OTLP_DIALECTS] = { "1.8", "1.9", "1.10" };

	return names[dialect];
}
