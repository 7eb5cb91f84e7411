/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_search - goes through a part of a file, such as a section, for text that is somewhere in it:
 * versions of runtimes, mostly.
 *
 * The part is read in pieces of TEXT_SEARCH_PIECE_BYTES, each with the first
 * TEXT_SEARCH_OVERLAP_BYTES of the next one behind, so that shorter text is whole in one of them.
 * The file is hostile; the caller bounds `bytes`. One thread at a time.
 */
#ifndef FIRN_AGENT_RUNTIME_TEXT_SEARCH_H
#define FIRN_AGENT_RUNTIME_TEXT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_SEARCH_PIECE_BYTES ((size_t)256 << 10)
#define TEXT_SEARCH_OVERLAP_BYTES ((size_t)512)

/*
 * Looks at `len` bytes, behind which there is a zero. Text that begins behind the first `own` ones
 * is at the beginning of the next piece, too. True when nothing more is looked for.
 */
typedef bool text_search_f(void *context, const char *piece, size_t len, size_t own);

/* True if `look` has ended it; false at the end of the part, or of the file. */
bool text_search(int fd, uint64_t offset, uint64_t bytes, text_search_f *look, void *context);

#endif
