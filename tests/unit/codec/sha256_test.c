/* SPDX-License-Identifier: Apache-2.0 */
/* Digests against those that sha256sum(1) prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "codec/wire/sha256.h"

/* Of `len` bytes i * 7 mod 251, added in pieces of `piece`. */
static void assert_digest(size_t len, size_t piece, const char *expected)
{
	char text[2 * SHA256_DIGEST_BYTES + 1];
	uint8_t digest[SHA256_DIGEST_BYTES];
	static uint8_t bytes[100000];
	struct sha256 sha;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 7 % 251);
	sha256_init(&sha);
	for (size_t at = 0; at < len; at += piece)
		sha256_add(&sha, bytes + at, len - at < piece ? len - at : piece);
	sha256_finish(&sha, digest);
	for (size_t i = 0; i < SHA256_DIGEST_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, expected);
}

/* python3 -c 'import sys; sys.stdout.buffer.write(bytes(i * 7 % 251 for i in range(N)))' |
 * sha256sum */
static void digests_are_those_of_sha256sum(void **state)
{
	static const struct {
		size_t len;
		const char *digest;
	} cases[] = {
		{ 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ 1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
		{ 55, "8af594de0e003fdee5c8bb088216c824349b4137070f559574f4a4bddd27b714" },
		{ 56, "db81bc2bfd43620591df192139062da77d4c376f1888ea3d2190bd07c8d901f9" },
		{ 63, "bd535b38bf0d0d1a09d370b7e34b2696cea3767801a45d5611a4aaa6954e8527" },
		{ 64, "292be91abe8c0909fe3d26575af5755eee74d23816dc68c3ba41765136967654" },
		{ 119, "d367ab298e74477421127b0b448667c37c006c636f5738f081c39388756e5fad" },
		{ 128, "cb5311e1d7aa8e11d6af7081f3ffc3e4efa008c7483a1a791fe170bf37546ba7" },
		{ 100000, "96ad0ddabe9c733d4550fde750255a94806811029be67504bd9bd68e556686b9" },
	};
	static const size_t pieces[] = { 1, 55, 63, 64, 65, 127, 4096, 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++)
			assert_digest(cases[i].len, pieces[k], cases[i].digest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_sha256sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
