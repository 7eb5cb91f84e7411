/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyro_ingest - POST /ingest of Pyroscope: a profile in one of its formats, chosen as Pyroscope
 * does: by the parameter format, by the content type, else folded stacks.
 */
#include <jansson.h>

#include "codec/profile/folded.h"
#include "codec/profile/name_tree.h"
#include "codec/profile/speedscope.h"
#include "codec/wire/multipart.h"
#include "server/serve/intake/jfr_input.h"
#include "server/serve/intake/pyro_name.h"
#include "server/serve/intake/writing.h"

#define ELEMENTS_MAX ((size_t)2 << 20)
#define TRIE_TEXT_FACTOR 64
#define TRIE_TEXT_BYTES ((size_t)16 << 20)
#define TRIE_TEXT_BYTES_MAX ((size_t)96 << 20)
#define TYPES_MAX 32
#define CONFIG_BYTES_MAX ((size_t)64 << 10)
#define RATE_DEFAULT 100
#define NS_PER_S 1000000000u

enum format {
	FORMAT_GROUPS,
	FORMAT_LINES,
	FORMAT_TRIE,
	FORMAT_TREE,
	FORMAT_SPEEDSCOPE,
	FORMAT_PPROF,
	FORMAT_JFR
};

struct ingest_request {
	struct writing writing;
	enum format format;
	uint64_t rate;
	int64_t from_ns, until_ns;
	bool average;
	struct pyro_name name;
	struct strbuf name_text, units;
	struct strbuf parameter; /* scratch */
	json_t *config;		 /* what `types` borrows from */
	struct ingest_type types[TYPES_MAX];
	size_t types_count;
	struct slice jfr_labels; /* the part "labels" */
};

static struct slice parameter(struct ingest_request *ingest, const char *name)
{
	net_request_parameter(ingest->writing.request, name, 0, &ingest->parameter);
	return strbuf_slice(&ingest->parameter);
}

static int read_format(struct ingest_request *ingest)
{
	static const struct {
		const char *name, *type;
		enum format format;
	} formats[] = {
		{ "pprof", "multipart/form-data", FORMAT_PPROF },
		{ "trie", "binary/octet-stream+trie", FORMAT_TRIE },
		{ "tree", "binary/octet-stream+tree", FORMAT_TREE },
		{ "jfr", "", FORMAT_JFR },
		{ "lines", "", FORMAT_LINES },
		{ "speedscope", "", FORMAT_SPEEDSCOPE },
		{ "groups", "", FORMAT_GROUPS },
		{ "folded", "", FORMAT_GROUPS },
		{ "collapsed", "", FORMAT_GROUPS },
	};
	struct slice type = net_request_header(ingest->writing.request, "content-type"), rest;
	struct slice name = parameter(ingest, "format");

	type = slice_trim(slice_cut(type, ';', &rest));
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (name.len ? slice_is(name, formats[i].name)
			     : formats[i].type[0] && slice_is(type, formats[i].type)) {
			ingest->format = formats[i].format;
			return 0;
		}
	ingest->format = FORMAT_GROUPS;
	if (!name.len)
		return 0;
	return err_set(&ingest->writing.err, ERR_INVALID,
		       "parameter format \"%.*s\": pprof, jfr, groups, folded, lines, trie, tree "
		       "and speedscope are known",
		       SLICE_FMT(name));
}

static int read_parameters(struct ingest_request *ingest)
{
	const struct net_request *request = ingest->writing.request;
	struct slice spy;
	int rc = read_format(ingest);

	if (rc)
		return rc;
	net_request_parameter(request, "name", 0, &ingest->name_text);
	net_request_parameter(request, "units", 0, &ingest->units);
	rc = pyro_name_parse(strbuf_slice(&ingest->name_text), strbuf_slice(&ingest->units),
			     ingest->format >= FORMAT_PPROF, &ingest->name, &ingest->writing.err);
	ingest->from_ns = pyro_name_time_ns(parameter(ingest, "from"));
	ingest->until_ns = pyro_name_time_ns(parameter(ingest, "until"));
	ingest->average = slice_is(parameter(ingest, "aggregationType"), "average");
	if (!slice_parse_u64(parameter(ingest, "sampleRate"), &ingest->rate) || !ingest->rate ||
	    ingest->rate > NS_PER_S)
		ingest->rate = RATE_DEFAULT;
	spy = parameter(ingest, "spyName"); /* stays in the scratch: read last */
	if (!rc && spy.len && ingest->name.labels_count < PYRO_LABELS_MAX)
		ingest->name.labels[ingest->name.labels_count++] =
			(struct ingest_label){ SLICE_LITERAL("pyroscope_spy"), spy };
	return rc;
}

static int take_pprof(struct ingest_request *ingest, struct slice bytes, struct slice name)
{
	struct writing *writing = &ingest->writing;
	struct ingest_pprof profile = {
		.bytes = bytes,
		.name = name,
		.labels = ingest->name.labels,
		.labels_count = ingest->name.labels_count,
		.now_ns = clock_real_ns(),
		.from_ns = ingest->from_ns,
		.until_ns = ingest->until_ns,
		.deltas = true,
		.named_by_type = !name.len,
		.types = ingest->types,
		.types_count = ingest->types_count,
	};

	if (ingest->format == FORMAT_JFR)
		return jfr_input_take(writing, &profile, ingest->jfr_labels);
	return ingest_from_pprof(writing->scratch, &writing->limits, &profile, writing->batch,
				 &writing->err);
}

/* {"cpu": {"units": .., "display-name": .., "aggregation": .., "cumulative": .., ..}, ..} */
static int read_config(struct ingest_request *ingest, struct slice text)
{
	struct err *err = &ingest->writing.err;
	json_error_t problem;
	const char *key;
	json_t *value;

	if (text.len > CONFIG_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "sample_type_config: more than %zu bytes",
			       CONFIG_BYTES_MAX);
	json_decref(ingest->config);
	ingest->types_count = 0;
	ingest->config = json_loadb(text.data, text.len, 0, &problem);
	if (!json_is_object(ingest->config))
		return err_set(err, ERR_INVALID, "sample_type_config: no JSON object: byte %d: %s",
			       problem.position, problem.text);
	json_object_foreach(ingest->config, key, value)
	{
		const char *name = json_string_value(json_object_get(value, "display-name"));
		const char *how = json_string_value(json_object_get(value, "aggregation"));

		if (ingest->types_count == TYPES_MAX)
			return err_set(err, ERR_LIMIT, "sample_type_config: more than %d types",
				       TYPES_MAX);
		ingest->types[ingest->types_count++] = (struct ingest_type){
			.type = slice_of(key),
			.name = slice_of(name ? name : ""),
			.cumulative = json_is_true(json_object_get(value, "cumulative")),
			.average = how && !strcmp(how, "average"),
		};
	}
	return 0;
}

static int take_parts(struct ingest_request *ingest)
{
	struct writing *writing = &ingest->writing;
	struct slice type = net_request_header(writing->request, "content-type"), profile = { 0 };
	struct multipart_reader reader;
	struct multipart_part part;
	int rc = multipart_begin(&reader, type, writing->request->body, &writing->err);
	int more = 1;

	while (!rc && (more = multipart_next(&reader, &part, &writing->err)) > 0) {
		if (slice_is(part.name, ingest->format == FORMAT_JFR ? "jfr" : "profile"))
			profile = part.bytes;
		else if (ingest->format == FORMAT_JFR && slice_is(part.name, "labels"))
			ingest->jfr_labels = part.bytes;
		else if (slice_is(part.name, "sample_type_config") && part.bytes.len)
			rc = read_config(ingest, part.bytes);
		else if (slice_is(part.name, "prev_profile") && part.bytes.len)
			rc = err_set(&writing->err, ERR_INVALID,
				     "part prev_profile: not taken; mark the types cumulative in "
				     "sample_type_config instead");
	}
	if (rc || more < 0)
		return rc ? rc : more;
	if (!profile.len)
		return err_set(&writing->err, ERR_INVALID, "no part \"%s\" in the body",
			       ingest->format == FORMAT_JFR ? "jfr" : "profile");
	return take_pprof(ingest, profile, SLICE_LITERAL(""));
}

/* Each line a stack of one sample: made folded stacks. */
static int decode_lines(struct slice text, struct stack_builder *into, struct err *err)
{
	int64_t one = 1;

	stack_builder_type(into, "samples", "count");
	while (text.len) {
		struct slice line = slice_trim(slice_cut(text, '\n', &text));

		while (line.len) {
			struct stack_builder_frame frame = { .name = slice_cut(line, ';', &line) };

			if (frame.name.len)
				stack_builder_push(into, &frame);
		}
		if (into->stack_count)
			stack_builder_sample(into, true, &one);
	}
	return stack_builder_check(into, "lines", err);
}

static size_t trie_text_max(struct slice body)
{
	size_t bytes = TRIE_TEXT_BYTES + body.len * TRIE_TEXT_FACTOR;

	return bytes < TRIE_TEXT_BYTES_MAX ? bytes : TRIE_TEXT_BYTES_MAX;
}

static int decode(struct ingest_request *ingest, struct stack_builder *into)
{
	struct slice body = ingest->writing.request->body;
	struct err *err = &ingest->writing.err;

	switch (ingest->format) {
	case FORMAT_LINES:
		return decode_lines(body, into, err);
	case FORMAT_TREE:
		return name_tree_decode(body, into, err);
	case FORMAT_TRIE:
		return name_trie_decode(body, trie_text_max(body), into, err);
	case FORMAT_SPEEDSCOPE:
		return speedscope_decode(body, into, err);
	default:
		return folded_decode(body, into, err);
	}
}

/* Counts of samples become time, by the rate at which they were taken. */
static int scale(struct pprof *profile, int64_t period_ns, struct err *err)
{
	for (size_t i = 0; i < profile->values.count; i++)
		if (__builtin_mul_overflow(profile->values.data[i], period_ns,
					   &profile->values.data[i]))
			return err_set(err, ERR_INVALID, "sample %zu: its time is beyond 63 bits",
				       i);
	return 0;
}

/* The type that the app's name stands for; of speedscope, what the file's unit says comes first. */
static int set_type(struct ingest_request *ingest, struct stack_builder *built)
{
	struct pprof *profile = &built->profile;
	int64_t period_ns = (int64_t)(NS_PER_S / ingest->rate);
	const struct pyro_name_type *type = ingest->name.type;
	struct slice unit = profile->strings.data[profile->sample_types.data[0].unit];
	bool is_count = slice_is(unit, "count");

	if (!is_count && !slice_is(unit, type->unit))
		return 0;
	profile->sample_types.data[0].type =
		pprof_builder_string(built->strings, slice_of(type->type));
	profile->sample_types.data[0].unit =
		pprof_builder_string(built->strings, slice_of(type->unit));
	profile->period_type.type =
		pprof_builder_string(built->strings, slice_of(type->period_type));
	profile->period_type.unit =
		pprof_builder_string(built->strings, slice_of(type->period_unit));
	profile->period = type->is_time ? period_ns : 1;
	return is_count && type->is_time ? scale(profile, period_ns, &ingest->writing.err) : 0;
}

static int take_stacks(struct ingest_request *ingest)
{
	struct strbuf encoded = { 0 };
	struct stack_builder built;
	struct slice name;
	int rc;

	stack_builder_init(&built, ELEMENTS_MAX, ingest->writing.budget);
	rc = decode(ingest, &built);
	if (!rc)
		rc = set_type(ingest, &built);
	if (!rc)
		rc = stack_builder_encode(&built, &encoded, &ingest->writing.err);
	if (!rc) {
		name = built.profile.period_type.type ? slice_of(ingest->name.type->name)
						      : SLICE_LITERAL("");
		if (ingest->average)
			ingest->types[ingest->types_count++] =
				(struct ingest_type){ .type = slice_of(ingest->name.type->type),
						      .average = true };
		rc = take_pprof(ingest, strbuf_slice(&encoded), name);
	}
	strbuf_free(&encoded);
	stack_builder_free(&built);
	return rc;
}

static int take(struct ingest_request *ingest)
{
	const struct net_request *request = ingest->writing.request;
	int rc = read_parameters(ingest);

	if (rc)
		return rc;
	if (ingest->format < FORMAT_PPROF)
		return take_stacks(ingest);
	if (multipart_is(net_request_header(request, "content-type")))
		return take_parts(ingest);
	return take_pprof(ingest, request->body, SLICE_LITERAL(""));
}

void pyro_ingest(void *context, const struct net_request *request, struct net_response *response)
{
	struct ingest_request ingest = { 0 };
	bool refused = false;
	int rc = writing_begin(&ingest.writing, context, request, WRITING_PYROSCOPE);

	if (!rc)
		rc = take(&ingest);
	if (!rc) {
		rc = writing_append_all(&ingest.writing);
		refused = rc == -ERR_INVALID;
	}
	writing_end(&ingest.writing, response);
	if (refused)
		response->status = 422; /* well-formed, and not wanted */
	json_decref(ingest.config);
	strbuf_free(&ingest.name_text);
	strbuf_free(&ingest.units);
	strbuf_free(&ingest.parameter);
}
