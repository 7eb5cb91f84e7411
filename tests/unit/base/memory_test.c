/* SPDX-License-Identifier: Apache-2.0 */
/* Heap, arenas and arrays that grow in place: alignment, zeroing, budgets, reuse, refusals. */
#include "base/arena.h"
#include "base/mem.h"
#include "base/vmarray.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Whether `act` ends a child process by SIGABRT. */
static bool aborts(void (*act)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void *volatile kept; /* so that nothing is optimised away */

static void ask_for_overflowing_count(void)
{
	kept = mem_realloc(NULL, SIZE_MAX / 2, 4);
}

static void ask_for_overflowing_copy(void)
{
	kept = mem_strndup("", SIZE_MAX);
}

static void reserve_overflowing_array(void)
{
	struct vmarray array;

	vmarray_init(&array, 16, SIZE_MAX / 8);
}

static void sizes_that_overflow_end_the_process(void **state)
{
	(void)state;
	assert_true(aborts(ask_for_overflowing_count));
	assert_true(aborts(ask_for_overflowing_copy));
	assert_true(aborts(reserve_overflowing_array));
}

static void sizes_of_zero_are_allowed(void **state)
{
	void *memory = mem_calloc(0, 8);

	(void)state;
	memory = mem_realloc(memory, 0, 8);
	assert_non_null(memory);
	free(memory);
}

static void strndup_copies_and_terminates(void **state)
{
	char *copy = mem_strndup("abcdef", 3);

	(void)state;
	assert_string_equal(copy, "abc");
	free(copy);
}

static void grow_doubles_the_capacity(void **state)
{
	uint32_t *items = NULL;
	uint32_t count = 0, capacity = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		mem_grow(items, count, capacity);
		items[count++] = i;
	}
	assert_int_equal(capacity, 1024);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	free(items);
}

static void arena_gives_aligned_zeroes(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	for (size_t size = 0; size < 40000; size = size * 3 / 2 + 1) {
		char *memory = arena_alloc(&arena, size);

		assert_int_equal((uintptr_t)memory % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 0xff, size);
	}
	arena_free(&arena);
	assert_int_equal(arena.used_bytes, 0);
}

static void arena_objects_do_not_overlap(void **state)
{
	struct arena arena;
	uint64_t *objects[500];

	(void)state;
	arena_init(&arena, 0);
	for (uint64_t i = 0; i < 500; i++) {
		size_t count = i % 7 == 3 ? 5000 : 1 + i % 13;

		objects[i] = arena_new_array(&arena, uint64_t, count);
		objects[i][0] = i;
		objects[i][count - 1] = i;
	}
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(objects[i][0], i);
	arena_free(&arena);
}

static void arena_drops_what_has_a_chunk_of_its_own(void **state)
{
	struct arena arena;
	char *small, *large[3];

	(void)state;
	arena_init(&arena, (size_t)3 << 20);
	for (size_t i = 0; i < 3; i++) {
		large[i] = arena_alloc(&arena, ((size_t)1 << 20) - 1000);
		assert_non_null(large[i]);
		large[i][0] = (char)i;
	}
	small = arena_alloc(&arena, 7);
	small[0] = 's';
	assert_null(arena_alloc(&arena, (size_t)1 << 20));
	arena_drop(&arena, small, 7);
	arena_drop(&arena, large[1], ((size_t)1 << 20) - 1000);
	arena_drop(&arena, NULL, 0);
	assert_non_null(arena_alloc(&arena, ((size_t)1 << 20) - 1000));
	assert_int_equal(large[0][0], 0);
	assert_int_equal(large[2][0], 2);
	arena_drop(&arena, large[0], ((size_t)1 << 20) - 1000);
	arena_drop(&arena, large[2], ((size_t)1 << 20) - 1000);
	small = arena_alloc(&arena, 7);
	assert_int_equal(small[0], 0);
	arena_free(&arena);
	assert_int_equal(arena.used_bytes, 0);
}

static void arena_clears_what_was_used_before(void **state)
{
	struct arena arena;

	(void)state;
	arena_keep_spares((size_t)4 << 20);
	for (size_t round = 0; round < 20; round++) {
		size_t size = ((size_t)300 << 10) + round % 7 * ((size_t)200 << 10);

		arena_init(&arena, 0);
		for (size_t i = 0; i < 6; i++) {
			char *memory = arena_alloc(&arena, size - i * 5000);

			assert_int_equal((uintptr_t)memory % 16, 0);
			assert_int_equal(memory[0], 0);
			assert_memory_equal(memory, memory + 1, size - i * 5000 - 1);
			memset(memory, 0xff, size - i * 5000);
		}
		arena_free(&arena);
	}
	arena_keep_spares(0);
}

/* What is in use again and again stays, what is not goes. */
static void arena_gives_up_what_nobody_takes(void **state)
{
	struct arena arena, other;

	(void)state;
	arena_keep_spares((size_t)4 << 20);
	arena_init(&arena, 0);
	arena_init(&other, 0);
	assert_non_null(arena_alloc(&arena, (size_t)1 << 20));
	assert_non_null(arena_alloc(&other, (size_t)2 << 20));
	arena_free(&other);
	arena_free(&arena);
	assert_int_equal(arena_age_spares(), (size_t)3 << 20); /* new ones */
	for (int i = 0; i < 3; i++) {
		assert_non_null(arena_alloc(&arena, (size_t)1 << 20));
		arena_free(&arena);
		assert_int_equal(arena_age_spares(), (size_t)1 << 20);
	}
	assert_int_equal(arena_age_spares(), 0);
	arena_keep_spares(0);
}

static void arena_refuses_over_its_budget_and_remembers(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1000);
	assert_non_null(arena_alloc(&arena, 992));
	assert_false(arena.over_budget);
	assert_null(arena_alloc(&arena, 1));
	assert_true(arena.over_budget);
	assert_int_equal(arena_copy(&arena, SLICE_LITERAL("text")).len, 0);
	arena_free(&arena);
	assert_false(arena.over_budget);
	assert_non_null(arena_alloc(&arena, 992));
	arena_free(&arena);
}

static void arena_refuses_sizes_that_overflow(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc_array(&arena, SIZE_MAX / 2, 4));
	assert_true(arena.over_budget);
	arena_free(&arena);
}

static void arena_copy_terminates(void **state)
{
	struct arena arena;
	struct slice copy;

	(void)state;
	arena_init(&arena, 0);
	copy = arena_copy(&arena, slice_from("abcdef", 3));
	assert_string_equal(copy.data, "abc");
	assert_int_equal(arena_copy(&arena, (struct slice){ NULL, 0 }).len, 0);
	arena_free(&arena);
}

static void vmarray_elements_never_move(void **state)
{
	struct vmarray array;
	uint64_t *first;

	(void)state;
	vmarray_init(&array, sizeof(uint64_t), 1000000);
	first = vmarray_add(&array, 1);
	for (uint64_t i = 1; i < 1000000; i++)
		*(uint64_t *)vmarray_add(&array, 1) = i;
	assert_ptr_equal(array.data, first);
	for (uint64_t i = 0; i < 1000000; i += 997)
		assert_int_equal(first[i], i);
	vmarray_free(&array);
}

static void vmarray_is_full_at_its_max(void **state)
{
	struct vmarray array;

	(void)state;
	vmarray_init(&array, 3, 10);
	assert_null(vmarray_add(&array, 11));
	assert_non_null(vmarray_add(&array, 9));
	assert_int_equal(vmarray_room(&array), 1);
	assert_null(vmarray_add(&array, 2));
	assert_null(vmarray_add(&array, SIZE_MAX));
	assert_non_null(vmarray_add(&array, 1));
	assert_non_null(vmarray_add(&array, 0));
	assert_int_equal(array.count, 10);
	vmarray_free(&array);
}

static bool all_zero(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

/* After a reset everything is zero again, whether it was kept or given back. */
static void vmarray_is_zeroed_when_used_again(void **state)
{
	static const size_t keeps[] = { 0, 1, 4096, 100000, 1 << 20, SIZE_MAX };
	const size_t len = 300000;

	(void)state;
	for (size_t i = 0; i < sizeof(keeps) / sizeof(keeps[0]); i++) {
		struct vmarray array;

		vmarray_init(&array, 1, len);
		memset(vmarray_add(&array, len), 0xff, len);
		vmarray_reset(&array, keeps[i]);
		assert_int_equal(array.count, 0);
		assert_true(all_zero(vmarray_add(&array, len), len));
		vmarray_free(&array);
	}
}

static void vmarray_is_zeroed_when_its_pages_are_locked(void **state)
{
	struct vmarray array;
	const size_t len = 131072;

	(void)state;
	vmarray_init(&array, 1, len);
	memset(vmarray_add(&array, len), 0xff, len);
	if (mlock(array.data, len)) {
		print_message("# skip: the limit of locked memory is too low\n");
		skip();
	}
	vmarray_reset(&array, 0);
	assert_true(all_zero(vmarray_add(&array, len), len));
	vmarray_free(&array);
}

#define BLOCKS 1024
#define BLOCK_BYTES ((size_t)64 << 10)

/* What was freed stays in memory as long as something lies above it in the heap. */
static void trim_gives_back_what_was_freed_between_what_is_in_use(void **state)
{
	static void *blocks[BLOCKS], *pins[BLOCKS];
	int64_t freed_bytes, trimmed_bytes;

	(void)state;
	if (!mallinfo2().arena) {
		print_message("# skip: these heaps are a sanitizer's\n");
		skip();
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = mem_calloc(1, BLOCK_BYTES);
		memset(blocks[i], 1, BLOCK_BYTES);
		pins[i] = mem_calloc(1, 64);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	freed_bytes = mem_resident().unused_bytes;
	mem_trim();
	trimmed_bytes = mem_resident().unused_bytes;
	for (size_t i = 0; i < BLOCKS; i++)
		free(pins[i]);
	assert_true(freed_bytes - trimmed_bytes > (int64_t)(BLOCKS * BLOCK_BYTES / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_overflow_end_the_process),
		cmocka_unit_test(sizes_of_zero_are_allowed),
		cmocka_unit_test(strndup_copies_and_terminates),
		cmocka_unit_test(trim_gives_back_what_was_freed_between_what_is_in_use),
		cmocka_unit_test(grow_doubles_the_capacity),
		cmocka_unit_test(arena_gives_aligned_zeroes),
		cmocka_unit_test(arena_objects_do_not_overlap),
		cmocka_unit_test(arena_drops_what_has_a_chunk_of_its_own),
		cmocka_unit_test(arena_clears_what_was_used_before),
		cmocka_unit_test(arena_gives_up_what_nobody_takes),
		cmocka_unit_test(arena_refuses_over_its_budget_and_remembers),
		cmocka_unit_test(arena_refuses_sizes_that_overflow),
		cmocka_unit_test(arena_copy_terminates),
		cmocka_unit_test(vmarray_elements_never_move),
		cmocka_unit_test(vmarray_is_full_at_its_max),
		cmocka_unit_test(vmarray_is_zeroed_when_used_again),
		cmocka_unit_test(vmarray_is_zeroed_when_its_pages_are_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
