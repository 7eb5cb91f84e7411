/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door for OTLP Profiles. One Profile of the request becomes one report of a group with one
 * column. Its series' labels are the attributes of resource, scope and profile, the later over the
 * earlier; attributes of its samples become labels of rows, and so do those of the former that
 * name a process or thread (identities below): they would make a series per process.
 */
#include <stdio.h>

#include "base/hash.h"
#include "codec/profile/otlp_dialect.h"
#include "codec/wire/utf8.h"
#include "server/ingest/any_text.h"
#include "server/ingest/otlp_frames.h"
#include "server/ingest/scratch_int.h"

#define ELEMENTS_PER_SAMPLE 16 /* of the decoder's limit per column, over samples_max */
#define PROFILES_MAX 65536     /* per request */
#define PLACE_BYTES 2	       /* of a place in a stack, of dictionaries worth a name */
#define ATTRIBUTES_MAX 256     /* of one resource, scope or profile */
#define DEMOTED_MAX 8
#define TEMPORALITY_CUMULATIVE 2 /* AggregationTemporality of dialect 1.8 */

enum identity { IDENTITY_NONE, IDENTITY_SAMPLE, IDENTITY_DROP };

/* Resource, scope and profile attributes that must not make series, and what becomes of them. */
static const struct {
	const char *name;
	enum identity identity;
} identities[] = {
	{ "process.pid", IDENTITY_SAMPLE },
	{ "thread.id", IDENTITY_SAMPLE },
	{ "thread.name", IDENTITY_SAMPLE },
	{ "cpu.logical_number", IDENTITY_SAMPLE },
	{ "process.command", IDENTITY_DROP },
	{ "process.command_args", IDENTITY_DROP },
	{ "process.command_line", IDENTITY_DROP },
	{ "process.creation.time", IDENTITY_DROP },
	{ "process.group_leader.pid", IDENTITY_DROP },
	{ "process.parent_pid", IDENTITY_DROP },
	{ "process.session_leader.pid", IDENTITY_DROP },
	{ "process.vpid", IDENTITY_DROP },
};

/* What one profile is being made of. */
struct door {
	struct ingest_scratch *scratch;
	struct normaliser *n;
	const struct otlp *o;
	const struct ingest_limits *limits;
	struct err *err;
	struct label demoted[DEMOTED_MAX]; /* IDENTITY_SAMPLE attributes */
	uint32_t demoted_count;
	bool rejected;	 /* the error concerns this profile alone */
	int64_t scale;	 /* of this profile's values; 1: they are kept as they are */
	uint64_t zeroes; /* samples of this profile that were dropped because they are 0 */
};

static enum identity identity_of(struct slice name)
{
	for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++)
		if (slice_is(name, identities[i].name))
			return identities[i].identity;
	return IDENTITY_NONE;
}

static struct slice string_of(const struct door *door, int64_t index)
{
	bool dangling = false;
	struct slice text = SLICE_LITERAL("");

	if (index)
		text = otlp_string(door->o, index, &dangling);
	if (dangling)
		repairs_count(REPAIR_STRING_INDEX, 1);
	return text;
}

static struct slice key_of(const struct door *door, const struct otlp_attribute *attribute)
{
	return attribute->key.len ? attribute->key : string_of(door, attribute->key_index);
}

static int decode_any(const struct door *door, const struct otlp_attribute *attribute,
		      struct otlp_any *ret)
{
	int status = otlp_any_decode(door->o, attribute->value, ret, door->err);

	if (ret->dangling)
		repairs_count(REPAIR_STRING_INDEX, 1);
	return status;
}

/* Texts that are longer are cut, and that is counted: so one byte more is enough. */
static size_t text_bytes_max(const struct door *door)
{
	return door->limits->string_bytes_max + 1;
}

/* An attribute as a label of samples: integers stay numbers, all else is text. */
static int sample_label(const struct door *door, const struct otlp_attribute *attribute,
			struct label *ret)
{
	struct label label = { .name = normalise_text(door->n, key_of(door, attribute)) };
	struct otlp_any value;
	int status = decode_any(door, attribute, &value);

	if (status)
		return status;
	if (value.type == OTLP_TYPE_INT) {
		label.numeric = 1;
		label.number = value.number;
		label.unit = normalise_text(door->n, string_of(door, attribute->unit_index));
	} else {
		status = any_text(door->o, &value, text_bytes_max(door), &door->scratch->text,
				  door->err);
		label.value = normalise_text(door->n, strbuf_slice(&door->scratch->text));
	}
	if (!status)
		*ret = label;
	return status;
}

static int series_attribute(struct door *door, const struct otlp_attribute *attribute,
			    uint8_t level)
{
	struct slice key = key_of(door, attribute);
	enum identity identity = identity_of(key);
	struct otlp_any value;
	int status;

	if (identity == IDENTITY_SAMPLE && door->demoted_count < DEMOTED_MAX)
		return sample_label(door, attribute, &door->demoted[door->demoted_count++]);
	if (identity != IDENTITY_NONE) {
		repairs_count(REPAIR_PROCESS_IDENTITY, 1);
		return 0;
	}
	status = decode_any(door, attribute, &value);
	if (!status)
		status = any_text(door->o, &value, text_bytes_max(door), &door->scratch->text,
				  door->err);
	if (!status)
		normalise_label(door->n, key, strbuf_slice(&door->scratch->text), level);
	return status;
}

/* An error that costs only this profile. */
static int reject(struct door *door, const char *why)
{
	door->rejected = true;
	return err_set(door->err, ERR_INVALID, "%s", why);
}

static int own_attributes(struct door *door, uint32_t first, uint32_t count, uint8_t level)
{
	int status = 0;

	if (count > ATTRIBUTES_MAX)
		return reject(door, "its resource or scope has more than 256 attributes");
	for (uint32_t i = 0; i < count && !status; i++)
		status = series_attribute(door, &door->o->own_attributes.data[first + i], level);
	return status;
}

static int profile_attributes(struct door *door, const struct otlp_run *run, uint8_t level)
{
	int status = 0;

	if (run->count > ATTRIBUTES_MAX)
		return reject(door, "it has more than 256 attributes");
	for (uint32_t i = 0; i < run->count && !status; i++) {
		uint64_t index = door->o->numbers.data[run->first + i];

		if (index < door->o->attributes.count)
			status = series_attribute(door, &door->o->attributes.data[index], level);
		else
			repairs_count(REPAIR_ATTRIBUTE_INDEX, 1);
	}
	return status;
}

static int label_set_of(struct door *door, const struct otlp_profile *profile, uint32_t *ret)
{
	const struct otlp_scope *scope = &door->o->scopes.data[profile->scope];
	const struct otlp_resource *resource = &door->o->resources.data[scope->resource];
	int status;

	door->demoted_count = 0;
	normalise_labels_begin(door->n);
	status = own_attributes(door, resource->attribute_first, resource->attribute_count, 0);
	if (!status)
		status = own_attributes(door, scope->attribute_first, scope->attribute_count, 1);
	if (!status)
		status = profile_attributes(door, &profile->attributes, 2);
	if (status)
		return status;
	status = normalise_labels_end(door->n, ret, door->err);
	door->rejected = status != 0;
	return status;
}

/* What the sample and period types say, else the scope's name with '_' as its only mark. */
static uint32_t name_of(const struct door *door, const struct otlp_profile *profile)
{
	const struct otlp_value_type *sample_type = &profile->sample_type;
	const struct otlp_value_type *period_type = &profile->period_type;
	struct slice type = string_of(door, sample_type->type);
	struct slice unit = string_of(door, sample_type->unit);
	struct slice period = string_of(door, period_type->type);
	struct strbuf *text = &door->scratch->text;

	if (slice_is(type, "samples") && slice_is(unit, "count") && slice_is(period, "cpu") &&
	    slice_is(string_of(door, period_type->unit), "nanoseconds"))
		return normalise_type_text(door->n, SLICE_LITERAL("on_cpu"));
	if (slice_is(type, "off_cpu") && slice_is(unit, "nanoseconds"))
		return normalise_type_text(door->n, type);
	strbuf_clear(text);
	strbuf_add_slice(text,
			 utf8_cut(door->o->scopes.data[profile->scope].name, text_bytes_max(door)));
	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] == '.' || text->data[i] == '/' || text->data[i] == '-')
			text->data[i] = '_';
	if (text->len)
		return normalise_type_text(door->n, strbuf_slice(text));
	return normalise_type_text(door->n, period.len ? period : type);
}

/* Short names of units, which some senders use. */
static struct slice unit_of(const struct door *door, int64_t index)
{
	static const struct {
		const char *brief, *name;
	} units[] = { { "ns", "nanoseconds" },
		      { "us", "microseconds" },
		      { "ms", "milliseconds" },
		      { "s", "seconds" },
		      { "By", "bytes" } };
	struct slice unit = string_of(door, index);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (slice_is(unit, units[i].brief))
			return slice_of(units[i].name);
	return unit;
}

/*
 * async-profiler names the type of CPU samples by the engine that took them. All mean CPU time:
 * the count of samples, each worth the period.
 */
static bool is_cpu_engine(const struct door *door, const struct otlp_profile *profile)
{
	struct slice type = string_of(door, profile->sample_type.type);

	return (slice_is(type, "cpu") || slice_is(type, "itimer") || slice_is(type, "ctimer")) &&
	       slice_is(string_of(door, profile->sample_type.unit), "count") &&
	       slice_equal(string_of(door, profile->period_type.type), type) &&
	       slice_is(unit_of(door, profile->period_type.unit), "nanoseconds") &&
	       profile->period > 0;
}

static uint32_t cpu_time_group(struct door *door, const struct otlp_profile *profile,
			       int64_t duration_ns)
{
	uint32_t cpu = normalise_type_text(door->n, SLICE_LITERAL("cpu"));
	uint32_t nanoseconds = normalise_type_text(door->n, SLICE_LITERAL("nanoseconds"));
	struct column column = { .sample_type = cpu,
				 .sample_unit = nanoseconds,
				 .kind = normalise_kind(SLICE_LITERAL("cpu"), duration_ns) };
	struct group group = { .name = normalise_type_text(door->n, SLICE_LITERAL("process_cpu")),
			       .column_count = 1,
			       .period = profile->period,
			       .period_type = cpu,
			       .period_unit = nanoseconds };

	door->scale = profile->period;
	return tables_group(door->n->into, &group, &column);
}

static int group_of(struct door *door, const struct otlp_profile *profile, int64_t duration_ns,
		    uint32_t *ret)
{
	struct slice type = string_of(door, profile->sample_type.type);
	struct group group = { .column_count = 1, .period = profile->period };
	struct column column;

	if (!type.len)
		return reject(door, "its sample type has no name");
	door->scale = 1;
	if (is_cpu_engine(door, profile)) {
		*ret = cpu_time_group(door, profile, duration_ns);
		return 0;
	}
	column.sample_type = normalise_type_text(door->n, type);
	column.sample_unit = normalise_type_text(door->n, unit_of(door, profile->sample_type.unit));
	column.kind = normalise_kind(type, duration_ns);
	if (profile->sample_type.temporality == TEMPORALITY_CUMULATIVE)
		column.kind = COLUMN_CUMULATIVE;
	group.name = name_of(door, profile);
	group.period_type =
		normalise_type_text(door->n, string_of(door, profile->period_type.type));
	group.period_unit = normalise_type_text(door->n, unit_of(door, profile->period_type.unit));
	*ret = tables_group(door->n->into, &group, &column);
	return 0;
}

static bool has_label(const struct normaliser *n, uint32_t name)
{
	for (uint32_t i = 0; i < n->labels_count; i++)
		if (n->labels[i].name == name)
			return true;
	return false;
}

static int labels_of(const struct door *door, const struct otlp_sample *sample, uint32_t *ret)
{
	struct label *known = door->scratch->attribute_labels.data;

	normalise_labels_begin(door->n);
	for (uint32_t i = 0; i < sample->attributes.count; i++) {
		uint64_t index = door->o->numbers.data[sample->attributes.first + i];
		int status = 0;

		if (index >= door->o->attributes.count) {
			repairs_count(REPAIR_ATTRIBUTE_INDEX, 1);
			continue;
		}
		if (known[index].name == TABLES_FULL)
			status =
				sample_label(door, &door->o->attributes.data[index], &known[index]);
		if (status)
			return status;
		normalise_sample_label(door->n, &known[index]);
	}
	for (uint32_t i = 0; i < door->demoted_count; i++)
		if (!has_label(door->n, door->demoted[i].name))
			normalise_sample_label(door->n, &door->demoted[i]);
	*ret = normalise_sample_labels_end(door->n);
	return 0;
}

/*
 * Values alone add up; times alone count one each; values with times are as many as these. Before
 * 1.8 there is one value, whatever the times; samplers of that age wrote a 1 beside several.
 */
static int value_of(struct door *door, const struct otlp_sample *sample, int64_t *ret)
{
	const uint64_t *values = door->o->numbers.data + sample->values.first;
	int64_t sum = sample->values.count ? 0 : sample->timestamps.count;

	if (door->o->dialect < OTLP_1_8 && sample->values.count == 1) {
		*ret = (int64_t)values[0] == 1 && sample->timestamps.count > 1
			       ? sample->timestamps.count
			       : (int64_t)values[0];
		return 0;
	}
	if (sample->values.count && sample->timestamps.count &&
	    sample->values.count != sample->timestamps.count)
		return reject(door, "a sample has as many values as times, or none of one of them; "
				    "here they differ");
	for (uint32_t i = 0; i < sample->values.count; i++)
		if (__builtin_add_overflow(sum, (int64_t)values[i], &sum)) {
			repairs_count(REPAIR_VALUE_OVERFLOW, 1);
			sum = (int64_t)values[i] < 0 ? INT64_MIN : INT64_MAX;
		}
	*ret = sum;
	return 0;
}

/* False: the sample names none. Ids of another length are repaired away. */
static bool link_of(const struct door *door, const struct otlp_sample *sample,
		    struct trace_link *ret)
{
	const struct otlp_link *link;

	if (sample->link <= 0)
		return false; /* 0 is none, by the dictionary's rule */
	if ((uint64_t)sample->link >= door->o->links.count) {
		repairs_count(REPAIR_TRACE_CONTEXT, 1);
		return false;
	}
	link = &door->o->links.data[sample->link];
	if (link->trace_id.len != sizeof(ret->trace_id) ||
	    (link->span_id.len && link->span_id.len != sizeof(ret->span_id))) {
		repairs_count(REPAIR_TRACE_CONTEXT, 1);
		return false;
	}
	*ret = (struct trace_link){ 0 };
	memcpy(ret->trace_id, link->trace_id.data, sizeof(ret->trace_id));
	if (link->span_id.len)
		memcpy(ret->span_id, link->span_id.data, sizeof(ret->span_id));
	return true;
}

/* Since the start of the report, which senders round; UINT32_MAX when it is far away. */
static uint32_t tick_of(uint64_t time_ns, int64_t start_ns)
{
	uint64_t start = (uint64_t)start_ns;
	uint64_t tick = time_ns > start ? (time_ns - start) / TABLES_TICK_NS : 0;

	if (time_ns < start && start - time_ns > (uint64_t)CLOCK_NS_PER_S)
		return UINT32_MAX;
	return tick < UINT32_MAX ? (uint32_t)tick : UINT32_MAX;
}

static void add_moments(const struct door *door, const struct otlp_sample *sample, int64_t start_ns,
			uint32_t row)
{
	const uint64_t *times = door->o->numbers.data + sample->timestamps.first;
	struct trace_link link;
	bool linked = link_of(door, sample, &link);

	if (!door->limits->moments_max)
		return;
	for (uint32_t i = 0; i < sample->timestamps.count; i++)
		normalise_moment(door->n, row, tick_of(times[i], start_ns), linked ? &link : NULL);
	if (linked && !sample->timestamps.count)
		normalise_moment(door->n, row, UINT32_MAX, &link);
}

static void scale(const struct door *door, int64_t *value)
{
	if (!__builtin_mul_overflow(*value, door->scale, value))
		return;
	repairs_count(REPAIR_VALUE_OVERFLOW, 1);
	*value = INT64_MAX;
}

static int add_samples(struct door *door, const struct otlp_profile *profile, int64_t start_ns)
{
	normalise_rows_begin(door->n, 1);
	for (uint32_t i = 0; i < profile->sample_count && !door->n->problem; i++) {
		const struct otlp_sample *sample =
			&door->o->samples.data[profile->sample_first + i];
		uint32_t stack, label_set;
		int64_t value;
		int status = value_of(door, sample, &value);

		if (!status)
			scale(door, &value);
		if (!status && !normalise_values(&value, 1, &value)) {
			door->zeroes++;
			continue;
		}
		if (!status)
			status = otlp_frames_stack(door->scratch, sample->stack, door->err, &stack);
		if (!status)
			status = labels_of(door, sample, &label_set);
		if (status)
			return status;
		add_moments(door, sample, start_ns,
			    normalise_row(door->n, stack, label_set, &value));
	}
	return normaliser_check(door->n, door->err);
}

/* The sender's id of the profile; without one, what the profile says. */
static int batch_id_of(const struct door *door, const struct otlp_profile *profile, uint64_t *ret)
{
	static const char no_id[16];
	const struct normaliser *n = door->n;
	struct content_hash *hash = &door->scratch->content_hash;
	const struct otlp_scope *scope = &door->o->scopes.data[profile->scope];
	struct slice id = profile->profile_id;
	uint64_t sum;

	if (id.len == sizeof(no_id) && memcmp(id.data, no_id, sizeof(no_id)) != 0) {
		*ret = hash_stable(id.data, id.len, 0);
		return 0;
	}
	id = door->o->resources.data[scope->resource].bytes;
	sum = hash_stable(id.data, id.len, 0);
	if (!content_hash_update(hash, n->into))
		return budget_fail(n->budget, n->into->nodes.count * sizeof(uint64_t), "take OTLP",
				   door->err);
	for (size_t i = 0; i < n->rows.count; i++)
		sum = content_hash_row(hash, sum, &n->rows.data[i], &n->values.data[i], 1);
	*ret = sum;
	return 0;
}

static int add_profile(struct door *door, const struct otlp_profile *profile)
{
	int64_t start_ns = normalise_time(door->n, (int64_t)profile->time_unix_nano);
	int64_t duration_ns = normalise_duration((int64_t)profile->duration_nano);
	uint32_t label_set = 0, group = TABLES_FULL, series;
	uint64_t batch_id = 0;
	int status;

	door->rejected = false;
	door->zeroes = 0;
	status = group_of(door, profile, duration_ns, &group);
	if (!status)
		status = label_set_of(door, profile, &label_set);
	if (!status)
		status = add_samples(door, profile, start_ns);
	if (!status)
		status = batch_id_of(door, profile, &batch_id);
	if (status)
		return status;
	series = tables_series(door->n->into, label_set, group);
	return normalise_rows_end(door->n, series, start_ns, duration_ns, batch_id, door->err);
}

/* Tables indexed by the request's own ids, none of them looked at yet. */
static int prepare(const struct door *door)
{
	struct ingest_scratch *scratch = door->scratch;
	const struct otlp *o = door->o;

	scratch->attribute_labels.count = 0;
	if (!COLUMN_ROOM_PAID(&scratch->attribute_labels, door->scratch->budget,
			      o->attributes.count + 1, UINT32_MAX))
		return budget_fail(scratch->budget, o->attributes.count * sizeof(struct label),
				   "take OTLP", door->err);
	memset(scratch->attribute_labels.data, 0xff,
	       (o->attributes.count + 1) * sizeof(struct label));
	normalise_places(door->n, o->locations.count, o->stack_bytes / PLACE_BYTES);
	content_hash_begin(&scratch->content_hash);
	return otlp_frames_begin(scratch, door->err);
}

static void put_partial(struct ingest_partial *partial, size_t profile, const char *why)
{
	if (!partial->rejected_profiles++)
		snprintf(partial->message, sizeof(partial->message),
			 "profile %zu of the request: %.200s", profile, why);
}

/* A sender that means something else by its values would lose them all and never know. */
static void tell_of_nothing(const struct door *door, size_t profile, struct ingest_partial *partial)
{
	char why[128];

	if (door->n->rows.count || !door->zeroes)
		return;
	snprintf(why, sizeof(why), "all its %llu samples have the value 0, read as version %s",
		 (unsigned long long)door->zeroes, otlp_dialect_name(door->o->dialect));
	put_partial(partial, profile, why);
}

static int take(struct door *door, struct slice bytes, struct ingest_partial *partial)
{
	uint64_t reports = 0, rows = 0;
	int status;

	door->scratch->otlp.samples_max = door->limits->samples_max;
	door->scratch->otlp.profiles_max = PROFILES_MAX;
	status = otlp_decode(bytes, door->limits->samples_max * ELEMENTS_PER_SAMPLE,
			     &door->scratch->otlp, door->err);

	if (!status) {
		repairs_count_dialect(door->o->dialect);
		status = prepare(door);
	}
	for (size_t i = 0; i < door->o->profiles.count && !status; i++) {
		status = add_profile(door, &door->o->profiles.data[i]);
		if (!status) {
			reports++;
			rows += door->n->rows.count;
			tell_of_nothing(door, i, partial);
		} else if (door->rejected) {
			put_partial(partial, i, door->err->message);
			repairs_count_rejected_profile();
			*door->err = (struct err){ 0 }; /* the request goes on */
			status = 0;
		}
	}
	if (!status)
		repairs_count_taken(reports, rows);
	return status;
}

int ingest_from_otlp(struct ingest_scratch *scratch, const struct ingest_limits *limits,
		     struct slice bytes, int64_t now_ns, struct tables *into,
		     struct ingest_partial *ret, struct err *err)
{
	struct err own_err = { 0 };
	struct door door = { .scratch = scratch,
			     .n = &scratch->normaliser,
			     .o = &scratch->otlp,
			     .limits = limits,
			     .err = err ? err : &own_err };
	struct ingest_partial partial = { 0 };
	size_t reports_before = into->reports.count;
	int status;

	repairs_count_request(DOOR_OTLP, bytes.len);
	normaliser_begin(&scratch->normaliser, limits, into, now_ns);
	if (bytes.len > limits->decompressed_bytes_max)
		status = err_set(door.err, ERR_LIMIT, "take OTLP: %zu bytes, more than %zu",
				 bytes.len, limits->decompressed_bytes_max);
	else
		status = take(&door, bytes, &partial);
	if (!status) {
		*ret = partial;
		return 0;
	}
	while (into->reports.count > reports_before)
		tables_report_cancel(into);
	repairs_count_refused(door.err->code);
	return status;
}
