/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push/profile_decode.h"

#include <assert.h>

#include "codec/archive/compress.h"
#include "codec/archive/frames.h"
#include "codec/profile/firefox.h"
#include "codec/profile/folded.h"
#include "codec/profile/jfr.h"
#include "codec/profile/legacy_pprof.h"
#include "codec/profile/otlp.h"
#include "codec/profile/perf_script.h"
#include "codec/profile/speedscope.h"
#include "codec/wire/pb.h"
#include "server/serve/intake/schema_otlp.h"

#define RECORDING_MAGIC "FIRNREC1"
#define ZSTD_MAGIC "\x28\xb5\x2f\xfd"
#define HEAD_BYTES 4096u /* of JSON, in which its kind is told */

static bool is_folded(struct slice text)
{
	(void)text;
	return true;
}

static const struct {
	const char *text;
	bool (*is)(struct slice text); /* of text formats, asked in this order */
	int (*decode)(struct slice text, struct stack_builder *into, struct err *err);
} forms[PROFILE_FORMS] = {
	[PROFILE_FORM_PPROF] = { "pprof", NULL, NULL },
	[PROFILE_FORM_JFR] = { "Java Flight Recorder", NULL, NULL },
	[PROFILE_FORM_OTLP] = { "OTLP", NULL, NULL },
	[PROFILE_FORM_RECORDING] = { "a recording of firn", NULL, NULL },
	[PROFILE_FORM_LEGACY] = { "legacy pprof", legacy_pprof_is, legacy_pprof_decode },
	[PROFILE_FORM_FIREFOX] = { "Firefox Profiler", firefox_is, firefox_decode },
	[PROFILE_FORM_SPEEDSCOPE] = { "speedscope", speedscope_is, speedscope_decode },
	[PROFILE_FORM_PERF_SCRIPT] = { "perf script", perf_script_is, perf_script_decode },
	/* The last one says what is wrong with a text that is none of them. */
	[PROFILE_FORM_FOLDED] = { "folded stacks", is_folded, folded_decode },
};

const char *profile_form_text(enum profile_form form)
{
	return forms[form].text;
}

/* True if these are the bytes of a Profile: its first field is sample_type, or another known one.
 */
static bool looks_like_pprof(struct slice bytes)
{
	struct pprof profile;
	int rc;

	pprof_init(&profile);
	rc = pprof_decode(bytes, PROFILE_ELEMENTS_MAX, &profile, NULL);
	rc = !rc && profile.sample_types.count && profile.strings.count;
	pprof_free(&profile);
	return rc;
}

/* ExportProfilesServiceRequest{ resource_profiles = 1; dictionary = 2 } with resources in it. */
static bool looks_like_otlp(struct slice bytes)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;
	bool has_resource = false;

	while (pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number > OTLP_REQUEST_DICTIONARY)
			return false;
		has_resource |= field.number == OTLP_REQUEST_RESOURCE_PROFILES;
	}
	return !in.problem && has_resource;
}

static bool looks_like_otlp_json(struct slice text)
{
	struct slice head = slice_trim(text);

	if (head.len > HEAD_BYTES)
		head.len = HEAD_BYTES;
	return head.len && head.data[0] == '{' &&
	       (memmem(head.data, head.len, "\"resourceProfiles\"", 18) ||
		memmem(head.data, head.len, "\"resource_profiles\"", 19));
}

static int unpack(struct profile_decode *decode, struct err *err)
{
	struct slice bytes = decode->bytes;
	int rc;

	if (compress_is_gzip(bytes))
		rc = compress_gunzip(bytes, PROFILE_FILE_BYTES_MAX, &decode->unpacked, err);
	else if (slice_starts_with(bytes, SLICE_LITERAL(ZSTD_MAGIC)))
		rc = compress_unzstd(bytes, PROFILE_FILE_BYTES_MAX, &decode->unpacked, err);
	else if (frames_is_lz4(bytes))
		rc = frames_unlz4(bytes, PROFILE_FILE_BYTES_MAX, &decode->unpacked, err);
	else
		return 0;
	decode->bytes = strbuf_slice(&decode->unpacked);
	return rc;
}

static int turn_from_json(struct profile_decode *decode, struct err *err)
{
	struct strbuf message = { 0 };
	int rc = transcode_from_json(&schema_otlp_request, decode->bytes, NULL, &message, err);

	strbuf_free(&decode->unpacked);
	decode->unpacked = message;
	decode->bytes = strbuf_slice(&decode->unpacked);
	return rc;
}

int profile_decode_open(struct profile_decode *decode, struct slice bytes, struct err *err)
{
	int rc;

	*decode = (struct profile_decode){ .form = PROFILE_FORM_PPROF, .bytes = bytes };
	rc = unpack(decode, err);
	if (rc)
		return rc;
	bytes = decode->bytes;
	if (!bytes.len)
		return err_set(err, ERR_INVALID, "the file is empty");
	if (slice_starts_with(bytes, SLICE_LITERAL(RECORDING_MAGIC))) {
		decode->form = PROFILE_FORM_RECORDING;
		decode->bytes = slice_tail(bytes, sizeof(RECORDING_MAGIC) - 1);
	} else if (jfr_is(bytes)) {
		decode->form = PROFILE_FORM_JFR;
	} else if (looks_like_pprof(bytes)) {
		decode->form = PROFILE_FORM_PPROF;
	} else if (looks_like_otlp(bytes)) {
		decode->form = PROFILE_FORM_OTLP;
	} else if (looks_like_otlp_json(bytes)) {
		decode->form = PROFILE_FORM_OTLP;
		rc = turn_from_json(decode, err);
	} else {
		decode->form = PROFILE_FORM_LEGACY;
		while (!forms[decode->form].is(bytes))
			decode->form++;
	}
	return rc;
}

void profile_decode_close(struct profile_decode *decode)
{
	strbuf_free(&decode->unpacked);
	*decode = (struct profile_decode){ 0 };
}

static int each_of_pprof(const struct profile_decode *decode, profile_take_f *take, void *context,
			 struct err *err)
{
	struct pprof profile;
	int rc;

	pprof_init(&profile);
	rc = pprof_decode(decode->bytes, PROFILE_ELEMENTS_MAX, &profile, err);
	if (!rc)
		rc = take(context, &profile, "", err);
	pprof_free(&profile);
	return rc;
}

/* Every kind that it has, the first one first: that is what a file is by default. */
static int each_of_jfr(const struct profile_decode *decode, profile_take_f *take, void *context,
		       struct err *err)
{
	struct jfr jfr;
	int rc = jfr_decode(decode->bytes, NULL, PROFILE_ELEMENTS_MAX, NULL, &jfr, err);

	for (int i = 0; i < JFR_KINDS && !rc; i++)
		if (jfr.built[i].strings)
			rc = take(context, &jfr.built[i].profile, jfr_name((enum jfr_kind)i), err);
	jfr_free(&jfr);
	return rc;
}

static int each_of_text(const struct profile_decode *decode, profile_take_f *take, void *context,
			struct err *err)
{
	struct stack_builder builder;
	int rc;

	stack_builder_init(&builder, PROFILE_ELEMENTS_MAX, NULL);
	rc = forms[decode->form].decode(decode->bytes, &builder, err);
	if (!rc)
		rc = take(context, &builder.profile, "", err);
	stack_builder_free(&builder);
	return rc;
}

int profile_decode_each(const struct profile_decode *decode, profile_take_f *take, void *context,
			struct err *err)
{
	assert(decode->form != PROFILE_FORM_OTLP && decode->form != PROFILE_FORM_RECORDING);
	if (decode->form == PROFILE_FORM_PPROF)
		return each_of_pprof(decode, take, context, err);
	if (decode->form == PROFILE_FORM_JFR)
		return each_of_jfr(decode, take, context, err);
	return each_of_text(decode, take, context, err);
}
