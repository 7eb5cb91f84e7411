/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padded_functions - where functions start in x86-64 code without symbols and unwind information,
 * if lld linked it: lld pads with int3 up to the next function, which begins at a multiple of 16.
 * Browsers are built so (Chromium: 236 MB of code, unwind information for 0.2 % of it).
 *
 * A function starts at a multiple of 16
 *
 *   behind two bytes of int3 or more, or behind one that follows the end of a function: a return, a
 *   jump, a call that does not return, ud2;
 *   or where it saves and sets the frame pointer first, when nothing was to be filled up.
 *
 * Other linkers pad with nops, as compilers do before loops: their code has too few such places,
 * and is left alone. A missed start merges two functions.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_PADDED_FUNCTIONS_H
#define FIRN_SERVER_RESOLVE_READ_PADDED_FUNCTIONS_H

#include <stdbool.h>

#include "base/slice.h"
#include "server/resolve/table/symbol_builder.h"

/* How many functions start after int3; `address` is that of the first byte. */
size_t padded_functions_count(struct slice code, uint64_t address);

/* True if code of `bytes` bytes with `count` such starts was padded so. */
bool padded_functions_are(uint64_t bytes, uint64_t count);

/* Hands over the functions of a piece of such code that begins with one, or with int3. */
void padded_functions_read(struct slice code, uint64_t address, struct symbol_builder *builder);

#endif
