/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_name - what a function is called in an answer: readable, as much of it as was asked
 * for, and beside it as the binary or the runtime has it. Thread-safe.
 */
#ifndef FIRN_SERVER_QUERY_NAME_FUNCTION_NAME_H
#define FIRN_SERVER_QUERY_NAME_FUNCTION_NAME_H

#include "model/tables.h"
#include "server/resolve/display/demangle.h"

struct function_name {
	struct slice name;	  /* as the source or the producer says; may be empty */
	struct slice system_name; /* mangled, or empty */
	enum frame_kind kind;
};

/*
 * The name to show, in `arena` or one of the two given. A name that its producer has made readable
 * stays as it is in full.
 */
struct slice function_name_shown(const struct function_name *function, enum demangle_mode mode,
				 struct arena *arena);

#endif
