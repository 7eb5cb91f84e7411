/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padded_functions - where functions start in x86-64 code of which nothing says it, neither symbols
 * nor unwind information, by how lld lays it out: it fills up with int3 to the next function, which
 * begins at a multiple of 16. Browsers are built so (Chromium: 236 MB of code, unwind information
 * for 0.2 % of it).
 *
 * A function starts at a multiple of 16
 *
 *   behind two bytes of int3 or more, or behind one that follows the end of a function: a return, a
 *   jump, a call that does not return, ud2;
 *   or where it saves and sets the frame pointer first, when nothing was to be filled up.
 *
 * Other linkers fill up with nops, as compilers do before loops too: their code has too few such
 * places, and is left alone. A start that is not seen makes two functions one.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_PADDED_FUNCTIONS_H
#define FIRN_SERVER_RESOLVE_READ_PADDED_FUNCTIONS_H

#include <stdbool.h>

#include "base/slice.h"
#include "server/resolve/table/symbol_builder.h"

/* How many functions start behind int3; `address` is that of the first byte. */
size_t padded_functions_count(struct slice code, uint64_t address);

/* Code of so many bytes in all, with so many of these, was laid out so. */
bool padded_functions_are(uint64_t bytes, uint64_t count);

/* Hands over the functions of a piece of such code that begins with one, or with int3. */
void padded_functions_read(struct slice code, uint64_t address, struct symbol_builder *builder);

#endif
