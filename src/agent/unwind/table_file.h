/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_file - the unwind table of one binary in a file: a header, then the image of each segment
 * in the layout of bpf/table.h. docs/formats/unwind_table.md tells it byte by byte.
 *
 * Opening checks everything, images included, so that an image can be copied into the BPF maps
 * unchecked. A damaged file is ERR_CORRUPT, one of another version ERR_UNSUPPORTED; a damaged
 * segment is left out, and counted, as long as there is a sound one. Numbers are in the host's byte
 * order: table files never leave the host.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_FILE_H
#define FIRN_AGENT_UNWIND_TABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/table.h"
#include "base/err.h"
#include "base/slice.h"

#define TABLE_FILE_MAGIC "FIRNUNWT"
#define TABLE_FILE_VERSION 9u  /* also of what the rules mean: raise it when the builder learns */
#define TABLE_FILE_ALIGN 4096u /* of the images in the file */
#define TABLE_FILE_SOURCES_BYTES 64

/* Where rows came from; for code that several know, the first in this order. */
enum table_source {
	TABLE_SOURCE_START, /* where threads and programs begin, found by their code */
	TABLE_SOURCE_GOPCLNTAB,
	TABLE_SOURCE_EH_FRAME,
	TABLE_SOURCE_DEBUG_FRAME,
	TABLE_SOURCE_SFRAME,
	TABLE_SOURCE_PLT, /* linkers' stubs that no other describes */
	TABLE_SOURCES
};

struct table_file_segment {
	uint32_t first_block, blocks, bucket_shift; /* as in struct table_segment */
	uint32_t rows_count, far_count, rules_count;
	uint64_t image_at; /* in the file */
	uint32_t image_bytes, image_crc;
};

struct table_file_header {
	char magic[8];
	uint32_t version;
	uint32_t machine;    /* e_machine */
	uint64_t file_bytes; /* of all of the table file */
	uint64_t rows_count; /* of all segments */
	uint32_t sources;    /* bits: 1 << enum table_source */
	uint32_t segments_count;
	struct table_file_segment segments[TABLE_SEGMENTS_MAX]; /* by first_block */
	uint32_t reserved;
	uint32_t crc; /* CRC32C of all before */
};

_Static_assert(sizeof(struct table_file_header) == 40 + 40 * TABLE_SEGMENTS_MAX + 8, "no padding");
_Static_assert(sizeof(struct table_file_header) <= TABLE_FILE_ALIGN, "before the images");

struct table_file {
	int fd; /* borrowed; -1: `bytes` */
	struct slice bytes;
	const char *name; /* borrowed, for messages */
	/* As it is in the file, but for segments that are damaged: those are left out. */
	struct table_file_header header;
	uint32_t damaged_count;
	struct err damage; /* of the first of them */
};

/* Takes 2 MB for a moment. Segments may be none: a binary without unwind information. */
int table_file_open(int fd, const char *name, struct table_file *ret, struct err *err);
int table_file_parse(struct slice bytes, const char *name, struct table_file *ret, struct err *err);

/* ".eh_frame .plt": the sections that the table was made of. */
void table_file_sources(uint32_t sources, char ret[TABLE_FILE_SOURCES_BYTES]);

/* The segment as the BPF maps describe it, when its image is at `at` in chunk `chunk`. */
struct table_segment table_file_place(const struct table_file_segment *segment, uint32_t chunk,
				      uint32_t at);
uint32_t table_file_image_bytes(const struct table_file_segment *segment);

/* A segment in memory. */
struct table_image {
	struct table_file_segment segment;
	void *bytes;	       /* owned */
	const uint32_t *words; /* lines and far rows */
	const struct unwind_rule *rules;
};

int table_image_load(const struct table_file *file, uint32_t segment, struct table_image *ret,
		     struct err *err);
void table_image_free(struct table_image *image);

/* The rule of a file offset; false outside of the segment. */
bool table_image_find(const struct table_image *image, uint64_t offset, struct unwind_rule *ret);

/* All rows by offset; a callback that returns other than 0 ends the walk with that value. */
int table_image_walk(const struct table_image *image,
		     int (*row)(void *context, uint64_t offset, const struct unwind_rule *rule),
		     void *context);

#endif
