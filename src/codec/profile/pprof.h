/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof - perftools.profiles.Profile (github.com/google/pprof proto/profile.proto) to and from
 * columns.
 *
 * Decoding is one streaming pass without an allocation per element: strings stay slices into the
 * input, which must outlive the struct; the arrays are kept from call to call (reuse one struct
 * per thread). Decoding is structural only: ids may dangle, string indexes may be out of range.
 * Meaning is checked and repaired by server/ingest. Limits are the caller's.
 */
#ifndef FIRN_CODEC_PROFILE_PPROF_H
#define FIRN_CODEC_PROFILE_PPROF_H

#include "base/err.h"
#include "base/strbuf.h"
#include "codec/wire/column.h"

struct pprof_value_type {
	int64_t type, unit; /* string indexes, as all `int64_t` names below */
};
struct pprof_label {
	int64_t key, str, num, num_unit;
};
struct pprof_sample {
	uint32_t location_first, location_count; /* into location_ids, leaf first */
	uint32_t value_first, value_count;
	uint32_t label_first, label_count;
};
struct pprof_mapping {
	uint64_t id, memory_start, memory_limit, file_offset;
	int64_t filename, build_id;
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};
struct pprof_line {
	uint64_t function_id;
	int64_t line, column;
};
struct pprof_location {
	uint64_t id, mapping_id, address;
	uint32_t line_first, line_count; /* innermost inlined first */
	bool is_folded;
};
struct pprof_function {
	uint64_t id;
	int64_t name, system_name, filename, start_line;
};

struct pprof {
	struct budget *budget; /* pays for the columns; NULL: nobody */
	size_t samples_max;    /* 0: as all other elements */
	COLUMN(struct pprof_value_type) sample_types;
	COLUMN(struct pprof_sample) samples;
	COLUMN(uint64_t) location_ids;
	COLUMN(int64_t) values;
	COLUMN(struct pprof_label) labels;
	COLUMN(struct pprof_mapping) mappings;
	COLUMN(struct pprof_location) locations;
	COLUMN(struct pprof_line) lines;
	COLUMN(struct pprof_function) functions;
	COLUMN(struct slice) strings;
	COLUMN(int64_t) comments;
	struct pprof_value_type period_type;
	int64_t drop_frames, keep_frames, time_nanos, duration_nanos, period;
	int64_t default_sample_type, doc_url;
};

void pprof_init(struct pprof *profile); /* before `budget` and `samples_max` are set */
void pprof_free(struct pprof *profile);
void pprof_clear(struct pprof *profile); /* empty, memory kept */

/*
 * `bytes` is the protobuf, already decompressed; elements_max bounds each column, and the budget
 * their memory: ERR_LIMIT, or ERR_NO_MEMORY when others have it. Errors of form name message,
 * field number and offset. All leave *ret with what was read so far. Two profiles glued
 * together are refused.
 */
int pprof_decode(struct slice bytes, size_t elements_max, struct pprof *ret, struct err *err);

/* Writes the protobuf (not compressed). The struct must be well-formed (our own). */
void pprof_encode(const struct pprof *profile, struct strbuf *out);

/*
 * Interns strings into an empty profile ("" gets index 0). The texts belong to the builder: free
 * it after the profile's last use. The profile's budget pays; where it does not, the builder is
 * broke from then on and new texts become "".
 */
struct pprof_builder;
struct pprof_builder *pprof_builder_new(struct pprof *profile);
void pprof_builder_free(struct pprof_builder *builder);
int64_t pprof_builder_string(struct pprof_builder *builder, struct slice text); /* copies text */
bool pprof_builder_is_broke(const struct pprof_builder *builder);

#endif
