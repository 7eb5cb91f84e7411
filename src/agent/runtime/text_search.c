/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/text_search.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

static size_t least(uint64_t left, size_t max)
{
	return left < max ? (size_t)left : max;
}

bool text_search(int fd, uint64_t offset, uint64_t bytes, text_search_f *look, void *context)
{
	const size_t room = TEXT_SEARCH_PIECE_BYTES + TEXT_SEARCH_OVERLAP_BYTES;
	char *piece = mem_new_array(char, room + 1);
	bool is_done = false;

	for (uint64_t at = 0; at < bytes && !is_done; at += TEXT_SEARCH_PIECE_BYTES) {
		size_t len = least(bytes - at, room);

		if (pread(fd, piece, len, (off_t)(offset + at)) != (ssize_t)len)
			break;
		piece[len] = '\0';
		is_done = look(context, piece, len, least(len, TEXT_SEARCH_PIECE_BYTES));
	}
	free(piece);
	return is_done;
}
