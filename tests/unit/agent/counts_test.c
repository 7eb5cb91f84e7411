/* SPDX-License-Identifier: Apache-2.0 */
/* Samples to distinct stacks: nothing lost, nothing made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/collect/counts.h"

static struct sample make_sample(uint64_t seed, uint16_t kernel_count, uint16_t user_count)
{
	struct sample sample = { .head.kind = RECORD_SAMPLE,
				 .kernel_count = kernel_count,
				 .user_count = user_count };

	for (size_t i = 0; i < (size_t)kernel_count + user_count; i++)
		sample.frames[i] = seed * 1000 + i;
	strcpy(sample.thread_name, "worker");
	return sample;
}

/* Counts a sample of a process; *ret_new tells a stack not seen before. */
static uint32_t add(struct counts *counts, const struct sample *sample, uint32_t process,
		    uint32_t space, unsigned keep, bool *ret_new)
{
	static struct counts_key key;

	if (!counts_key_of(counts, sample, process, keep, &key))
		return COUNTS_FULL;
	*ret_new = !counts_has(counts, &key, space);
	return counts_add(counts, &key, space, COUNTS_NO_TIME);
}

static void equal_stacks_are_counted_once(void **state)
{
	struct sample sample = make_sample(1, 3, 5);
	struct counts counts;
	bool is_new;
	uint32_t id;

	(void)state;
	counts_init(&counts);
	id = add(&counts, &sample, 0, 0, 0, &is_new);
	assert_true(is_new);
	sample.head.cpu = 7; /* not part of what is counted */
	sample.head.at_ns = 99;
	assert_int_equal(add(&counts, &sample, 0, 0, 0, &is_new), id);
	assert_false(is_new);
	assert_int_equal(counts_stack(&counts, id)->samples, 2);
	assert_int_equal(counts_kernel_frames(&counts, counts_stack(&counts, id))[2], 1002);
	assert_int_equal(counts_user_frames(&counts, counts_stack(&counts, id))[0], 1003);
	counts_free(&counts);
}

static void what_differs_is_kept_apart(void **state)
{
	struct sample sample = make_sample(1, 3, 5), other;
	struct counts counts;
	bool is_new;

	(void)state;
	counts_init(&counts);
	add(&counts, &sample, 0, 0, COUNTS_THREAD_NAME, &is_new);
	add(&counts, &sample, 1, 0, COUNTS_THREAD_NAME, &is_new); /* process */
	assert_true(is_new);
	add(&counts, &sample, 0, 1, COUNTS_THREAD_NAME, &is_new); /* mappings */
	assert_true(is_new);
	add(&counts, &sample, 0, 0, 0, &is_new); /* thread name not kept */
	assert_true(is_new);
	other = sample;
	strcpy(other.thread_name, "other");
	add(&counts, &other, 0, 0, COUNTS_THREAD_NAME, &is_new);
	assert_true(is_new);
	other = sample;
	other.frames[7]++;
	add(&counts, &other, 0, 0, COUNTS_THREAD_NAME, &is_new);
	assert_true(is_new);
	other = sample;
	other.kernel_count--; /* the same addresses, divided otherwise */
	other.user_count++;
	add(&counts, &other, 0, 0, COUNTS_THREAD_NAME, &is_new);
	assert_true(is_new);
	other = sample;
	other.user_end = STACK_UNREADABLE;
	add(&counts, &other, 0, 0, COUNTS_THREAD_NAME, &is_new);
	assert_true(is_new);
	other = sample;
	other.head.cpu = 7;
	add(&counts, &other, 0, 0, COUNTS_THREAD_NAME, &is_new); /* its CPU is not kept */
	assert_false(is_new);
	add(&counts, &other, 0, 0, COUNTS_CPU, &is_new);
	assert_true(is_new);
	other.head.tid = 9;
	add(&counts, &other, 0, 0, COUNTS_CPU, &is_new); /* its thread is not kept */
	assert_false(is_new);
	add(&counts, &other, 0, 0, COUNTS_CPU | COUNTS_THREAD, &is_new);
	assert_true(is_new);
	assert_int_equal(counts.samples, 12);
	counts_free(&counts);
}

static void no_sample_is_lost_or_made_up(void **state)
{
	struct counts counts;
	uint64_t sum = 0;
	bool is_new;

	(void)state;
	srand(1);
	counts_init(&counts);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 20000; i++) {
			struct sample sample = make_sample((uint64_t)rand() % 500, 4, 20);

			assert_int_not_equal(add(&counts, &sample, (uint32_t)rand() % 3, 0,
						 rand() % 2 ? COUNTS_THREAD_NAME : 0u, &is_new),
					     COUNTS_FULL);
		}
		sum = 0;
		for (uint32_t id = 0; id < counts.stacks.count; id++)
			sum += counts_stack(&counts, id)->samples;
		assert_int_equal(sum, 20000);
		assert_int_equal(counts.samples, 20000);
		assert_true(counts.stacks.count <= 500 * 3 * 2);
		counts_clear(&counts);
	}
	counts_free(&counts);
}

static void full_tables_say_so_and_count_nothing(void **state)
{
	struct sample sample = make_sample(1, 0, SAMPLE_USER_FRAMES_MAX);
	struct counts counts;
	uint64_t before;
	bool is_new;

	(void)state;
	counts_init(&counts);
	do {
		sample.frames[0]++;
		before = counts.samples;
	} while (add(&counts, &sample, 0, 0, 0, &is_new) != COUNTS_FULL);
	assert_int_equal(counts.samples, before);
	assert_int_equal(counts.samples, COUNTS_FRAMES_MAX / SAMPLE_USER_FRAMES_MAX);
	sample.frames[0]--; /* known ones still count */
	assert_int_not_equal(add(&counts, &sample, 0, 0, 0, &is_new), COUNTS_FULL);
	counts_clear(&counts);
	assert_int_not_equal(add(&counts, &sample, 0, 0, 0, &is_new), COUNTS_FULL);
	assert_true(is_new);
	counts_free(&counts);
}

static void return_addresses_are_moved_into_their_calls(void **state)
{
	struct sample sample = make_sample(1, 1, 3);
	struct counts counts;
	const uint64_t *user;
	bool is_new;
	uint32_t id;

	(void)state;
	sample.head.flags = SAMPLE_RETURN_ADDRESSES;
	counts_init(&counts);
	id = add(&counts, &sample, 0, 0, 0, &is_new);
	user = counts_user_frames(&counts, counts_stack(&counts, id));
	assert_int_equal(user[0], 1001);
	assert_int_equal(user[1], 1001);
	assert_int_equal(user[2], 1002);
	counts_free(&counts);
}

/* Whether `len` bytes at `record` begin with a sample. */
static bool has_sample(const struct sample *record, size_t len)
{
	const void *rest = record;

	return counts_next_sample(&rest, &len) != NULL;
}

static void unsound_records_are_found(void **state)
{
	struct sample sample = make_sample(1, 3, 5);
	size_t len = SAMPLE_HEADER_BYTES + 8 * 8;

	(void)state;
	assert_true(has_sample(&sample, len));
	assert_true(has_sample(&sample, len + 4)); /* padding */
	assert_false(has_sample(&sample, len - 1));
	assert_false(has_sample(&sample, SAMPLE_HEADER_BYTES - 1));
	sample.head.kind = RECORD_SPACE;
	assert_false(has_sample(&sample, len));
	sample.head.kind = RECORD_SAMPLE;
	sample.user_end = STACK_ENDS;
	assert_false(has_sample(&sample, len));
	sample.user_end = 0;
	sample.user_count = UINT16_MAX;
	assert_false(has_sample(&sample, SIZE_MAX));
	sample.user_count = 0;
	sample.kernel_count = SAMPLE_KERNEL_FRAMES_MAX + 1;
	assert_false(has_sample(&sample, sizeof(sample)));
}

static void record_is_split_into_its_samples(void **state)
{
	static uint64_t record[3 * sizeof(struct sample) / 8];
	const uint16_t frames[] = { 4, 0, 7 };
	size_t len = 0;
	const void *rest = record;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sample sample = make_sample(i + 1, 0, frames[i]);
		size_t bytes = SAMPLE_HEADER_BYTES + 8 * (size_t)frames[i];

		memcpy((char *)record + len, &sample, bytes);
		len += bytes;
	}
	len -= 8; /* the last one is cut */
	for (size_t i = 0; i < 2; i++) {
		struct sample expected = make_sample(i + 1, 0, frames[i]);
		const struct sample *sample = counts_next_sample(&rest, &len);

		assert_non_null(sample);
		assert_memory_equal(sample, &expected, SAMPLE_HEADER_BYTES + 8 * (size_t)frames[i]);
	}
	assert_null(counts_next_sample(&rest, &len));
	assert_int_equal(len, SAMPLE_HEADER_BYTES + 8 * 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_counted_once),
		cmocka_unit_test(what_differs_is_kept_apart),
		cmocka_unit_test(no_sample_is_lost_or_made_up),
		cmocka_unit_test(full_tables_say_so_and_count_nothing),
		cmocka_unit_test(return_addresses_are_moved_into_their_calls),
		cmocka_unit_test(unsound_records_are_found),
		cmocka_unit_test(record_is_split_into_its_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
