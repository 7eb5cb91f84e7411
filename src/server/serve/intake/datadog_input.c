/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_input - POST /profiling/v1/input of Datadog's tracers: a form with `event` (JSON: tags)
 * and a file for each profile, compressed each in its way. Beside it they send traces, telemetry
 * and more all the time, and log what is not answered with 200: datadog_ignored does that, unread.
 */
#include "base/budget.h"
#include "codec/archive/compress.h"
#include "codec/archive/frames.h"
#include "codec/profile/jfr.h"
#include "codec/wire/json_read.h"
#include "codec/wire/multipart.h"
#include "server/serve/intake/jfr_input.h"
#include "server/serve/intake/writing.h"

#define LABELS_MAX 128
#define EVENT_BYTES_MAX ((size_t)64 << 10)
#define PROFILE_BYTES_MAX ((size_t)64 << 20) /* decompressed here; gzip is ingest's */
#define FIRST_FACTOR 8u			     /* of what comes out, that is paid for at first */
#define FIRST_BYTES ((size_t)64 << 10)

struct input {
	struct writing writing;
	json_t *event; /* what labels borrow from */
	struct ingest_label labels[LABELS_MAX];
	size_t labels_count;
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
	if (json_is_string(tags))
		add_tags(input, json_text_of(tags));
	for (size_t i = 0; i < json_array_size(tags); i++) {
		const json_t *tag = json_array_get(tags, i);

		if (json_is_string(tag))
			add_tags(input, json_text_of(tag));
	}
	return 0;
}

static bool is_event(const struct multipart_part *part)
{
	return slice_is(part->name, "event") || slice_is(part->file_name, "event.json");
}

static int each_part(struct input *input,
		     int (*take)(struct input *, const struct multipart_part *), bool event)
{
	const struct net_request *request = input->writing.request;
	struct err *err = &input->writing.err;
	struct multipart_reader reader;
	struct multipart_part part;
	int more = 1, rc = multipart_begin(&reader, net_request_header(request, "content-type"),
					   request->body, err);

	while (!rc && (more = multipart_next(&reader, &part, err)) > 0)
		if (is_event(&part) == event)
			rc = take(input, &part);
	return rc ? rc : more;
}

static int take_event(struct input *input, const struct multipart_part *part)
{
	return read_event(input, part->bytes);
}

/* Its two types are called alike for mutexes and for channels: the file's name tells. */
static struct slice waiting_for(struct slice file_name)
{
	return memmem(file_name.data, file_name.len, "block", 5) ? SLICE_LITERAL("block_")
								 : SLICE_LITERAL("");
}

static int take_bytes(struct input *input, const struct multipart_part *part, struct slice bytes)
{
	struct writing *writing = &input->writing;
	struct slice waiting = waiting_for(part->file_name);
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
		.deltas = true,
		.named_by_type = true,
		.datadog_labels = true,
		.types = types,
		.types_count = sizeof(types) / sizeof(types[0]),
	};

	if (jfr_is(bytes))
		return jfr_input_take(writing, &profile);
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

static bool is_profile(const struct multipart_part *part)
{
	struct slice name = part->file_name.len ? part->file_name : part->name;

	return part->bytes.len && !memmem(name.data, name.len, ".json", 5) &&
	       !memmem(name.data, name.len, ".txt", 4);
}

static int take_profile(struct input *input, const struct multipart_part *part)
{
	int rc;

	if (!is_profile(part))
		return 0; /* counts of the tracer's own, and the like */
	if (slice_starts_with(part->bytes, SLICE_LITERAL("\x28\xb5\x2f\xfd")))
		rc = take_compressed(input, part, compress_unzstd);
	else if (frames_is_lz4(part->bytes))
		rc = take_compressed(input, part, frames_unlz4);
	else
		rc = take_bytes(input, part, part->bytes);
	return rc ? err_wrap(&input->writing.err, "file \"%.*s\"", SLICE_FMT(part->file_name)) : 0;
}

void datadog_input(void *context, const struct net_request *request, struct net_response *response)
{
	struct input input = { 0 };
	int rc = writing_begin(&input.writing, context, request, WRITING_DATADOG);

	if (!rc)
		rc = each_part(&input, take_event, true);
	if (!rc)
		rc = each_part(&input, take_profile, false);
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
