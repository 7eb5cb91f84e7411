/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp - ExportProfilesServiceRequest of OTLP Profiles (opentelemetry-proto, package
 * profiles/v1development) from bytes to columns, in the dialects 1.5 and 1.7 to 1.11.
 *
 * The dialects share a package name but not their field numbers, and a request does not say which
 * it is: otlp_dialect.h tells it from the fields' wire types, once per request, before decoding.
 * Requests of 1.5 and 1.7, which are laid out otherwise (tables in each profile; several values
 * per sample; ranges of locations instead of stacks), become the same columns: one profile for
 * each of their sample types, a stack for each of their samples.
 *
 * Decoding is structural only, as for pprof: indexes may point anywhere, strings may be anything;
 * server/ingest checks and repairs meaning. Slices point into the input, which must outlive the
 * struct; the columns are kept from call to call (reuse one struct per thread).
 *
 * Field numbers that encoders need are public here: OTLP_* of dialect 1.10.
 */
#ifndef FIRN_CODEC_PROFILE_OTLP_H
#define FIRN_CODEC_PROFILE_OTLP_H

#include "base/err.h"
#include "base/slice.h"
#include "codec/wire/column.h"

enum otlp_dialect {
	OTLP_1_5,
	OTLP_1_7,
	OTLP_1_8,
	OTLP_1_9,
	OTLP_1_10, /* 1.11 too */
	OTLP_DIALECTS
};

enum otlp_field {
	OTLP_REQUEST_RESOURCE_PROFILES = 1,
	OTLP_REQUEST_DICTIONARY = 2,

	OTLP_DICTIONARY_MAPPING_TABLE = 1,
	OTLP_DICTIONARY_LOCATION_TABLE = 2,
	OTLP_DICTIONARY_FUNCTION_TABLE = 3,
	OTLP_DICTIONARY_LINK_TABLE = 4,
	OTLP_DICTIONARY_STRING_TABLE = 5,
	OTLP_DICTIONARY_ATTRIBUTE_TABLE = 6,
	OTLP_DICTIONARY_STACK_TABLE = 7,

	OTLP_RESOURCE_PROFILES_RESOURCE = 1,
	OTLP_RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	OTLP_RESOURCE_ATTRIBUTES = 1,
	OTLP_SCOPE_PROFILES_SCOPE = 1,
	OTLP_SCOPE_PROFILES_PROFILES = 2,
	OTLP_SCOPE_NAME = 1,
	OTLP_SCOPE_VERSION = 2,
	OTLP_SCOPE_ATTRIBUTES = 3,

	OTLP_PROFILE_SAMPLE_TYPE = 1,
	OTLP_PROFILE_SAMPLES = 2,
	OTLP_PROFILE_TIME_UNIX_NANO = 3,
	OTLP_PROFILE_DURATION_NANO = 4,
	OTLP_PROFILE_PERIOD_TYPE = 5,
	OTLP_PROFILE_PERIOD = 6,
	OTLP_PROFILE_PROFILE_ID = 7,
	OTLP_PROFILE_ATTRIBUTE_INDICES = 11,

	OTLP_VALUE_TYPE_TYPE = 1,
	OTLP_VALUE_TYPE_UNIT = 2,
	OTLP_VALUE_TYPE_TEMPORALITY = 3, /* up to 1.8 */

	OTLP_SAMPLE_STACK_INDEX = 1,
	OTLP_SAMPLE_ATTRIBUTE_INDICES = 2,
	OTLP_SAMPLE_LINK_INDEX = 3,
	OTLP_SAMPLE_VALUES = 4,
	OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO = 5,

	OTLP_STACK_LOCATION_INDICES = 1,

	OTLP_LINK_TRACE_ID = 1,
	OTLP_LINK_SPAN_ID = 2,

	OTLP_LOCATION_MAPPING_INDEX = 1,
	OTLP_LOCATION_ADDRESS = 2,
	OTLP_LOCATION_LINES = 3,
	OTLP_LOCATION_ATTRIBUTE_INDICES = 4,

	OTLP_LINE_FUNCTION_INDEX = 1,
	OTLP_LINE_LINE = 2,
	OTLP_LINE_COLUMN = 3,

	OTLP_FUNCTION_NAME = 1,
	OTLP_FUNCTION_SYSTEM_NAME = 2,
	OTLP_FUNCTION_FILENAME = 3,
	OTLP_FUNCTION_START_LINE = 4,

	OTLP_MAPPING_MEMORY_START = 1,
	OTLP_MAPPING_MEMORY_LIMIT = 2,
	OTLP_MAPPING_FILE_OFFSET = 3,
	OTLP_MAPPING_FILENAME = 4,
	OTLP_MAPPING_ATTRIBUTE_INDICES = 5,

	OTLP_ATTRIBUTE_KEY = 1,
	OTLP_ATTRIBUTE_VALUE = 2,
	OTLP_ATTRIBUTE_UNIT = 3,

	OTLP_KEY_VALUE_KEY = 1,
	OTLP_KEY_VALUE_VALUE = 2,
	OTLP_KEY_VALUE_KEY_STRINDEX = 3,

	OTLP_ANY_STRING = 1,
	OTLP_ANY_BOOL = 2,
	OTLP_ANY_INT = 3,
	OTLP_ANY_DOUBLE = 4,
	OTLP_ANY_ARRAY = 5,
	OTLP_ANY_KVLIST = 6,
	OTLP_ANY_BYTES = 7,
	OTLP_ANY_STRING_STRINDEX = 8,
};

/* A run of otlp.numbers (indexes, values). */
struct otlp_run {
	uint32_t first, count;
};

struct otlp_value_type {
	int64_t type, unit;   /* string indexes */
	uint64_t temporality; /* 1.8: 1 delta, 2 cumulative; 0 otherwise */
};
struct otlp_mapping {
	uint64_t memory_start, memory_limit, file_offset;
	int64_t filename;
	struct otlp_run attributes;
};
struct otlp_line {
	int64_t function, line, column;
};
struct otlp_location {
	int64_t mapping;
	uint64_t address;
	uint32_t line_first, line_count; /* innermost inlined first */
	struct otlp_run attributes;
};
struct otlp_function {
	int64_t name, system_name, filename, start_line;
};
/* Resource and scope attributes name their key by text or by index; table attributes by index. */
struct otlp_attribute {
	struct slice key;
	int64_t key_index; /* counts when key is empty */
	int64_t unit_index;
	struct slice value; /* AnyValue, not decoded: see otlp_any_decode */
};
struct otlp_sample {
	int64_t stack, link;
	struct otlp_run attributes, values, timestamps;
};
/*
 * Indexes of locations, leaf first. Mostly as they came, packed varints: stacks that follow each
 * other have most of their bytes in common, so who compares these need not read all numbers.
 */
struct otlp_stack {
	struct slice packed;   /* whole, but a number may be longer than 10 bytes */
	struct otlp_run apart; /* counts when `packed` is empty: of other encodings */
};
struct otlp_link {
	struct slice trace_id, span_id;
};
struct otlp_profile {
	struct otlp_value_type sample_type, period_type;
	uint64_t time_unix_nano, duration_nano;
	int64_t period;
	struct slice profile_id;
	struct otlp_run attributes;
	uint32_t sample_first, sample_count;
	uint32_t scope;
};
struct otlp_scope {
	struct slice name;
	uint32_t attribute_first, attribute_count; /* into own_attributes */
	uint32_t resource;
};
struct otlp_resource {
	struct slice bytes;			   /* the Resource message, for content hashes */
	uint32_t attribute_first, attribute_count; /* into own_attributes */
};

struct otlp {
	struct budget *budget;		  /* pays for the columns; NULL: nobody */
	size_t samples_max, profiles_max; /* 0: as all other elements */
	enum otlp_dialect dialect;
	COLUMN(struct otlp_resource) resources;
	COLUMN(struct otlp_scope) scopes;
	COLUMN(struct otlp_profile) profiles;
	COLUMN(struct otlp_sample) samples;
	COLUMN(struct otlp_attribute) own_attributes; /* of resources and scopes */
	COLUMN(uint64_t) numbers;
	COLUMN(struct otlp_mapping) mappings;
	COLUMN(struct otlp_location) locations;
	COLUMN(struct otlp_line) lines;
	COLUMN(struct otlp_function) functions;
	COLUMN(struct slice) strings;
	COLUMN(struct otlp_attribute) attributes; /* the dictionary's */
	COLUMN(struct otlp_stack) stacks;
	size_t stack_bytes; /* packed, of all stacks */
	COLUMN(struct otlp_link) links;
};

void otlp_init(struct otlp *request); /* before the budget and the limits are set */
void otlp_free(struct otlp *request);

/*
 * elements_max bounds each column (ERR_LIMIT), and the budget their memory (ERR_LIMIT, or
 * ERR_NO_MEMORY when others have it); ERR_INVALID names message, field and offset.
 * On an error *ret holds what was read so far.
 */
int otlp_decode(struct slice bytes, size_t elements_max, struct otlp *ret, struct err *err);

/* AnyValue, one level deep: arrays and lists stay bytes. */
enum otlp_any_type {
	OTLP_TYPE_EMPTY,
	OTLP_TYPE_STRING,
	OTLP_TYPE_BOOL,
	OTLP_TYPE_INT,
	OTLP_TYPE_DOUBLE,
	OTLP_TYPE_ARRAY,
	OTLP_TYPE_KVLIST,
	OTLP_TYPE_BYTES,
};
struct otlp_any {
	enum otlp_any_type type;
	struct slice bytes; /* string, array, kvlist, bytes */
	int64_t number;	    /* int; bool as 0 or 1 */
	double real;
	bool dangling; /* a string reference led nowhere */
};
/* Resolves string references in `request`'s dictionary (a dangling one is "", and marked). */
int otlp_any_decode(const struct otlp *request, struct slice bytes, struct otlp_any *ret,
		    struct err *err);

/* The string at an index, or "" with *ret_dangling set when there is none. */
struct slice otlp_string(const struct otlp *request, int64_t index, bool *ret_dangling);

#endif
