/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otel_context - reads OpenTelemetry's process context (OTEP 4719) of a program: its service's name
 * and version, its environment, and other resource attributes.
 *
 *   /proc/PID/maps -> a mapping called OTEL_CTX -> header of 32 bytes -> the payload, anywhere in
 *   the process's memory: a protobuf message ProcessContext { Resource resource = 1; repeated
 *   KeyValue attributes = 2; }
 *
 * An attribute `service.name` becomes the meta label `__meta_otel_service_name`. Texts, numbers and
 * booleans are used; lists, maps and bytes are left out. The input is hostile: bounded by
 * OTEL_CONTEXT_BYTES_MAX and the limits of meta_labels.
 */
#ifndef FIRN_AGENT_IDENTIFY_OTEL_CONTEXT_H
#define FIRN_AGENT_IDENTIFY_OTEL_CONTEXT_H

#include "agent/identify/meta_labels.h"
#include "base/err.h"

#define OTEL_META "__meta_otel_"
#define OTEL_CONTEXT_HEADER_BYTES 32
#define OTEL_CONTEXT_BYTES_MAX ((uint32_t)64 << 10)

struct otel_context_header {
	uint64_t published_ns; /* changes with each context; never 0 */
	uint64_t address;      /* of the payload, in the process */
	uint32_t bytes;
};

/* True if a line of /proc/PID/maps is of the header's mapping; where it begins. */
bool otel_context_is_mapping(struct slice line, uint64_t *ret_start);

/* False: no context of a known version, or one that is just being written. */
bool otel_context_header_parse(const uint8_t bytes[static OTEL_CONTEXT_HEADER_BYTES],
			       struct otel_context_header *ret);

/* ERR_INVALID when it is no such message; what came before that is in `ret`. */
int otel_context_decode(struct slice payload, struct meta_labels *ret, struct err *err);

/*
 * OTEL_RESOURCE_ATTRIBUTES of the environment: "key=value,key=value", with %XX in values. What is
 * there already stays.
 */
void otel_context_add_variable(struct slice text, struct meta_labels *ret);

#endif
