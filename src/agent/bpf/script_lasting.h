/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_lasting - what samples of this CPU have read of functions that stay what and where they
 * are for longer than a sample, so that later samples need not read it again.
 *
 * It holds within a scope: a hash of the process, of what says that its functions have stayed, of
 * script_had_round, so that whatever was found here was noted there, and of a time: nothing
 * is known for longer than some 8 s.
 *
 * Two places for each set of addresses. Functions that lie next to one another have neighbouring
 * sets, so that a stack of them touches few cache lines.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_LASTING_H
#define FIRN_AGENT_BPF_SCRIPT_LASTING_H

#include "agent/bpf/row.h"
#include "agent/bpf/script_proof.h"

#define SCRIPT_LASTING_MAX 2048u /* a power of two */
#define SCRIPT_LASTING_NS_LOG2 33
#define SCRIPT_LASTING_SHIFT 7 /* log2 of the bytes that functions are apart, at least mostly */

struct script_lasting {
	__u64 key;	    /* its address and the scope */
	__u64 proof;	    /* never of other code at its address in that scope */
	__u64 start, bytes; /* of its instructions */
};

struct script_lasting_table {
	__u64 scope; /* of the sample at hand; 0 = nothing is known to stay */
	struct script_lasting of[SCRIPT_LASTING_MAX];
};

/*
 * `process` and `sign` are never the same when an address may have come to be another function's.
 * `round` is script_had_round.
 */
static __always_inline void script_lasting_begin(struct script_lasting_table *table, __u64 now_ns,
						 __u64 round, __u64 process, __u64 sign)
{
	__u64 hash = process * SCRIPT_PROOF_MIX + (now_ns >> SCRIPT_LASTING_NS_LOG2);

	hash = (round ^ hash ^ hash >> 32) * SCRIPT_PROOF_MIX;
	hash = (hash ^ hash >> 32 ^ sign) * SCRIPT_PROOF_MIX;
	table->scope = (hash ^ hash >> 32) | 1; /* no address, and so no key, is as empty places */
}

static __always_inline __u32 script_lasting_first(__u64 address)
{
	return 2 * (__u32)(address >> SCRIPT_LASTING_SHIFT);
}

/* The place that it would be at: there if its key is `address ^ scope`. */
static __always_inline const struct script_lasting *
script_lasting_at(const struct script_lasting_table *table, __u64 address)
{
	__u32 first = row_masked(script_lasting_first(address), SCRIPT_LASTING_MAX - 2);
	__u32 is_second = table->of[first].key != (address ^ table->scope);

	return &table->of[row_masked(first + is_second, SCRIPT_LASTING_MAX - 1)];
}

static __always_inline void script_lasting_put(struct script_lasting_table *table,
					       const struct script_lasting *function)
{
	__u64 address = function->key ^ table->scope;
	__u32 first = row_masked(script_lasting_first(address), SCRIPT_LASTING_MAX - 2);
	struct script_lasting *place = &table->of[first];

	if (place->key != function->key)
		table->of[row_masked(first + 1, SCRIPT_LASTING_MAX - 1)] = *place;
	*place = *function;
}

#endif
