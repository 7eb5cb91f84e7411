/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repairs - the metrics of ingest: what it repaired, dropped, refused and accepted.
 *
 * Every kind of repair has a line here; nothing is dropped without one. Thread-safe.
 */
#ifndef FIRN_SERVER_INGEST_REPAIRS_H
#define FIRN_SERVER_INGEST_REPAIRS_H

#include "base/err.h"
#include "codec/profile/otlp.h"

/* The metric's label `reason`, and what it counts. */
#define REPAIRS(X)                                                                                 \
	X(ADDRESS, "address", "addresses outside their mapping, kept as they were")                \
	X(ATTRIBUTE_INDEX, "attribute_index", "attribute indexes that led nowhere")                \
	X(DEEP_STACK, "deep_stack", "stacks cut at the depth limit")                               \
	X(DUPLICATE_ID, "duplicate_id", "ids used twice in a profile; the first counts")           \
	X(DURATION, "duration", "negative or absurd durations, taken as none")                     \
	X(FUNCTION_ID, "function_id", "lines without a function")                                  \
	X(LABEL_DUPLICATE, "label_duplicate", "labels given twice; the last counts")               \
	X(LABEL_EMPTY, "label_empty", "labels without a name, dropped")                            \
	X(LABEL_RESERVED, "label_reserved", "labels whose name begins with __, dropped")           \
	X(LABELS_MANY, "labels_many", "labels of samples beyond the limit, dropped")               \
	X(LINE_NUMBER, "line_number", "line numbers out of range, taken as unknown")               \
	X(LOCATION_ID, "location_id", "location ids that led nowhere")                             \
	X(LONG_STRING, "long_string", "strings cut at the length limit")                           \
	X(MAPPING_ID, "mapping_id", "mapping ids that led nowhere")                                \
	X(MOMENTS_MANY, "moments_many", "times of samples beyond the limit of a report, dropped")  \
	X(NEGATIVE_VALUE, "negative_value", "negative values of samples, taken as zero")           \
	X(PROCESS_IDENTITY, "process_identity", "attributes naming one process, not made labels")  \
	X(STACK_INDEX, "stack_index", "stack indexes that led nowhere")                            \
	X(STRING_INDEX, "string_index", "string indexes that led nowhere, taken as empty")         \
	X(TIME_MISSING, "time_missing", "profiles without a time, taken as now")                   \
	X(TIME_UNIT, "time_unit", "times in a wrong unit, converted to nanoseconds")               \
	X(TRACE_CONTEXT, "trace_context",                                                          \
	  "trace or span ids of the wrong length, or that are not there")                          \
	X(TYPE_TEXT, "type_text", "characters of type names that no query could contain")          \
	X(UTF8, "utf8", "strings that were not UTF-8")                                             \
	X(VALUE_OVERFLOW, "value_overflow", "sums beyond 64 bits, held at the largest value")      \
	X(ZERO_SAMPLE, "zero_sample", "samples whose values are all zero, dropped")

enum repair {
#define X(id, reason, help) REPAIR_##id,
	REPAIRS(X)
#undef X
		REPAIR_KINDS
};

enum ingest_door { DOOR_PPROF, DOOR_OTLP, DOORS };

void repairs_register_metrics(void); /* may be called again */

void repairs_count(enum repair repair, int64_t count);
int64_t repairs_counted(enum repair repair);  /* since the process began */
const char *repairs_text(enum repair repair); /* what it counts */

/* The repairs of this thread since it began to count. */
void repairs_begin_request(void);
int64_t repairs_in_request(enum repair repair);

/* A request that came in, whole; one that went well; one that was refused. */
void repairs_count_request(enum ingest_door door, size_t bytes);
void repairs_count_dialect(enum otlp_dialect dialect);
void repairs_count_taken(uint64_t reports, uint64_t rows);
void repairs_count_refused(enum err_code code);
void repairs_count_rejected_profile(void);

#endif
