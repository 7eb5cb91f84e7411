/* SPDX-License-Identifier: Apache-2.0 */
/* tables_codec_int - what tables_encode.c and tables_decode.c must agree on; only for them. */
#ifndef FIRN_SERVER_PERSIST_LOG_TABLES_CODEC_INT_H
#define FIRN_SERVER_PERSIST_LOG_TABLES_CODEC_INT_H

#include "server/persist/log/tables_codec.h"

#define SECTION_VERSION 1
#define STACKS_VERSION_SORTED 1	   /* gaps, ascending within each report */
#define STACKS_VERSION_UNSORTED 2  /* zigzag differences */
#define FRAMES_VERSION_CONSTANTS 2 /* fields that are the same in all frames take one number */

/* The fields of a frame that are 32 bits wide, in the order in which they are kept. */
static const size_t frame_fields[] = {
	offsetof(struct frame, kind),	      offsetof(struct frame, flags),
	offsetof(struct frame, mapping_file), offsetof(struct frame, build_id),
	offsetof(struct frame, function),     offsetof(struct frame, system_name),
	offsetof(struct frame, file),	      offsetof(struct frame, line),
	offsetof(struct frame, column),	      offsetof(struct frame, start_line),
};

#define FRAME_FIELDS (sizeof(frame_fields) / sizeof(frame_fields[0]))

static inline uint32_t *frame_field(const struct frame *frame, size_t field)
{
	return (uint32_t *)((char *)(uintptr_t)frame + frame_fields[field]);
}

#endif
