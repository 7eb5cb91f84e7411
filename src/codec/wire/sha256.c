/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/sha256.h"

#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of 64 primes. */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned bits)
{
	return value >> bits | value << (32 - bits);
}

static uint32_t load_big(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(const uint8_t *block, uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = load_big(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
}

/* FIPS 180-4, 6.2.2; v holds the working variables a to h. */
static void compress(struct sha256 *sha, const uint8_t *block)
{
	uint32_t v[8], w[64];

	expand(block, w);
	memcpy(v, sha->state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
		uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		memmove(&v[1], &v[0], 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + s0 + majority;
	}
	for (int i = 0; i < 8; i++)
		sha->state[i] += v[i];
}

#ifdef __x86_64__
/* CPUID leaf 1: SSSE3 and SSE4.1; leaf 7: SHA. Asked once: virtual machines take long to answer. */
static bool has_instructions(void)
{
	static _Atomic int known; /* 0 = not asked, 1 = no, 2 = yes */
	unsigned a, b, c, d;

	if (!known)
		known = 1 + (__get_cpuid(1, &a, &b, &c, &d) && c & bit_SSSE3 && c & bit_SSE4_1 &&
			     __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA);
	return known == 2;
}

/*
 * The same by the processor's instructions (Intel's manual, SHA256RNDS2): they hold the variables
 * as (a, b, e, f) and (c, d, g, h), and do four rounds for each four words.
 */
__attribute__((target("sha,sse4.1,ssse3"))) static void
compress_by_instructions(struct sha256 *sha, const uint8_t *block)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const void *)&sha->state[0]), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const void *)&sha->state[4]), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
	const __m128i abef_before = abef, cdgh_before = cdgh;
	__m128i w[4];

	for (int i = 0; i < 4; i++)
		w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(block + 16 * i)), swap);
	for (int i = 0; i < 16; i++) {
		__m128i words = w[i % 4], sum;

		sum = _mm_add_epi32(words, _mm_loadu_si128((const void *)&round_constants[4 * i]));
		cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
		abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
		words = _mm_sha256msg1_epu32(words, w[(i + 1) % 4]);
		words = _mm_add_epi32(words, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
		w[i % 4] = _mm_sha256msg2_epu32(words, w[(i + 3) % 4]);
	}
	abef = _mm_add_epi32(abef, abef_before);
	cdgh = _mm_add_epi32(cdgh, cdgh_before);
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((void *)&sha->state[0], _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((void *)&sha->state[4], _mm_alignr_epi8(high, low, 8));
}
#endif

/* Whole blocks. */
static void compress_all(struct sha256 *sha, const uint8_t *bytes, size_t len)
{
	void (*one)(struct sha256 *, const uint8_t *) = compress;

#ifdef __x86_64__
	if (has_instructions())
		one = compress_by_instructions;
#endif
	for (size_t at = 0; at < len; at += SHA256_BLOCK_BYTES)
		one(sha, bytes + at);
}

void sha256_init(struct sha256 *sha)
{
	*sha = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *sha, const void *data, size_t len)
{
	size_t used = sha->len % SHA256_BLOCK_BYTES, whole;
	const uint8_t *bytes = data;

	if (!len)
		return;
	sha->len += len;
	if (used) {
		size_t part = SHA256_BLOCK_BYTES - used < len ? SHA256_BLOCK_BYTES - used : len;

		memcpy(sha->block + used, bytes, part);
		bytes += part;
		len -= part;
		if (used + part < SHA256_BLOCK_BYTES)
			return;
		compress_all(sha, sha->block, SHA256_BLOCK_BYTES);
	}
	whole = len - len % SHA256_BLOCK_BYTES;
	compress_all(sha, bytes, whole);
	if (len > whole)
		memcpy(sha->block, bytes + whole, len - whole);
}

void sha256_finish(struct sha256 *sha, uint8_t ret_digest[SHA256_DIGEST_BYTES])
{
	static const uint8_t padding[SHA256_BLOCK_BYTES] = { 0x80 };
	uint64_t bits = sha->len * 8;
	uint8_t length[8];
	size_t used = sha->len % SHA256_BLOCK_BYTES;

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(sha, padding, used < 56 ? 56 - used : 120 - used);
	sha256_add(sha, length, sizeof(length));
	for (int i = 0; i < SHA256_DIGEST_BYTES; i++)
		ret_digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}
