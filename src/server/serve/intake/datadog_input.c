/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_input - POST /profiling/v1/input of Datadog's tracers: a form with a file for each
 * profile, compressed each in its way. Tags and times are in the file `event` (JSON) since 2022,
 * version 4; before, in fields: `tags[]` (one each), `start`, `end`, and profiles are `data[..]`.
 * Beside it they send traces, telemetry and more all the time, and log what is not answered with
 * 200: datadog_ignored does that, unread.
 */
#include "base/budget.h"
#include "codec/archive/compress.h"
#include "codec/archive/frames.h"
#include "codec/profile/jfr.h"
#include "codec/wire/json_read.h"
#include "codec/wire/multipart.h"
#include "config/units.h"
#include "server/serve/intake/jfr_input.h"
#include "server/serve/intake/writing.h"

#define LABELS_MAX 128
#define EVENT_BYTES_MAX ((size_t)64 << 10)
#define PROFILE_BYTES_MAX ((size_t)64 << 20) /* decompressed */
#define FIRST_FACTOR 8u			     /* of what comes out, that is paid for at first */
#define FIRST_BYTES ((size_t)64 << 10)
#define ZSTD_MAGIC "\x28\xb5\x2f\xfd"

struct input {
	struct writing writing;
	json_t *event; /* what labels borrow from */
	struct ingest_label labels[LABELS_MAX];
	size_t labels_count;
	int64_t from_ns, until_ns; /* 0: not said */
};

/* Tags that differ by process or profile: they would make a series each. */
static bool is_identity(struct slice name)
{
	static const char *const names[] = {
		"runtime-id", "runtime_id",	  "process_id", "pid",	  "profile_seq",
		"snapshot",   "profiler_version", "format",	"host_id"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(name, names[i]))
			return true;
	return slice_starts_with(name, SLICE_LITERAL("_"));
}

static void add_label(struct input *input, struct slice name, struct slice value)
{
	if (name.len && value.len && !is_identity(name) && input->labels_count < LABELS_MAX)
		input->labels[input->labels_count++] = (struct ingest_label){ name, value };
}

/* "service:shop,env:prod", or the same as a list of texts. */
static void add_tags(struct input *input, struct slice tags)
{
	while (tags.len) {
		struct slice tag = slice_trim(slice_cut(tags, ',', &tags)), value;
		struct slice name = slice_cut(tag, ':', &value);

		add_label(input, name, value);
		if (slice_is(name, "service"))
			add_label(input, SLICE_LITERAL("service_name"), value);
	}
}

static int64_t time_of(struct slice text)
{
	int64_t ns;

	return units_parse_time(text, clock_real_ns(), &ns, NULL) ? 0 : ns;
}

static int read_event(struct input *input, struct slice text)
{
	struct err *err = &input->writing.err;
	json_error_t problem;
	const json_t *tags;

	if (text.len > EVENT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "part event: more than %zu bytes", EVENT_BYTES_MAX);
	json_decref(input->event);
	input->labels_count = 0;
	input->event = json_loadb(text.data, text.len, 0, &problem);
	if (!json_is_object(input->event))
		return err_set(err, ERR_INVALID, "part event: no JSON object: byte %d: %s",
			       problem.position, problem.text);
	tags = json_object_get(input->event, "tags_profiler");
	add_tags(input, json_text_of(tags));
	for (size_t i = 0; i < json_array_size(tags); i++)
		add_tags(input, json_text_of(json_array_get(tags, i)));
	input->from_ns = time_of(json_text_of(json_object_get(input->event, "start")));
	input->until_ns = time_of(json_text_of(json_object_get(input->event, "end")));
	return 0;
}

static bool is_event(const struct multipart_part *part)
{
	return slice_is(part->name, "event") || slice_is(part->file_name, "event.json");
}

/* "data[0]" and the like; Java's had one of this name. */
static bool is_data(struct slice name)
{
	return slice_starts_with(name, SLICE_LITERAL("data[")) || slice_is(name, "chunk-data");
}

static bool is_compressed(struct slice bytes)
{
	return compress_is_gzip(bytes) || frames_is_lz4(bytes) ||
	       slice_starts_with(bytes, SLICE_LITERAL(ZSTD_MAGIC));
}

static bool has_word(struct slice name, const char *word)
{
	return name.len && memmem(name.data, name.len, word, strlen(word));
}

/* Of other files that come with them (metrics.json, go.trace) the names say that they are others.
 */
static bool is_profile(const struct multipart_part *part)
{
	static const char *const ends[] = { ".pprof", ".jfr", ".pb", ".gz", ".lz4", ".zst", "]" };
	struct slice name = part->file_name.len ? part->file_name : part->name;

	if (!part->bytes.len || has_word(name, ".json"))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (slice_ends_with(name, slice_of(ends[i])))
			return part->file_name.len || ends[i][0] == '.' || is_data(part->name);
	if (part->file_name.len)
		return !has_word(name, ".");
	return is_compressed(part->bytes) || jfr_is(part->bytes) || is_data(part->name);
}

/* A field of the older forms, which have no event. */
static void take_field(struct input *input, const struct multipart_part *part)
{
	if (slice_is(part->name, "tags[]") || slice_is(part->name, "tags"))
		add_tags(input, part->bytes);
	else if (slice_is(part->name, "start") || slice_is(part->name, "recording-start"))
		input->from_ns = time_of(part->bytes);
	else if (slice_is(part->name, "end") || slice_is(part->name, "recording-end"))
		input->until_ns = time_of(part->bytes);
}

static int each_part(struct input *input,
		     int (*take)(struct input *, const struct multipart_part *))
{
	const struct net_request *request = input->writing.request;
	struct err *err = &input->writing.err;
	struct multipart_reader reader;
	struct multipart_part part;
	int more = 1, rc = multipart_begin(&reader, net_request_header(request, "content-type"),
					   request->body, err);

	while (!rc && (more = multipart_next(&reader, &part, err)) > 0)
		rc = take(input, &part);
	return rc ? rc : more;
}

/* What is said of all profiles may stand behind them. */
static int take_said(struct input *input, const struct multipart_part *part)
{
	if (is_event(part))
		return read_event(input, part->bytes);
	if (!part->file_name.len && !is_profile(part))
		take_field(input, part);
	return 0;
}

/* Its two types are called alike for mutexes and for channels: the file's name tells. */
static struct slice waiting_for(const struct multipart_part *part)
{
	bool blocks = has_word(part->file_name, "block") || has_word(part->name, "block");

	return blocks ? SLICE_LITERAL("block_") : SLICE_LITERAL("");
}

static int take_bytes(struct input *input, const struct multipart_part *part, struct slice bytes)
{
	struct writing *writing = &input->writing;
	struct slice waiting = waiting_for(part);
	struct ingest_type types[] = {
		{ .type = SLICE_LITERAL("contentions"), .name = waiting },
		{ .type = SLICE_LITERAL("delay"), .name = waiting },
		{ .type = SLICE_LITERAL("space"), .average = true },
		{ .type = SLICE_LITERAL("objects"), .average = true },
	};
	struct ingest_pprof profile = {
		.bytes = bytes,
		.labels = input->labels,
		.labels_count = input->labels_count,
		.now_ns = clock_real_ns(),
		.from_ns = input->from_ns,
		.until_ns = input->until_ns,
		.deltas = true,
		.named_by_type = true,
		.datadog_labels = true,
		.types = types,
		.types_count = sizeof(types) / sizeof(types[0]),
	};

	if (jfr_is(bytes)) {
		profile.from_ns = profile.until_ns = 0; /* recordings say that themselves */
		return jfr_input_take(writing, &profile, SLICE_LITERAL(""));
	}
	return ingest_from_pprof(writing->scratch, &writing->limits, &profile, writing->batch,
				 &writing->err);
}

typedef int decode_f(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);

/* Pays for what comes out, a little at a time. */
static int take_compressed(struct input *input, const struct multipart_part *part, decode_f *decode)
{
	struct writing *writing = &input->writing;
	size_t room = part->bytes.len * FIRST_FACTOR + FIRST_BYTES;
	struct strbuf out = { 0 };
	int rc;

	for (;; room *= FIRST_FACTOR) {
		if (room > PROFILE_BYTES_MAX)
			room = PROFILE_BYTES_MAX;
		if (!budget_take(writing->budget, room))
			return budget_fail(writing->budget, room, "take Datadog's profile",
					   &writing->err);
		rc = decode(part->bytes, room, &out, &writing->err);
		if (rc != -ERR_LIMIT || room == PROFILE_BYTES_MAX)
			break;
		strbuf_free(&out);
		budget_give(writing->budget, room);
		writing->err.code = ERR_NONE;
	}
	if (!rc)
		rc = take_bytes(input, part, strbuf_slice(&out));
	strbuf_free(&out);
	budget_give(writing->budget, room);
	return rc;
}

static int take_profile(struct input *input, const struct multipart_part *part)
{
	int rc;

	if (is_event(part) || !is_profile(part))
		return 0; /* counts of the tracer's own, and the like */
	if (compress_is_gzip(part->bytes))
		rc = take_compressed(input, part, compress_gunzip);
	else if (slice_starts_with(part->bytes, SLICE_LITERAL(ZSTD_MAGIC)))
		rc = take_compressed(input, part, compress_unzstd);
	else if (frames_is_lz4(part->bytes))
		rc = take_compressed(input, part, frames_unlz4);
	else
		rc = take_bytes(input, part, part->bytes);
	return rc ? err_wrap(&input->writing.err, "file \"%.*s\"",
			     SLICE_FMT(part->file_name.len ? part->file_name : part->name))
		  : 0;
}

void datadog_input(void *context, const struct net_request *request, struct net_response *response)
{
	struct input input = { 0 };
	int rc = writing_begin(&input.writing, context, request, WRITING_DATADOG);

	if (!rc)
		rc = each_part(&input, take_said);
	if (!rc)
		rc = each_part(&input, take_profile);
	if (!rc)
		rc = writing_append_all(&input.writing);
	if (!rc) {
		response->content_type = "application/json";
		strbuf_add_text(&response->body, "{}");
	}
	writing_end(&input.writing, response);
	json_decref(input.event);
}

/* Traces want to be told at which rate to sample: nothing is said. */
void datadog_ignored(void *context, const struct net_request *request,
		     struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "application/json";
	strbuf_add_text(&response->body, "{}");
}

void datadog_info(void *context, const struct net_request *request, struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "application/json";
	strbuf_add_text(&response->body,
			"{\"version\":\"" FIRN_VERSION "\",\"endpoints\":[\"/profiling/v1/input\"],"
			"\"client_drop_p0s\":true}");
}
