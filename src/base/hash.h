/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash - 64-bit hashing (XXH3 of libxxhash) and CRC32C.
 *
 * hash_bytes is keyed with a seed drawn once per process, so that nobody outside can choose
 * colliding keys for our tables. hash_stable has no secret: use it for ids that must be the same
 * after a restart or on another machine (batch ids, file hashes), never for tables.
 */
#ifndef FIRN_BASE_HASH_H
#define FIRN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t len);
uint64_t hash_stable(const void *data, size_t len, uint64_t seed);

/*
 * The same for a few words, inline: a 128-bit product of both halves, each blinded with a secret.
 */
extern uint64_t hash_secrets[4]; /* drawn once per process */
static inline uint64_t hash_product(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_product(a ^ hash_secrets[0], b ^ hash_secrets[1]);
}

/* A keyed 128-bit hash that stands for the bytes themselves where comparing those is too slow. */
struct hash_wide {
	uint64_t low, high;
};

struct hash_wide hash_wide_bytes(const void *data, size_t len);

/* The hash of both in this order. */
static inline struct hash_wide hash_wide_mix(struct hash_wide a, struct hash_wide b)
{
	return (struct hash_wide){
		hash_product(a.low ^ hash_secrets[0], b.low ^ hash_secrets[1]),
		hash_product(a.high ^ hash_secrets[2], b.high ^ hash_secrets[3]),
	};
}

static inline struct hash_wide hash_wide_words(struct hash_wide hash, uint64_t a, uint64_t b)
{
	return (struct hash_wide){
		hash_product(hash.low ^ a ^ hash_secrets[0], b ^ hash_secrets[1]),
		hash_product(hash.high ^ a ^ hash_secrets[2], b ^ hash_secrets[3]),
	};
}

/* Mixes a value into a running hash (for tables over small structs). */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

/*
 * CRC32C (Castagnoli, reflected polynomial 0x82f63b78, RFC 3720 appendix B.4). Start with crc = 0
 * and feed the result back to continue. Uses SSE4.2 where the machine has it.
 */
uint32_t hash_crc32c(uint32_t crc, const void *data, size_t len);

#endif
