/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing against published vectors, and the map of ids against a naive one. */
#include "base/hash.h"
#include "base/idmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* RFC 3720, appendix B.4 (as bytes in order of increasing index), and the usual check value. */
static void crc32c_matches_the_rfc(void **state)
{
	unsigned char bytes[32];

	(void)state;
	assert_int_equal(hash_crc32c(0, "123456789", 9), 0xe3069283u);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(hash_crc32c(0, bytes, 32), 0x8a9136aau);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(hash_crc32c(0, bytes, 32), 0x62a8ab43u);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(hash_crc32c(0, bytes, 32), 0x46dd794eu);
	assert_int_equal(hash_crc32c(0, NULL, 0), 0);
}

static void crc32c_continues_at_any_cut(void **state)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	const size_t len = sizeof(text) - 1;
	uint32_t whole = hash_crc32c(0, text, len);

	(void)state;
	for (size_t cut = 0; cut <= len; cut++)
		assert_int_equal(hash_crc32c(hash_crc32c(0, text, cut), text + cut, len - cut),
				 whole);
}

/* XXH3_64bits of the empty input and seed 0: the value that libxxhash documents. */
static void stable_hashes_stay_the_same(void **state)
{
	(void)state;
	assert_true(hash_stable("", 0, 0) == 0x2d06800538d394c2ull);
	assert_true(hash_stable(NULL, 0, 0) == hash_stable("", 0, 0));
	assert_true(hash_stable("a", 1, 1) != hash_stable("a", 1, 2));
	assert_true(hash_stable("a", 1, 1) == hash_stable("a", 1, 1));
}

static void table_hashes_agree_within_a_process(void **state)
{
	(void)state;
	assert_true(hash_bytes("firn", 4) == hash_bytes("firn", 4));
	assert_true(hash_bytes("firn", 4) != hash_bytes("fire", 4));
	assert_true(hash_bytes(NULL, 0) == hash_bytes("", 0));
}

/* The hash of one text in a new process, asked for with `--print-hash`. */
static uint64_t hash_elsewhere(void)
{
	unsigned long long value = 0;
	FILE *pipe_end;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	if (!fork()) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "hash_test", "--print-hash", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	pipe_end = fdopen(ends[0], "r");
	assert_int_equal(fscanf(pipe_end, "%llx", &value), 1);
	fclose(pipe_end);
	assert_true(wait(NULL) > 0);
	return value;
}

static void table_hashes_differ_between_processes(void **state)
{
	(void)state;
	assert_true(hash_elsewhere() != hash_elsewhere());
}

struct numbers {
	uint32_t values[20000];
};

static bool number_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct numbers *)context)->values[id] == *(const uint32_t *)key;
}

static void interned_ids_are_found_again(void **state)
{
	static struct numbers numbers;
	struct idmap map = { 0 };
	uint32_t count = sizeof(numbers.values) / sizeof(numbers.values[0]);

	(void)state;
	for (uint32_t id = 0; id < count; id++) {
		uint32_t key = id * 2654435761u;
		uint64_t hash = hash_bytes(&key, sizeof(key));

		assert_int_equal(idmap_find(&map, hash, number_equal, &numbers, &key), IDMAP_NONE);
		numbers.values[id] = key;
		idmap_add(&map, hash, id);
		assert_int_equal(idmap_find(&map, hash, number_equal, &numbers, &key), id);
	}
	for (uint32_t id = 0; id < count; id++) {
		uint32_t key = numbers.values[id];

		assert_int_equal(idmap_find(&map, hash_bytes(&key, sizeof(key)), number_equal,
					    &numbers, &key),
				 id);
	}
	assert_int_equal(map.count, count);
	assert_true((uint64_t)map.count * 4 <= ((uint64_t)map.mask + 1) * 3);
	idmap_free(&map);
}

/* With one hash for all, only the caller's comparison tells objects apart. */
static void equality_is_exact_when_all_hashes_collide(void **state)
{
	static const uint64_t hashes[] = { 0, 1, UINT64_MAX, 0xffffffff00000000ull };
	static struct numbers numbers;

	(void)state;
	for (size_t h = 0; h < sizeof(hashes) / sizeof(hashes[0]); h++) {
		struct idmap map = { 0 };

		for (uint32_t id = 0; id < 300; id++) {
			numbers.values[id] = 7 * id;
			idmap_add(&map, hashes[h], id);
		}
		for (uint32_t id = 0; id < 300; id++) {
			uint32_t key = 7 * id, missing = 7 * id + 1;

			assert_int_equal(idmap_find(&map, hashes[h], number_equal, &numbers, &key),
					 id);
			assert_int_equal(
				idmap_find(&map, hashes[h], number_equal, &numbers, &missing),
				IDMAP_NONE);
		}
		idmap_free(&map);
	}
}

static void cleared_maps_are_empty_and_usable(void **state)
{
	static struct numbers numbers = { .values = { 5 } };
	struct idmap map = { 0 };
	uint32_t key = 5;

	(void)state;
	idmap_clear(&map);
	idmap_add(&map, 9, 0);
	idmap_clear(&map);
	assert_int_equal(idmap_find(&map, 9, number_equal, &numbers, &key), IDMAP_NONE);
	idmap_add(&map, 9, 0);
	assert_int_equal(idmap_find(&map, 9, number_equal, &numbers, &key), 0);
	idmap_free(&map);
	assert_int_equal(idmap_find(&map, 9, number_equal, &numbers, &key), IDMAP_NONE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_matches_the_rfc),
		cmocka_unit_test(crc32c_continues_at_any_cut),
		cmocka_unit_test(stable_hashes_stay_the_same),
		cmocka_unit_test(table_hashes_agree_within_a_process),
		cmocka_unit_test(table_hashes_differ_between_processes),
		cmocka_unit_test(interned_ids_are_found_again),
		cmocka_unit_test(equality_is_exact_when_all_hashes_collide),
		cmocka_unit_test(cleared_maps_are_empty_and_usable),
	};

	if (argc == 2 && !strcmp(argv[1], "--print-hash")) {
		printf("%llx\n", (unsigned long long)hash_bytes("firn", 4));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
