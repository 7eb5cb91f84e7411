/* SPDX-License-Identifier: Apache-2.0 */
/* Records of mappings to whole lists: in order, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/procs/space_parts.h"

#define WHOLE_BYTES(count) (SPACE_RECORD_HEADER_BYTES + (count) * sizeof(struct space_mapping))

/* Part `part` of `parts` of a reading on a CPU, with `count` mappings of a page each. */
static struct space_record part_of(uint32_t cpu, uint64_t at_ns, uint16_t part, uint16_t parts,
				   uint16_t count)
{
	struct space_record record = {
		.head = { .kind = RECORD_SPACE, .cpu = cpu, .at_ns = at_ns, .tgid = 10 + cpu },
		.part = part,
		.parts = parts,
		.count = count,
	};

	for (uint16_t i = 0; i < count; i++) {
		uint64_t start = 0x1000ull * (1 + part * SPACE_PART_MAPPINGS + i);

		record.mappings[i] = (struct space_mapping){ .start = start,
							     .end = start + 0x1000,
							     .file = { .inode = at_ns } };
	}
	return record;
}

static enum space_parts_result take(struct space_parts *parts, const struct space_record *record,
				    struct space_list *ret)
{
	return space_parts_take(parts, record, WHOLE_BYTES(record->count), ret);
}

static void one_part_is_a_list(void **state)
{
	struct space_record record = part_of(0, 1, 0, 1, 3);
	struct space_parts parts = { 0 };
	struct space_list list;

	(void)state;
	record.space_flags = SPACE_HAS_UNKNOWN_FILE;
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_WHOLE);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.flags, SPACE_HAS_UNKNOWN_FILE);
	assert_int_equal(list.mappings[2].start, 0x3000);
	record.count = 0; /* no code at all is an answer as well */
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_WHOLE);
	assert_int_equal(list.count, 0);
	space_parts_fini(&parts);
}

static void parts_of_several_cpus_may_alternate(void **state)
{
	struct space_parts parts = { 0 };
	struct space_list list;

	(void)state;
	for (uint16_t part = 0; part < SPACE_PARTS_MAX; part++)
		for (uint32_t cpu = 0; cpu < 4; cpu++) {
			struct space_record record =
				part_of(cpu, 5 + cpu, part, SPACE_PARTS_MAX, SPACE_PART_MAPPINGS);
			bool is_last = part == SPACE_PARTS_MAX - 1;

			record.space_flags = part == 3 ? SPACE_CUT : 0;
			assert_int_equal(take(&parts, &record, &list),
					 is_last ? SPACE_PARTS_WHOLE : SPACE_PARTS_MORE);
			if (!is_last)
				continue;
			assert_int_equal(list.count, SPACE_PARTS_MAPPINGS_MAX);
			assert_int_equal(list.flags, SPACE_CUT);
			for (size_t i = 0; i < list.count; i++) {
				assert_int_equal(list.mappings[i].start, 0x1000 * (i + 1));
				assert_int_equal(list.mappings[i].file.inode, 5 + cpu);
			}
		}
	assert_int_equal(parts.lost, 0);
	space_parts_fini(&parts);
}

static void lost_part_loses_the_reading_and_no_other(void **state)
{
	struct space_parts parts = { 0 };
	struct space_record record = part_of(0, 1, 0, 3, 2);
	struct space_list list;

	(void)state;
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_MORE);
	record = part_of(0, 1, 2, 3, 2); /* the second is missing */
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_BAD);
	assert_int_equal(parts.lost, 1);
	record = part_of(0, 1, 1, 3, 2); /* too late */
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_BAD);
	assert_int_equal(parts.lost, 1);
	record = part_of(0, 2, 0, 2, 2);
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_MORE);
	record = part_of(0, 3, 0, 1, 2); /* the rest of the reading before is missing */
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_WHOLE);
	assert_int_equal(parts.lost, 2);
	record = part_of(0, 2, 1, 2, 2);
	assert_int_equal(take(&parts, &record, &list), SPACE_PARTS_BAD);
	space_parts_fini(&parts);
}

static void parts_of_different_readings_are_not_joined(void **state)
{
	struct space_parts parts = { 0 };
	struct space_list list;

	(void)state;
	for (int what = 0; what < 5; what++) {
		struct space_record first = part_of(0, 1, 0, 2, 2), second = part_of(0, 1, 1, 2, 2);

		assert_int_equal(take(&parts, &first, &list), SPACE_PARTS_MORE);
		if (what == 0)
			second.head.at_ns++;
		else if (what == 1)
			second.head.tgid++;
		else if (what == 2)
			second.head.exec_id++;
		else if (what == 3)
			second.head.process_start_ns++;
		else
			second.parts++;
		assert_int_equal(take(&parts, &second, &list), SPACE_PARTS_BAD);
	}
	assert_int_equal(parts.lost, 5);
	space_parts_fini(&parts);
}

static void unsound_records_are_refused(void **state)
{
	const struct space_record good = part_of(0, 1, 0, 1, 3);
	struct space_parts parts = { 0 };
	struct space_record bad;
	struct space_list list;

	(void)state;
	assert_int_equal(space_parts_take(&parts, &good, WHOLE_BYTES(3) - 1, &list),
			 SPACE_PARTS_BAD);
	assert_int_equal(space_parts_take(&parts, &good, SPACE_RECORD_HEADER_BYTES - 1, &list),
			 SPACE_PARTS_BAD);
	assert_int_equal(space_parts_take(&parts, &good, WHOLE_BYTES(3) + 4, &list),
			 SPACE_PARTS_WHOLE); /* padding */
#define BAD(change)                                                                                \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		assert_int_equal(space_parts_take(&parts, &bad, sizeof(bad), &list),               \
				 SPACE_PARTS_BAD);                                                 \
	} while (0)
	BAD(bad.count = SPACE_PART_MAPPINGS + 1);
	BAD(bad.count = UINT16_MAX);
	BAD(bad.parts = 0);
	BAD(bad.part = 1);
	BAD(bad.parts = SPACE_PARTS_MAX + 1);
	BAD(bad.head.cpu = SPACE_PARTS_CPUS_MAX);
	BAD(bad.head.cpu = UINT32_MAX);
	BAD(bad.mappings[1].start = 0x1fff);		  /* overlaps the one before */
	BAD(bad.mappings[1].start = 0x500);		  /* out of order */
	BAD(bad.mappings[1].end = bad.mappings[1].start); /* empty */
	BAD(bad.mappings[1].end = 0);
	BAD(bad.mappings[2].offset = UINT64_MAX - 0x800); /* ends behind the last offset */
#undef BAD
	space_parts_fini(&parts);
}

static void parts_may_not_overlap_one_another(void **state)
{
	struct space_record first = part_of(0, 1, 0, 2, SPACE_PART_MAPPINGS);
	struct space_record second = part_of(0, 1, 1, 2, 2);
	struct space_parts parts = { 0 };
	struct space_list list;

	(void)state;
	first.mappings[SPACE_PART_MAPPINGS - 1].end += 0x800;
	assert_int_equal(take(&parts, &first, &list), SPACE_PARTS_MORE);
	assert_int_equal(take(&parts, &second, &list), SPACE_PARTS_BAD);
	assert_int_equal(parts.lost, 1);
	space_parts_fini(&parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_part_is_a_list),
		cmocka_unit_test(parts_of_several_cpus_may_alternate),
		cmocka_unit_test(lost_part_loses_the_reading_and_no_other),
		cmocka_unit_test(parts_of_different_readings_are_not_joined),
		cmocka_unit_test(unsound_records_are_refused),
		cmocka_unit_test(parts_may_not_overlap_one_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
