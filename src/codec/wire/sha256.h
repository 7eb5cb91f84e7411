/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - the SHA-256 digest of FIPS 180-4, for ids that others compute the same way.
 *
 * Not for secrets: no attempt is made at constant time beyond what the algorithm gives.
 */
#ifndef FIRN_CODEC_WIRE_SHA256_H
#define FIRN_CODEC_WIRE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_DIGEST_BYTES 32
#define SHA256_BLOCK_BYTES 64

struct sha256 {
	uint32_t state[8];
	uint64_t len; /* bytes added */
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t len);
void sha256_finish(struct sha256 *sha, uint8_t ret_digest[SHA256_DIGEST_BYTES]);

#endif
