/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <xxhash.h>

uint64_t hash_secrets[4];
static uint64_t process_seed;
static uint32_t crc_table[256];
#ifdef __x86_64__
static bool has_sse42;
#endif

/* Early in boot the kernel may have no randomness to give; its 16 bytes per process are there. */
static void draw_seed(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);

	if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) !=
		    (ssize_t)sizeof(process_seed) &&
	    given)
		memcpy(&process_seed, given, sizeof(process_seed));
	for (uint64_t i = 0; i < 4; i++) /* odd, and different from each other */
		hash_secrets[i] = XXH3_64bits_withSeed(&i, sizeof(i), process_seed) | 1;
}

/* Before main, so that hashing needs no check on its way. */
__attribute__((constructor)) static void set_up(void)
{
	draw_seed();
#ifdef __x86_64__
	__builtin_cpu_init();
	has_sse42 = __builtin_cpu_supports("sse4.2");
#endif
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
		crc_table[i] = crc;
	}
}

uint64_t hash_bytes(const void *data, size_t len)
{
	return XXH3_64bits_withSeed(data ? data : "", data ? len : 0, process_seed);
}

struct hash_wide hash_wide_bytes(const void *data, size_t len)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(data ? data : "", data ? len : 0, process_seed);

	return (struct hash_wide){ hash.low64, hash.high64 };
}

uint64_t hash_stable(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data ? data : "", data ? len : 0, seed);
}

static uint32_t crc32c_table(uint32_t crc, const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		crc = (crc >> 8) ^ crc_table[(crc ^ p[i]) & 0xff];
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const unsigned char *p,
							       size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; len -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; len; len--, p++)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#endif

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t len)
{
	crc = ~crc;
#ifdef __x86_64__
	if (has_sse42)
		return ~crc32c_sse42(crc, data, len);
#endif
	return ~crc32c_table(crc, data, len);
}
