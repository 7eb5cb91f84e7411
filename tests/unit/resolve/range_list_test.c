/* SPDX-License-Identifier: Apache-2.0 */
/* Range lists by hand, of both kinds, whole and cut off. */
#include "server/resolve/read/range_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t addresses[] = { 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0 };

static struct range_list list_of(const uint8_t *bytes, size_t len, bool is_dwarf_5)
{
	return (struct range_list){ .bytes = slice_from(bytes, len),
				    .addresses = slice_from(addresses, sizeof(addresses)),
				    .base = 0x100,
				    .address_bytes = 8,
				    .is_dwarf_5 = is_dwarf_5 };
}

static void expect(struct range_list *list, uint64_t low, uint64_t high)
{
	uint64_t got_low = 0, got_high = 0;

	assert_true(range_list_next(list, &got_low, &got_high));
	assert_int_equal(got_low, low);
	assert_int_equal(got_high, high);
}

static void all_kinds_of_dwarf_5_are_read(void **state)
{
	static const uint8_t bytes[] = {
		4, 1, 5,				  /* offset pair */
		1, 1, 4, 0x80, 1, 0x81, 1,		  /* base by number, offset pair */
		2, 0, 1,				  /* start and end by number */
		3, 1, 7,				  /* start by number, length */
		5, 0, 0, 3,    0, 0,	0, 0, 0, 4, 1, 2, /* base, offset pair */
		6, 1, 0, 0,    0, 0,	0, 0, 0, 9, 0, 0, 0, 0,
		0, 0, 0, 7,    2, 0,	0, 0, 0, 0, 0, 0, 3, 0,
	};
	struct range_list list = list_of(bytes, sizeof(bytes), true);
	uint64_t low, high;

	(void)state;
	expect(&list, 0x101, 0x105);
	expect(&list, 0x2080, 0x2081);
	expect(&list, 0x1000, 0x2000);
	expect(&list, 0x2000, 0x2007);
	expect(&list, 0x30001, 0x30002);
	expect(&list, 1, 9);
	expect(&list, 2, 5);
	assert_false(range_list_next(&list, &low, &high));
}

static void pairs_count_from_their_base(void **state)
{
	static const uint8_t bytes[] = {
		1,    0,    0,	  0,	0,    0,    0,	  0,	4, 0, 0, 0, 0, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 5, 0, 0, 0, 0, 0, 0,
		1,    0,    0,	  0,	0,    0,    0,	  0,	2, 0, 0, 0, 0, 0, 0, 0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0, 0, 0, 0, 0, 0, 0, 0,
	};
	struct range_list list = list_of(bytes, sizeof(bytes), false);
	uint64_t low, high;

	(void)state;
	expect(&list, 0x101, 0x104);
	expect(&list, 0x501, 0x502);
	assert_false(range_list_next(&list, &low, &high));
	list = list_of(bytes, 12, false);
	assert_false(range_list_next(&list, &low, &high));
}

static void damage_ends_a_list(void **state)
{
	static const uint8_t far_index[] = { 3, 2, 1 }, unknown[] = { 9, 0 };
	static const uint8_t endless[] = { 4,	 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80, 0x80, 0x80, 0x80, 0x80, 1 };
	struct range_list list = list_of(far_index, sizeof(far_index), true);
	uint64_t low, high;
	size_t at;

	(void)state;
	assert_false(range_list_next(&list, &low, &high));
	list = list_of(unknown, sizeof(unknown), true);
	assert_false(range_list_next(&list, &low, &high));
	list = list_of(endless, sizeof(endless), true);
	assert_false(range_list_next(&list, &low, &high));
	list = list_of(endless, 0, true);
	list.at = 100;
	assert_false(range_list_next(&list, &low, &high));
	assert_false(range_list_find(slice_from(endless, sizeof(endless)), 3, &at));
	assert_false(range_list_find(slice_from(endless, sizeof(endless)), UINT64_MAX, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_of_dwarf_5_are_read),
		cmocka_unit_test(pairs_count_from_their_base),
		cmocka_unit_test(damage_ends_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
