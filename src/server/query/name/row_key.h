/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_key - the identity of a row in a table of functions: the name, as in `go tool pprof`; for
 * code without a name the binary and the address, but "[anon]" is one row.
 */
#ifndef FIRN_SERVER_QUERY_NAME_ROW_KEY_H
#define FIRN_SERVER_QUERY_NAME_ROW_KEY_H

#include "base/hash.h"
#include "model/tables.h"

struct row_key {
	struct slice name; /* of an address: its binary; borrowed */
	uint64_t address;  /* 0 where there is a name */
	bool is_address;
};

/* The binary of the last address that was asked about; starts with `view` NULL. */
struct row_place {
	const struct tables_view *view;
	uint32_t mapping; /* its string */
	struct slice name;
	bool is_one; /* all its addresses are one row */
	uint64_t hash;
};

/* `name_hash` is hash_bytes of the name. */
static inline uint64_t row_key_hash(const struct row_key *key, uint64_t name_hash)
{
	return hash_mix(name_hash, key->address);
}

static inline bool row_key_equal(const struct row_key *a, const struct row_key *b)
{
	return a->address == b->address && a->is_address == b->is_address &&
	       slice_equal(a->name, b->name);
}

/* The key of a frame without a name. */
struct row_key row_key_of_address(struct row_place *place, const struct tables_view *view,
				  const struct frame *frame, uint64_t *ret_hash);

#endif
