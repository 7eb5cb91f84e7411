/* SPDX-License-Identifier: Apache-2.0 */
/* write - profiles in: OTLP (gRPC and HTTP) and Parca's WriteRaw. */
#include <strings.h>

#include "codec/wire/pb.h"
#include "server/ingest/repairs.h"
#include "server/serve/intake/schema_otlp.h"
#include "server/serve/intake/write_summary.h"
#include "server/serve/intake/writing.h"

#define WRITE_LABELS_MAX 256
#define JSON_BYTES_MAX ((size_t)16 << 20)

/* ExportProfilesServiceResponse{ partial_success = 1 { rejected_profiles = 1; error_message = 2 } }
 */
static void put_partial(struct strbuf *out, int64_t rejected, const char *message)
{
	size_t begun;

	if (!rejected && !message[0])
		return;
	begun = pb_begin(out, 1);
	pb_put_varint(out, 1, (uint64_t)rejected);
	pb_put_bytes(out, 2, slice_of(message));
	pb_end(out, begun);
}

/* What the request became, for who asks for it. */
static void put_summary(const struct writing *writing, struct net_response *response)
{
	struct tables_view view = tables_view_of(writing->batch);
	struct strbuf text = { 0 };

	if (!net_request_header(writing->request, WRITE_SUMMARY_HEADER).len)
		return;
	write_summary_add(&view, &writing->result, &text);
	pb_put_bytes(&response->body, WRITE_SUMMARY_FIELD, strbuf_slice(&text));
	strbuf_free(&text);
}

enum body { BODY_PROTOBUF, BODY_JSON, BODY_OTHER };

/* Names of media types know no case (RFC 9110, 8.3.1). */
static bool is_type(struct slice type, const char *name)
{
	return type.len == strlen(name) && !strncasecmp(type.data, name, type.len);
}

/* A body without a type is JSON when it begins like it. */
static enum body body_of(const struct net_request *request)
{
	struct slice type = net_request_header(request, "content-type");
	struct slice parameters;

	if (request->rpc != NET_RPC_NONE)
		return BODY_PROTOBUF;
	type = slice_trim(slice_cut(type, ';', &parameters));
	if (!type.len)
		return request->body.len && request->body.data[0] == '{' ? BODY_JSON
									 : BODY_PROTOBUF;
	if (is_type(type, "application/json"))
		return BODY_JSON;
	return is_type(type, "application/x-protobuf") || is_type(type, "application/protobuf")
		       ? BODY_PROTOBUF
		       : BODY_OTHER;
}

/* The JSON's message in protobuf, to `message`. The request pays for what reading JSON takes. */
static int read_json(struct writing *writing, struct strbuf *message)
{
	struct slice json = writing->request->body;

	if (json.len > JSON_BYTES_MAX)
		return err_set(&writing->err, ERR_LIMIT,
			       "take OTLP: JSON of %zu bytes, more than %zu; send protobuf",
			       json.len, JSON_BYTES_MAX);
	return transcode_from_json(schema_otlp_of(json), json, writing->budget, message,
				   &writing->err);
}

/* The answer's message becomes JSON. */
static int answer_json(struct net_response *response, struct err *err)
{
	struct strbuf json = { 0 };
	int rc = transcode_to_json(&schema_otlp_response, strbuf_slice(&response->body), false,
				   &json, err);

	strbuf_free(&response->body);
	response->body = json;
	response->content_type = "application/json";
	return rc;
}

static int take_otlp(struct writing *writing, struct slice body, struct net_response *response)
{
	struct ingest_partial partial = { 0 };
	const struct append_result *result = &writing->result;
	int rc = ingest_from_otlp(writing->scratch, &writing->limits, body, clock_real_ns(),
				  writing->batch, &partial, &writing->err);

	if (!rc)
		rc = writing_append(writing);
	if (rc)
		return rc;
	writing->rejected = (uint64_t)partial.rejected_profiles;
	if (partial.rejected_profiles)
		(void)err_set(&writing->partial, ERR_INVALID, "%s", partial.message);
	put_partial(&response->body,
		    partial.rejected_profiles + result->reports_late + result->reports_future,
		    partial.message[0] ? partial.message : result->refused);
	put_summary(writing, response);
	response->content_type = "application/x-protobuf";
	return 0;
}

void write_otlp(void *context, const struct net_request *request, struct net_response *response)
{
	struct writing writing;
	int rc = writing_begin(&writing, context, request, WRITING_OTLP);
	enum body body = body_of(request);
	struct strbuf message = { 0 };

	repairs_begin_request();
	if (!rc && body == BODY_OTHER)
		rc = err_set(
			&writing.err, ERR_UNSUPPORTED,
			"content type \"%.*s\": send application/x-protobuf or application/json",
			SLICE_FMT(net_request_header(request, "content-type")));
	if (!rc && body == BODY_JSON)
		rc = read_json(&writing, &message);
	if (!rc)
		rc = take_otlp(&writing, body == BODY_JSON ? strbuf_slice(&message) : request->body,
			       response);
	if (!rc && body == BODY_JSON)
		rc = answer_json(response, &writing.err);
	strbuf_free(&message);
	writing_end(&writing, response);
	if (rc && body == BODY_OTHER)
		response->status = 415;
}

/* Label{ name = 1; value = 2 } */
static int read_label(const struct pb_reader *outer, struct slice bytes, struct ingest_label *ret,
		      struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret = (struct ingest_label){ 0 };
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			ret->name = field.bytes;
		else if (field.wire == PB_BYTES && field.number == 2)
			ret->value = field.bytes;
	}
	return in.problem ? pb_fail(&in, "Label", err) : 0;
}

/* LabelSet{ labels = 1 } */
static int read_labels(const struct pb_reader *outer, struct slice bytes,
		       struct ingest_label *labels, size_t *count, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		int rc;

		if (field.wire != PB_BYTES || field.number != 1)
			continue;
		if (*count == WRITE_LABELS_MAX)
			return err_set(err, ERR_LIMIT, "LabelSet: more than %d labels",
				       WRITE_LABELS_MAX);
		rc = read_label(&in, field.bytes, &labels[(*count)++], err);
		if (rc)
			return rc;
	}
	return in.problem ? pb_fail(&in, "LabelSet", err) : 0;
}

/* RawSample{ raw_profile = 1; executable_info = 2 } */
static int read_sample(const struct pb_reader *outer, struct slice bytes, struct slice *ret,
		       struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret = (struct slice){ 0 };
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			*ret = field.bytes;
	return in.problem ? pb_fail(&in, "RawSample", err) : 0;
}

/* As in push.v1: with __delta__="false" values are of the profile alone; it is no label. */
static bool take_delta_label(struct ingest_label *labels, size_t *count)
{
	bool deltas = false;
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		if (slice_is(labels[i].name, "__delta__"))
			deltas = slice_is(labels[i].value, "false");
		else
			labels[kept++] = labels[i];
	}
	*count = kept;
	return deltas;
}

/* RawProfileSeries{ labels = 1 LabelSet; samples = 2 RawSample } - in any order, so labels first.
 */
static int read_series(struct writing *writing, const struct pb_reader *outer, struct slice bytes)
{
	struct err *err = &writing->err;
	struct ingest_label labels[WRITE_LABELS_MAX];
	struct ingest_pprof profile = { .labels = labels, .now_ns = clock_real_ns() };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			rc = read_labels(&in, field.bytes, labels, &profile.labels_count, err);
	profile.deltas = take_delta_label(labels, &profile.labels_count);
	if (!rc && in.problem)
		return pb_fail(&in, "RawProfileSeries", err);
	in = pb_reader_into(outer, bytes);
	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number != 2)
			continue;
		rc = read_sample(&in, field.bytes, &profile.bytes, err);
		if (!rc)
			rc = ingest_from_pprof(writing->scratch, &writing->limits, &profile,
					       writing->batch, err);
	}
	return rc;
}

/* WriteRawRequest{ tenant = 1; series = 2 RawProfileSeries; normalized = 3 } */
static int read_request(struct writing *writing, unsigned *ret_series)
{
	struct pb_reader in = pb_reader_of(writing->request->body);
	struct pb_field field;
	unsigned index = 0;

	while (pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number != 2)
			continue;
		if (read_series(writing, &in, field.bytes) && !writing_refuse(writing, index))
			return -(int)writing->err.code;
		index++;
	}
	*ret_series = index;
	return in.problem ? pb_fail(&in, "WriteRawRequest", &writing->err) : 0;
}

/* WriteRawResponse is empty but for write_summary.h, so what is refused fails the call. */
void write_raw(void *context, const struct net_request *request, struct net_response *response)
{
	struct writing writing;
	unsigned series = 0;
	int rc = writing_begin(&writing, context, request, WRITING_PARCA);

	repairs_begin_request();
	if (!rc)
		rc = read_request(&writing, &series);
	if (!rc)
		rc = writing_append_rest(&writing, series);
	if (!rc)
		put_summary(&writing, response);
	writing_end(&writing, response);
}
