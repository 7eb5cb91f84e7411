/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a window of a process's memory gives is what single reads would give, with fewer of them,
 * also beside pages that are not there; and what a sample has seen is not seen in the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdbool.h>

#include <linux/types.h>

#define BASE 0x10000ull
#define PAGE 4096u
#define PAGES 4u
#define FRAME_BYTES 72u
#define NOW_NS (1ull << 50)

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Copies of code with one proof that were lost. */
#define LOST_PROOF (77ull * 4096)
static uint32_t lost;
#define script_lost(proof) ((proof) == LOST_PROOF ? lost : 0)

static uint64_t memory[PAGES * PAGE / 8];
static bool is_resident[PAGES];
static size_t reads, bytes_read;

/* As the kernel reads: all of it, or nothing where a page is missing. */
static long walk_read(void *to, uint32_t bytes, uint64_t address)
{
	reads++;
	for (uint64_t at = address; at < address + bytes; at++)
		if (at < BASE || at - BASE >= sizeof(memory) || !is_resident[(at - BASE) / PAGE])
			return -1;
	bytes_read += bytes;
	memcpy(to, (const char *)memory + (address - BASE), bytes);
	return 0;
}

#include "agent/bpf/shared.h"
#include "agent/bpf/script.h"

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(memory) / 8; i++)
		memory[i] = i * 0x9e3779b97f4a7c15ull;
	for (size_t i = 0; i < PAGES; i++)
		is_resident[i] = true;
	reads = bytes_read = 0;
	return 0;
}

static void check(struct script_window *window, uint64_t address, uint32_t bytes,
		  enum script_direction direction)
{
	const __u64 *words;

	assert_true(script_window_read(window, address, bytes, direction));
	words = script_window_at(window, address);
	assert_memory_equal(words, &memory[(address - BASE) / 8], bytes);
}

static void frames_side_by_side_take_few_reads(void **state)
{
	struct script_window window;
	uint64_t top = BASE + 2 * PAGE + 1024;
	size_t frames = 0;

	(void)state;
	script_window_reset(&window, 0);
	for (uint64_t at = top; at > BASE + PAGE; at -= FRAME_BYTES + 8, frames++)
		check(&window, at, FRAME_BYTES, SCRIPT_OUTWARDS_IS_DOWN);
	assert_true(frames > 60 && reads < frames / 6);
	reads = 0;
	script_window_reset(&window, BASE);
	for (uint64_t at = BASE; at + 64 <= BASE + 2 * PAGE; at += 64)
		check(&window, at, 64, SCRIPT_OUTWARDS_IS_UP);
	assert_true(reads <= 12);
}

static void frames_apart_are_read_alone(void **state)
{
	struct script_window window;

	(void)state;
	script_window_reset(&window, 0);
	for (uint64_t i = 0; i < 6; i++)
		check(&window, BASE + (7 - i) * 2000, FRAME_BYTES, SCRIPT_OUTWARDS_IS_DOWN);
	assert_int_equal(bytes_read, 6 * FRAME_BYTES);
}

static void a_missing_page_beside_a_frame_does_no_harm(void **state)
{
	struct script_window window;

	(void)state;
	is_resident[0] = is_resident[2] = false;
	script_window_reset(&window, BASE + PAGE + 16);
	check(&window, BASE + PAGE + 16, FRAME_BYTES, SCRIPT_OUTWARDS_IS_DOWN);
	check(&window, BASE + PAGE, 16, SCRIPT_OUTWARDS_IS_DOWN);
	assert_false(script_window_read(&window, BASE + PAGE - 8, 16, SCRIPT_OUTWARDS_IS_DOWN));
	assert_false(script_window_read(&window, BASE + PAGE - 8, 16, SCRIPT_OUTWARDS_IS_DOWN));
	script_window_reset(&window, BASE + 2 * PAGE - 64);
	check(&window, BASE + 2 * PAGE - 64, 64, SCRIPT_OUTWARDS_IS_UP);
	assert_false(script_window_read(&window, BASE + 2 * PAGE, 64, SCRIPT_OUTWARDS_IS_UP));
}

static void a_frame_over_the_end_of_a_page_is_read(void **state)
{
	struct script_window window;

	(void)state;
	script_window_reset(&window, BASE + PAGE - 24);
	check(&window, BASE + PAGE - 24, FRAME_BYTES, SCRIPT_OUTWARDS_IS_DOWN);
	script_window_reset(&window, BASE + PAGE - 24);
	check(&window, BASE + PAGE - 24, FRAME_BYTES, SCRIPT_OUTWARDS_IS_UP);
	assert_false(script_window_read(&window, BASE + 4, 16, SCRIPT_OUTWARDS_IS_UP));
}

static void what_is_seen_holds_for_one_sample(void **state)
{
	static struct script script = { .process.layout = { .proof_words = 4 }, .sample = 1 };
	uint32_t proof = script_prove(&script, BASE + 64);

	(void)state;
	assert_true(proof);
	assert_int_equal(script_prove(&script, BASE + 64), proof);
	assert_int_equal(reads, 1);
	memory[8]++;
	assert_int_equal(script_prove(&script, BASE + 64), proof);
	script.sample++;
	assert_int_not_equal(script_prove(&script, BASE + 64), proof);
	assert_int_equal(reads, 2);
}

/* What the agent is woken for. */
static bool is_news(struct script_had *had, uint32_t tgid, uint64_t round, uint64_t what)
{
	script_had_start(had, tgid, round);
	had->lost = lost;
	script_had_note(had, what);
	return had->is_new;
}

static void what_samples_had_is_new_once(void **state)
{
	struct script_had had;
	size_t news = 0;

	(void)state;
	for (uint64_t what = 1; what <= 100; what++)
		news += is_news(&had, 7, 5, what * 4096);
	assert_int_equal(news, 100);
	for (uint64_t what = 1; what <= 100; what++)
		news += is_news(&had, 7, 5, what * 4096);
	assert_in_range(news, 100, 110); /* some have taken the places of others */
	assert_false(is_news(&had, 7, 5, 100 * 4096));
	assert_true(is_news(&had, 8, 5, 100 * 4096));
	assert_true(is_news(&had, 7, 6, 100 * 4096));
}

/* What was gone before it was read is new again, and nothing else. */
static void what_was_lost_is_new_again(void **state)
{
	struct script_had had;
	uint64_t round;

	(void)state;
	assert_true(is_news(&had, 9, 5, LOST_PROOF));
	assert_true(is_news(&had, 9, 5, 4096));
	assert_false(is_news(&had, 9, 5, LOST_PROOF));
	round = script_had_round(&had);
	lost++;
	assert_false(is_news(&had, 9, 5, 4096));
	assert_int_not_equal(script_had_round(&had), round);
	assert_true(is_news(&had, 9, 5, LOST_PROOF));
	assert_false(is_news(&had, 9, 5, LOST_PROOF));
	lost = 0;
}

/* Seven servers' functions do not wake the agent again and again. */
static void what_many_processes_had_stays(void **state)
{
	struct script_had had;
	size_t news = 0;

	(void)state;
	for (int time = 0; time < 2; time++) {
		news = 0;
		for (uint32_t tgid = 1000; tgid < 1020; tgid++)
			for (uint64_t what = 1; what <= 100; what++)
				news += is_news(&had, tgid, 5, what * 4096);
	}
	assert_in_range(news, 0, 2000 / 5); /* of two thousand */
}

static bool is_there(const struct script_lasting_table *table, uint64_t address)
{
	const struct script_lasting *found = script_lasting_at(table, address);

	return found->key == (address ^ table->scope) && found->proof == ~address;
}

static void keep(struct script_lasting_table *table, uint64_t address)
{
	struct script_lasting function = { .key = address ^ table->scope, .proof = ~address };

	script_lasting_put(table, &function);
}

static void what_lasts_has_its_place_beside_one_other(void **state)
{
	static struct script_lasting_table table;
	const uint64_t again = (SCRIPT_LASTING_MAX / 2) << SCRIPT_LASTING_SHIFT;
	uint64_t scope;

	(void)state;
	script_lasting_begin(&table, NOW_NS, 1, 2, 3);
	scope = table.scope;
	for (uint64_t i = 0; i < 500; i++)
		keep(&table, BASE + 232 * i);
	for (uint64_t i = 0; i < 500; i++)
		assert_true(is_there(&table, BASE + 232 * i));
	keep(&table, BASE + again);
	keep(&table, BASE + again);
	assert_true(is_there(&table, BASE) && is_there(&table, BASE + again));
	keep(&table, BASE + 2 * again);
	assert_true(is_there(&table, BASE + again) && is_there(&table, BASE + 2 * again));
	assert_false(is_there(&table, BASE));
	/* In each other scope there is nothing, and at no address where nothing is. */
	script_lasting_begin(&table, NOW_NS + (1ull << SCRIPT_LASTING_NS_LOG2), 1, 2, 3);
	assert_false(is_there(&table, BASE + again));
	script_lasting_begin(&table, NOW_NS, 2, 2, 3);
	assert_false(is_there(&table, BASE + again));
	script_lasting_begin(&table, NOW_NS, 1, 3, 3);
	assert_false(is_there(&table, BASE + again));
	script_lasting_begin(&table, NOW_NS, 1, 2, 2);
	assert_false(is_there(&table, BASE + again));
	memset(&table.of, 0, sizeof(table.of));
	assert_int_not_equal(script_lasting_at(&table, table.scope & ~7ull)->key,
			     (table.scope & ~7ull) ^ table.scope);
	script_lasting_begin(&table, NOW_NS, 1, 2, 3);
	assert_int_equal(table.scope, scope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames_side_by_side_take_few_reads, setup),
		cmocka_unit_test_setup(frames_apart_are_read_alone, setup),
		cmocka_unit_test_setup(a_missing_page_beside_a_frame_does_no_harm, setup),
		cmocka_unit_test_setup(a_frame_over_the_end_of_a_page_is_read, setup),
		cmocka_unit_test_setup(what_is_seen_holds_for_one_sample, setup),
		cmocka_unit_test(what_samples_had_is_new_once),
		cmocka_unit_test(what_was_lost_is_new_again),
		cmocka_unit_test(what_many_processes_had_stays),
		cmocka_unit_test(what_lasts_has_its_place_beside_one_other),
	};

	return cmocka_run_group_tests_name("script_window", tests, NULL, NULL);
}
