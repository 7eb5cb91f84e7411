/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle - names of C++, Rust (legacy and v0), D and OCaml as their sources write them.
 *
 * Rust's hash suffix is left out, and so is OCaml's stamp. Swift's names stay as they are.
 * Thread-safe.
 */
#ifndef FIRN_SERVER_RESOLVE_DISPLAY_DEMANGLE_H
#define FIRN_SERVER_RESOLVE_DISPLAY_DEMANGLE_H

#include "base/arena.h"

#define DEMANGLE_INPUT_BYTES_MAX ((size_t)64 * 1024)
#define DEMANGLE_OUTPUT_BYTES_MAX ((size_t)64 * 1024)

/* Shown for ns::box<int>::put(int): */
enum demangle_mode {
	DEMANGLE_FULL,	    /* all of it; the default */
	DEMANGLE_TEMPLATES, /* ns::box<int>::put */
	DEMANGLE_SIMPLE,    /* ns::box::put */
	DEMANGLE_NONE,	    /* the mangled name */
};

/* False when `text` names no mode: none, simple, templates or full. */
bool demangle_parse_mode(struct slice text, enum demangle_mode *ret);

/*
 * True and the name, in `arena`, when `name` is mangled and can be read. A name over the limits
 * is left as it is: short inputs can stand for outputs of any length.
 */
bool demangle_as(struct slice name, enum demangle_mode mode, struct arena *arena,
		 struct slice *ret);
bool demangle(struct slice name, struct arena *arena, struct slice *ret); /* in full */

/* True if a name has the form of a mangled one of C++ or Rust. */
bool demangle_is_mangled(struct slice name);

#endif
