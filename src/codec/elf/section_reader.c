/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/section_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define WINDOW_ALIGN 1024u /* so that a small step back does not read again */

void section_reader_open_file(struct section_reader *reader, int fd, uint64_t file_offset,
			      uint64_t size, uint64_t address, const char *name)
{
	/* The window's bytes need no clearing. */
	reader->size = size;
	reader->address = address;
	reader->fd = fd;
	reader->file_offset = file_offset;
	reader->memory = NULL;
	reader->name = name;
	reader->window_start = 0;
	reader->window_len = 0;
	if (file_offset > INT64_MAX)
		reader->size = 0;
	else if (size > INT64_MAX - file_offset)
		reader->size = INT64_MAX - file_offset;
}

void section_reader_open_memory(struct section_reader *reader, struct slice bytes, uint64_t address,
				const char *name)
{
	section_reader_open_file(reader, -1, 0, bytes.len, address, name);
	reader->memory = (const uint8_t *)bytes.data;
}

void section_reader_open_part(struct section_reader *ret, const struct section_reader *reader,
			      uint64_t offset, uint64_t size)
{
	if (offset > reader->size)
		offset = reader->size;
	if (size > reader->size - offset)
		size = reader->size - offset;
	section_reader_open_file(ret, reader->fd, reader->file_offset + offset, size,
				 reader->address + offset, reader->name);
	if (reader->fd < 0)
		ret->memory = reader->memory + offset;
}

static int fill_window(struct section_reader *reader, uint64_t start, struct err *err)
{
	size_t want = sizeof(reader->window), done = 0;

	if (want > reader->size - start)
		want = reader->size - start;
	reader->window_len = 0;
	while (done < want) {
		uint64_t at = reader->file_offset + start + done;
		ssize_t got = pread(reader->fd, reader->window + done, want - done, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read \"%s\" at offset %" PRIu64,
					     reader->name, at);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	reader->window_start = start;
	reader->window_len = done;
	return 0;
}

static bool window_holds(const struct section_reader *reader, uint64_t offset, size_t len)
{
	return offset >= reader->window_start &&
	       offset - reader->window_start <= reader->window_len &&
	       len <= reader->window_len - (offset - reader->window_start);
}

int section_reader_view_some(struct section_reader *reader, uint64_t offset, size_t len,
			     const uint8_t **ret, size_t *ret_len, struct err *err)
{
	uint64_t start = offset - offset % WINDOW_ALIGN;
	size_t have;
	int status;

	assert(len <= SECTION_READER_WINDOW_BYTES);
	if (offset >= reader->size) {
		*ret = reader->window;
		*ret_len = 0;
		return 0;
	}
	if (len > reader->size - offset)
		len = reader->size - offset;
	if (reader->fd < 0) {
		*ret = reader->memory + offset;
		*ret_len = len;
		return 0;
	}
	if (!window_holds(reader, offset, len)) {
		if (offset - start + len > SECTION_READER_WINDOW_BYTES)
			start = offset;
		status = fill_window(reader, start, err);
		if (status)
			return status;
	}
	have = offset - reader->window_start < reader->window_len
		       ? reader->window_len - (offset - reader->window_start)
		       : 0;
	*ret = have ? reader->window + (offset - reader->window_start) : reader->window;
	*ret_len = len < have ? len : have;
	return 0;
}

int section_reader_view(struct section_reader *reader, uint64_t offset, size_t len,
			const uint8_t **ret, struct err *err)
{
	const uint8_t *bytes;
	size_t have;
	int status = section_reader_view_some(reader, offset, len, &bytes, &have, err);

	if (status)
		return status;
	if (have < len)
		return err_set(err, ERR_INVALID,
			       "read \"%s\": %zu bytes at offset %" PRIu64 " of the section, "
			       "which has %" PRIu64,
			       reader->name, len, offset, reader->size);
	*ret = bytes;
	return 0;
}
