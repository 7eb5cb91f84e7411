/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a call of ingest works in; kept between calls, so that warm ones allocate little.
 */
#ifndef FIRN_SERVER_INGEST_SCRATCH_INT_H
#define FIRN_SERVER_INGEST_SCRATCH_INT_H

#include "codec/archive/compress.h"
#include "codec/profile/otlp.h"
#include "codec/profile/pprof.h"
#include "server/ingest/content_hash.h"
#include "server/ingest/normalise.h"

/* The frames that a location of the request stands for, in chain_frames, innermost first. */
struct chain {
	uint32_t first, count;
};
#define CHAIN_NOT_MADE UINT32_MAX /* chain.first of a location that no stack used yet */

/* What normalise_mapping made of a mapping, for the kind that was asked last. */
struct mapping_frame {
	bool known;
	enum frame_kind asked;
	struct frame frame;
};

/* Finds the elements of a pprof table by their id, which comes first in their structs. */
struct id_index {
	const char *elements;
	size_t element_bytes, count;
	bool dense; /* ids are 1, 2, 3, ... as most producers write them */
	struct idmap map;
};

struct ingest_scratch {
	struct budget *budget; /* pays for all of it; NULL: nobody */
	struct normaliser normaliser;
	struct strbuf inflated; /* gzip's output */
	size_t inflated_bytes;	/* paid for it */
	struct compress_gunzip_tables *gunzip;
	struct strbuf text; /* a value turned to text */
	struct pprof pprof;
	struct otlp otlp;
	size_t index_bytes; /* paid for the next three */
	struct id_index mapping_index, location_index, function_index;
	struct content_hash content_hash;
	COLUMN(struct chain) chains; /* by location */
	COLUMN(uint32_t) chain_frames;
	COLUMN(struct mapping_frame) mapping_frames; /* by mapping */
	COLUMN(uint32_t) string_ids; /* by string index of the request; TABLES_FULL = not yet */
	COLUMN(struct label)
	attribute_labels;	      /* OTLP: by attribute index; name TABLES_FULL = not yet */
	COLUMN(uint32_t) stack_nodes; /* OTLP: by stack index; TABLES_FULL = not yet */
	struct slice last_stack;      /* OTLP: the stack made last, if each place was one frame */
	COLUMN(uint64_t) places;      /* OTLP: of the stack at hand */
	bool unknown_place;	      /* OTLP: that stack has one that leads nowhere */
	COLUMN(uint8_t) frame_kinds;  /* OTLP: by attribute index; see otlp_frames.c */
};

#endif
