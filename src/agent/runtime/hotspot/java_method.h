/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_method - reads the name, file and lines of a Method of HotSpot.
 *
 *   Method -> ConstMethod -> ConstantPool -> Klass -> Symbols
 *
 * Bounds: names of JAVA_NAME_MAX bytes (longer ones are cut), tables of lines of JAVA_LINES_MAX
 * entries, and some ten reads, whatever is there.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_METHOD_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_METHOD_H

#include "agent/runtime/hotspot/hotspot_layout.h"
#include "agent/runtime/memory_reader.h"
#include "base/slice.h"

#define JAVA_NAME_MAX 1024u
#define JAVA_LINES_MAX 8192u

struct java_line {
	uint16_t bci, line; /* of the bytecodes from there on */
};

struct java_method {
	char *function; /* "java.util.HashMap.put" */
	char *file;	/* "java/util/HashMap.java"; "" = not known */
	struct java_line *lines;
	uint32_t lines_count;
	uint32_t proof; /* see bpf/jvm.h */
};

/* False when there is no method, and nothing to be freed. */
bool java_method_read(const struct memory_reader *memory, const struct hotspot_layout *layout,
		      uint64_t address, struct java_method *ret);

void java_method_fini(struct java_method *method);
size_t java_method_bytes(const struct java_method *method);

/* 0 = not known. */
uint32_t java_method_line(const struct java_method *method, uint32_t bci);
uint32_t java_method_first_line(const struct java_method *method);

#endif
