/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity - hashes that identify series and stacks in every batch and after a restart.
 *
 * 128 bits over the content (XXH3, without a secret, because they are stored on disk), never over
 * ids. Texts are hashed with their lengths, so that no two contents give the same bytes.
 */
#ifndef FIRN_MODEL_IDENTITY_H
#define FIRN_MODEL_IDENTITY_H

#include "model/tables.h"

struct identity {
	uint64_t low, high;
};

static inline bool identity_equal(struct identity a, struct identity b)
{
	return a.low == b.low && a.high == b.high;
}

static inline int identity_order(struct identity a, struct identity b)
{
	if (a.high != b.high)
		return a.high < b.high ? -1 : 1;
	return (a.low > b.low) - (a.low < b.low);
}

struct identity identity_of_bytes(const void *data, size_t len);
struct identity identity_mix(struct identity identity, uint64_t a, uint64_t b);

/* Of labels, group and columns. Cumulative and delta columns count as the same kind, because ingest
 * turns the former into the latter.
 */
struct identity identity_of_series(const struct tables_view *view, uint32_t series);
struct identity identity_of_label_set(const struct tables_view *view, uint32_t label_set);

/* Computes ret[node] for every node; ret has nodes_count elements. */
void identity_of_stacks(const struct tables_view *view, struct identity *ret);

#endif
