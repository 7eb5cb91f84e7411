/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle - names of C++ and Rust (legacy and v0) as their sources write them.
 *
 * Parameter lists are kept, Rust's hash suffix is not. Thread-safe.
 */
#ifndef FIRN_SERVER_RESOLVE_DEMANGLE_H
#define FIRN_SERVER_RESOLVE_DEMANGLE_H

#include "base/arena.h"

#define DEMANGLE_INPUT_BYTES_MAX ((size_t)64 * 1024)
#define DEMANGLE_OUTPUT_BYTES_MAX ((size_t)64 * 1024)

/*
 * True and the name, in `arena`, when `name` is mangled and can be read. A name over the limits
 * is left as it is: short inputs can stand for outputs of any length.
 */
bool demangle(struct slice name, struct arena *arena, struct slice *ret);

/* Whether a name has the form of a mangled one. */
bool demangle_is_mangled(struct slice name);

#endif
