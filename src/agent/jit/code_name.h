/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_name - parses the names that runtimes write for generated code into function, file and line.
 *
 * Only known forms are parsed; any other name is the function as it is:
 *
 *     JS:*parse /srv/app/a.js:12:3         V8: kind:tier and name, file:line:column (Node.js)
 *     LazyCompile:~  node:internal/x:1:1   V8 before version 9.2; no name: "(anonymous)"
 *     Builtin:ArrayMap                     V8's own code: as it stands
 *     py::Reader.next:/srv/app/b.py        CPython
 *
 * The other runtimes are told by what the process has mapped. Slices point into the given place.
 */
#ifndef FIRN_AGENT_JIT_CODE_NAME_H
#define FIRN_AGENT_JIT_CODE_NAME_H

#include "agent/jit/code_map.h"
#include "model/tables.h"

struct code_name {
	enum frame_kind kind;
	struct slice function;
	struct slice file; /* empty = not known */
	uint32_t line;	   /* where the function begins; 0 = not known */
};

/* `runtime` is the kind of what cannot be told by its name. */
void code_name_parse(const struct code_place *place, enum frame_kind runtime,
		     struct code_name *ret);

/* The runtime that a mapped file belongs to; FRAME_NATIVE = none that we know. */
enum frame_kind code_name_runtime(struct slice path);

#endif
