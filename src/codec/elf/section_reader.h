/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section_reader - bytes of one section of an ELF file, through a window of fixed size.
 *
 * Reads with pread, so a file truncated under us is an error and no signal, and a section of any
 * size costs one window. Where access alternates between parts of a section, open one reader for
 * each part. Memory (the vdso, an inflated section) is read in place. The file descriptor, the
 * memory and the name are borrowed. Numbers are little-endian, as on all machines we unwind.
 * One thread at a time.
 */
#ifndef FIRN_CODEC_ELF_SECTION_READER_H
#define FIRN_CODEC_ELF_SECTION_READER_H

#include "base/err.h"
#include "base/slice.h"

#define SECTION_READER_WINDOW_BYTES 16384

struct section_reader {
	uint64_t size;	  /* of the section, in bytes */
	uint64_t address; /* virtual address of its first byte */
	int fd;		  /* -1: `memory` */
	uint64_t file_offset;
	const uint8_t *memory;
	const char *name; /* of the file and section, for messages */
	uint64_t window_start;
	size_t window_len;
	uint8_t window[SECTION_READER_WINDOW_BYTES];
};

void section_reader_open_file(struct section_reader *reader, int fd, uint64_t file_offset,
			      uint64_t size, uint64_t address, const char *name);
void section_reader_open_memory(struct section_reader *reader, struct slice bytes, uint64_t address,
				const char *name);

/* Another reader of a part of the section, of at most `size` bytes. `ret` may not be `reader`. */
void section_reader_open_part(struct section_reader *ret, const struct section_reader *reader,
			      uint64_t offset, uint64_t size);

/*
 * The `len` bytes at `offset` of the section, valid until the next call; len is at most
 * SECTION_READER_WINDOW_BYTES. ERR_INVALID when the section or the file ends before.
 */
int section_reader_view(struct section_reader *reader, uint64_t offset, size_t len,
			const uint8_t **ret, struct err *err);

/* The same, with fewer bytes, or none, where the section or the file ends: *ret_len. */
int section_reader_view_some(struct section_reader *reader, uint64_t offset, size_t len,
			     const uint8_t **ret, size_t *ret_len, struct err *err);

static inline uint16_t section_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t section_u32(const uint8_t *p)
{
	return section_u16(p) | (uint32_t)section_u16(p + 2) << 16;
}

static inline uint64_t section_u64(const uint8_t *p)
{
	return section_u32(p) | (uint64_t)section_u32(p + 4) << 32;
}

#endif
