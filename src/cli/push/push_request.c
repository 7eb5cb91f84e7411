/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push/push_request.h"

#include "agent/export/encode_otlp.h"
#include "codec/archive/compress.h"
#include "codec/profile/otlp.h"
#include "codec/wire/pb.h"
#include "server/ingest/ingest.h"
#include "server/persist/log/tables_codec.h"

#define GZIP_LEVEL 1
#define PPROF_TIME_NANOS 9
#define WRITE_RAW "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
#define OTLP_EXPORT "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

struct making {
	const struct push_about *about;
	const struct profile_decode *decode;
	struct push_request *request;
};

static int cut_label(const char *text, struct slice *ret_key, struct slice *ret_value,
		     struct err *err)
{
	*ret_key = slice_cut(slice_of(text), '=', ret_value);
	if (!ret_key->len || !strchr(text, '='))
		return err_set(err, ERR_INVALID, "--label: \"%s\" is not KEY=VALUE", text);
	return 0;
}

/* Parca: WriteRawRequest{ series = 2 { labels = 1 { labels = 1 }; samples = 2 { raw_profile = 1 } }
 * }
 */

static void put_label(struct strbuf *out, struct slice name, struct slice value)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, name);
	pb_put_bytes(out, 2, value);
	pb_end(out, begun);
}

static int put_labels(const struct push_about *about, struct slice name, bool deltas,
		      struct strbuf *out, struct err *err)
{
	size_t begun = pb_begin(out, 1);

	put_label(out, SLICE_LITERAL("__name__"), name);
	if (deltas)
		put_label(out, SLICE_LITERAL("__delta__"), SLICE_LITERAL("false"));
	for (size_t i = 0; i < about->labels->count; i++) {
		struct slice key, value;
		int rc = cut_label(about->labels->items[i], &key, &value, err);

		if (rc)
			return rc;
		put_label(out, key, value);
	}
	pb_end(out, begun);
	return 0;
}

/* Stacks that were counted for a while; a heap is what it is since the program's start. */
static bool is_amount(const struct making *making, struct slice name)
{
	return making->decode->form != PROFILE_FORM_PPROF &&
	       !(making->decode->form == PROFILE_FORM_LEGACY && slice_is(name, "memory"));
}

static void encode(const struct making *making, const struct pprof *profile, struct strbuf *out)
{
	struct strbuf plain = { 0 };

	if (making->decode->form == PROFILE_FORM_PPROF)
		strbuf_add_slice(&plain, making->decode->bytes);
	else
		pprof_encode(profile, &plain);
	if (!profile->time_nanos) {
		making->request->timed_by_file = true;
		pb_put_varint(&plain, PPROF_TIME_NANOS, (uint64_t)making->about->file_time_ns);
	}
	compress_gzip(strbuf_slice(&plain), GZIP_LEVEL, out);
	strbuf_free(&plain);
}

static int put_series(void *context, struct pprof *profile, const char *given, struct err *err)
{
	const struct making *making = context;
	struct strbuf *out = &making->request->message, encoded = { 0 };
	size_t series = pb_begin(out, 2), sample;
	struct slice name = slice_of(making->about->name ? making->about->name : given);
	int rc;

	if (!name.len)
		name = ingest_default_name(profile, making->about->stem);
	rc = put_labels(making->about, name, is_amount(making, name), out, err);
	if (rc)
		return rc;
	encode(making, profile, &encoded);
	sample = pb_begin(out, 2);
	pb_put_bytes(out, 1, strbuf_slice(&encoded));
	pb_end(out, sample);
	pb_end(out, series);
	strbuf_free(&encoded);
	making->request->profiles++;
	return 0;
}

/* OTLP: labels become attributes of each resource, behind those that it has: the last one counts.
 */

/* KeyValue{ key = 1; value = 2 AnyValue{ string_value = 1 } } */
static int put_attributes(const struct push_about *about, struct strbuf *out, struct err *err)
{
	for (size_t i = 0; i < about->labels->count; i++) {
		struct slice key, value;
		int rc = cut_label(about->labels->items[i], &key, &value, err);
		size_t attribute, any;

		if (rc)
			return rc;
		attribute = pb_begin(out, OTLP_RESOURCE_ATTRIBUTES);
		pb_put_bytes(out, 1, key);
		any = pb_begin(out, 2);
		pb_put_bytes_always(out, 1, value);
		pb_end(out, any);
		pb_end(out, attribute);
	}
	return 0;
}

static void put_field(const struct pb_field *field, struct strbuf *out)
{
	if (field->wire == PB_BYTES)
		pb_put_bytes_always(out, field->number, field->bytes);
	else if (field->wire == PB_VARINT)
		pb_put_varint_always(out, field->number, field->value);
	else if (field->wire == PB_FIXED64)
		pb_put_fixed64(out, field->number, field->value);
}

/* ResourceProfiles{ resource = 1; .. }, with one resource that has all that there are, and ours. */
static int put_resource(const struct push_about *about, struct slice bytes, struct strbuf *out,
			struct err *err)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;
	size_t resource = pb_begin(out, OTLP_RESOURCE_PROFILES_RESOURCE);
	int rc;

	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == OTLP_RESOURCE_PROFILES_RESOURCE)
			strbuf_add_slice(out, field.bytes);
	rc = put_attributes(about, out, err);
	pb_end(out, resource);
	if (rc || in.problem)
		return rc ? rc : pb_fail(&in, "ResourceProfiles", err);
	in = pb_reader_of(bytes);
	while (pb_next(&in, &field))
		if (field.wire != PB_BYTES || field.number != OTLP_RESOURCE_PROFILES_RESOURCE)
			put_field(&field, out);
	return 0;
}

static int put_otlp(const struct push_about *about, struct slice bytes, struct strbuf *out,
		    struct err *err)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;
	int rc = 0;

	if (about->name)
		return err_set(err, ERR_INVALID,
			       "--name: its profiles have names of their own; leave it out");
	if (!about->labels->count) {
		strbuf_add_slice(out, bytes);
		return 0;
	}
	while (!rc && pb_next(&in, &field)) {
		size_t begun;

		if (field.wire != PB_BYTES || field.number != OTLP_REQUEST_RESOURCE_PROFILES) {
			put_field(&field, out);
			continue;
		}
		begun = pb_begin(out, OTLP_REQUEST_RESOURCE_PROFILES);
		rc = put_resource(about, field.bytes, out, err);
		pb_end(out, begun);
	}
	return !rc && in.problem ? pb_fail(&in, "ExportProfilesServiceRequest", err) : rc;
}

static int put_recording(const struct push_about *about, struct slice bytes, struct strbuf *out,
			 struct err *err)
{
	struct tables_image image = { 0 };
	struct strbuf plain = { 0 };
	int rc = tables_decode(bytes, PROFILE_FILE_BYTES_MAX, &image, err);

	if (!rc) {
		encode_otlp(&image.view, &plain);
		rc = put_otlp(about, strbuf_slice(&plain), out, err);
		tables_image_free(&image);
	}
	strbuf_free(&plain);
	return rc;
}

int push_request_make(struct slice file, const struct push_about *about, struct push_request *ret,
		      struct err *err)
{
	struct profile_decode decode;
	struct making making = { about, &decode, ret };
	int rc;

	*ret = (struct push_request){ .path = OTLP_EXPORT };
	rc = profile_decode_open(&decode, file, err);
	ret->form = decode.form;
	if (!rc && decode.form == PROFILE_FORM_OTLP) {
		rc = put_otlp(about, decode.bytes, &ret->message, err);
	} else if (!rc && decode.form == PROFILE_FORM_RECORDING) {
		rc = put_recording(about, decode.bytes, &ret->message, err);
	} else if (!rc) {
		ret->path = WRITE_RAW;
		rc = profile_decode_each(&decode, put_series, &making, err);
	}
	profile_decode_close(&decode);
	return rc;
}

void push_request_free(struct push_request *request)
{
	strbuf_free(&request->message);
	*request = (struct push_request){ 0 };
}
