/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_moments - encodes and decodes the times and trace links of a stripe's samples
 * (docs/formats/part.md). Only for part_*.c. Pure functions but for the memory they keep.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_MOMENTS_H
#define FIRN_SERVER_PERSIST_PART_PART_MOMENTS_H

#include "server/persist/part/part_format.h"
#include "server/persist/part/part_writer.h"

struct part_moments { /* starts zeroed, is reused, and grows */
	struct moment *items;
	size_t count, capacity;
	struct trace_link *links; /* the first is none */
	uint32_t links_count, links_capacity;
	struct idmap map; /* of links, while they are gathered */
};

void part_moments_free(struct part_moments *moments);
void part_moments_clear(struct part_moments *moments);

/* Those of a report, whose row i became rows[i]. */
void part_moments_add(struct part_moments *moments, const struct part_report *report,
		      const uint32_t *rows);

/* counts: of each report. */
void part_moments_encode(const struct part_moments *moments, const uint32_t *counts,
			 uint32_t reports_count, struct part_chunk_builder *out);

/* Says in the reports which are theirs. ERR_CORRUPT. */
MUST_USE int part_moments_decode(struct slice raw, struct segment_report *reports,
				 uint32_t reports_count, struct part_moments *ret, struct err *err);

#endif
