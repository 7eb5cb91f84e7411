/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_decode - unpacks a profile file of any format that firn reads, recognises the format by
 * its content, and converts it to pprof if that can hold all of it.
 *
 * One profile is one pprof; a flight recording has one for each of its kinds. OTLP requests and
 * firn's own recordings are not converted: callers use their bytes. One thread.
 */
#ifndef FIRN_CLI_PUSH_PROFILE_DECODE_H
#define FIRN_CLI_PUSH_PROFILE_DECODE_H

#include "base/strbuf.h"
#include "codec/profile/pprof.h"

#define PROFILE_FILE_BYTES_MAX ((size_t)2 << 30)
#define PROFILE_ELEMENTS_MAX ((size_t)1 << 28)

enum profile_form {
	PROFILE_FORM_PPROF,
	PROFILE_FORM_JFR,
	PROFILE_FORM_OTLP,
	PROFILE_FORM_RECORDING, /* docs/formats/recording.md */
	PROFILE_FORM_LEGACY,
	PROFILE_FORM_FIREFOX,
	PROFILE_FORM_SPEEDSCOPE,
	PROFILE_FORM_PERF_SCRIPT,
	PROFILE_FORM_FOLDED,
	PROFILE_FORMS
};

struct profile_decode {
	enum profile_form form;
	struct slice
		bytes; /* unpacked; of OTLP the protobuf, of a recording what tables_decode reads */
	struct strbuf unpacked; /* what `bytes` points into, unless it is the input */
};

/*
 * Unpacks gzip, zstd and LZ4, and finds the form. `bytes` is borrowed until profile_decode_close,
 * which is due in any case.
 */
MUST_USE int profile_decode_open(struct profile_decode *decode, struct slice bytes,
				 struct err *err);
void profile_decode_close(struct profile_decode *decode);

const char *profile_form_text(enum profile_form form); /* "pprof", "Java Flight Recorder" */

/*
 * Hands each profile to `take`, whose first failure ends it. `name` is what the format calls the
 * profile, or empty. The profile may be changed before it is encoded, and is gone after the call.
 * Not for OTLP and recordings.
 */
typedef int profile_take_f(void *context, struct pprof *profile, const char *name, struct err *err);
MUST_USE int profile_decode_each(const struct profile_decode *decode, profile_take_f *take,
				 void *context, struct err *err);

#endif
