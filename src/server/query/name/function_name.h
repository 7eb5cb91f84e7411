/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_name - the name of a function in an answer, shortened as the query asks, and its system
 * name (as the binary or the runtime has it). Thread-safe.
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
 * The name to show; it lives in `arena`, or is one of the two given. In mode full, a name that its
 * producer has made readable stays as it is.
 */
struct slice function_name_shown(const struct function_name *function, enum demangle_mode mode,
				 struct arena *arena);

#endif
