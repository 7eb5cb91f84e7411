/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of mappings: kept once, found by address, gone with their last user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "agent/procs/space.h"
#include "base/mem.h"

struct fixture {
	struct binaries binaries;
	struct spaces spaces;
};

static int setup(void **state)
{
	struct fixture *fixture = mem_new(struct fixture);

	binaries_init(&fixture->binaries, false, NULL);
	spaces_init(&fixture->spaces, &fixture->binaries);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	spaces_fini(&fixture->spaces, 0);
	for (size_t i = 0; i < fixture->binaries.count; i++)
		assert_int_equal(fixture->binaries.items[i]->references, 0);
	binaries_fini(&fixture->binaries);
	free(fixture);
	return 0;
}

static bool add(struct fixture *fixture, uint64_t start, uint64_t end, uint64_t offset,
		uint64_t inode)
{
	struct file_key key = { .inode = inode };

	return spaces_add(&fixture->spaces, start, end, offset,
			  inode ? MAPPING_FILE : MAPPING_ANONYMOUS, &key, 0);
}

static struct space *end(struct fixture *fixture)
{
	return spaces_end(&fixture->spaces, 0);
}

static void addresses_are_found(void **state)
{
	struct fixture *fixture = *state;
	struct space *space;

	spaces_begin(&fixture->spaces);
	add(fixture, 0x1000, 0x2000, 0x7000, 1);
	add(fixture, 0x2000, 0x3000, 0, 2);
	add(fixture, 0x5000, 0x6000, 0, 0);
	space = end(fixture);
	assert_null(space_find(space, 0xfff));
	assert_ptr_equal(space_find(space, 0x1000), &space->mappings[0]);
	assert_ptr_equal(space_find(space, 0x1fff), &space->mappings[0]);
	assert_ptr_equal(space_find(space, 0x2000), &space->mappings[1]);
	assert_null(space_find(space, 0x3000));
	assert_ptr_equal(space_find(space, 0x5fff), &space->mappings[2]);
	assert_null(space_find(space, 0x6000));
	assert_null(space_find(space, UINT64_MAX));
	assert_null(space_find(NULL, 0x1000));
	assert_int_equal(space->mappings[1].binary->key.inode, 2);
	space_unref(space);
}

/* Whatever mapping the address before was in. */
static void addresses_are_found_near_others(void **state)
{
	struct fixture *fixture = *state;
	struct space *space;

	spaces_begin(&fixture->spaces);
	add(fixture, 0x1000, 0x2000, 0x7000, 1);
	add(fixture, 0x2000, 0x3000, 0, 2);
	add(fixture, 0x5000, 0x6000, 0, 0);
	space = end(fixture);
	for (uint64_t address = 0; address < 0x7000; address += 0x7ff) {
		const struct mapping *expected = space_find(space, address);

		assert_ptr_equal(space_find_near(space, NULL, address), expected);
		for (uint32_t i = 0; i < space->count; i++)
			assert_ptr_equal(space_find_near(space, &space->mappings[i], address),
					 expected);
	}
	assert_null(space_find_near(NULL, NULL, 0x1000));
	space_unref(space);
}

static void equal_lists_are_one(void **state)
{
	struct fixture *fixture = *state;
	struct space *spaces[3];
	size_t bytes;

	for (int i = 0; i < 3; i++) {
		spaces_begin(&fixture->spaces);
		add(fixture, 0x1000, 0x2000, 0, 1);
		add(fixture, 0x3000, 0x4000, 0, 1 + i / 2);
		spaces[i] = end(fixture);
	}
	assert_ptr_equal(spaces[0], spaces[1]);
	assert_ptr_not_equal(spaces[0], spaces[2]);
	assert_int_equal(fixture->spaces.count, 2);
	assert_int_equal(fixture->binaries.items[0]->references, 3); /* by list, not by user */
	bytes = fixture->spaces.bytes;
	space_unref(spaces[0]);
	spaces_sweep(&fixture->spaces, 0); /* the other user is still there */
	assert_int_equal(fixture->spaces.bytes, bytes);
	space_unref(spaces[1]);
	assert_int_equal(fixture->spaces.count, 2); /* indexes hold until the sweep */
	spaces_sweep(&fixture->spaces, 0);
	assert_int_equal(fixture->spaces.count, 1);
	assert_int_equal(spaces[2]->index, 0);
	assert_int_equal(fixture->binaries.items[0]->references, 1);
	space_unref(spaces[2]);
	spaces_sweep(&fixture->spaces, 0);
	assert_int_equal(fixture->spaces.bytes, 0);
}

static void bad_mappings_are_left_out(void **state)
{
	struct fixture *fixture = *state;
	struct space *space;

	spaces_begin(&fixture->spaces);
	assert_true(add(fixture, 0x2000, 0x3000, 0, 1));
	assert_false(add(fixture, 0x2fff, 0x4000, 0, 1));
	assert_false(add(fixture, 0x1000, 0x2000, 0, 1));
	assert_false(add(fixture, 0x5000, 0x5000, 0, 1));
	for (uint64_t i = 1; i < SPACE_MAPPINGS_MAX; i++)
		assert_true(add(fixture, 0x3000 + i, 0x3001 + i, 0, 1));
	assert_false(add(fixture, 0x800000, 0x900000, 0, 1));
	space = end(fixture);
	assert_int_equal(space->count, SPACE_MAPPINGS_MAX);
	space_unref(space);
}

static void what_a_cut_list_does_not_touch_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct space *older, *space;

	spaces_begin(&fixture->spaces);
	add(fixture, 0x1000, 0x2000, 0, 1);
	add(fixture, 0x3000, 0x5000, 0, 2);
	add(fixture, 0x7000, 0x8000, 0, 3);
	older = end(fixture);
	spaces_begin(&fixture->spaces);
	add(fixture, 0x2000, 0x3000, 0, 4);
	add(fixture, 0x4000, 0x4800, 0, 5);
	spaces_keep(&fixture->spaces, older);
	space = end(fixture);
	assert_int_equal(space->count, 4);
	assert_int_equal(space_find(space, 0x1000)->binary->key.inode, 1);
	assert_int_equal(space_find(space, 0x2000)->binary->key.inode, 4);
	assert_null(space_find(space, 0x3000)); /* was overlapped */
	assert_int_equal(space_find(space, 0x4000)->binary->key.inode, 5);
	assert_int_equal(space_find(space, 0x7000)->binary->key.inode, 3);
	space_unref(older);
	space_unref(space);
}

/* Text that was copied to large pages: the middle of the file's mapping has become anonymous. */
static void code_moved_to_large_pages_keeps_its_file(void **state)
{
	struct fixture *fixture = *state;
	const struct mapping *mapping;
	struct elf_info *elf = mem_new(struct elf_info);
	struct space *space;

	elf->segments_count = 2;
	elf->segments[0] = (struct elf_segment){ .offset = 0, .file_bytes = 0x1000 };
	elf->segments[1] = (struct elf_segment){ .offset = 0x1000,
						 .file_bytes = 0x800000,
						 .executable = true };
	spaces_begin(&fixture->spaces);
	add(fixture, 0x401000, 0x600000, 0x1000, 1);
	add(fixture, 0x600000, 0x800000, 0, 0);
	/* 0x800000-0xa00000 is in no list at all */
	add(fixture, 0xa00000, 0xc01000, 0x600000, 1);
	add(fixture, 0xd00000, 0xd01000, 0, 0);
	space = end(fixture);
	mapping = space_find(space, 0x600010);
	assert_int_equal(mapping->kind, MAPPING_ANONYMOUS); /* nothing is known of the file yet */
	space->mappings[0].binary->elf = elf;		    /* it owns it now */
	mapping = space_find(space, 0x600010);
	assert_int_equal(mapping->kind, MAPPING_FILE);
	assert_int_equal(0x600010 - mapping->start + mapping->offset, 0x200010);
	mapping = space_find(space, 0x900000);
	assert_int_equal(mapping->kind, MAPPING_FILE);
	assert_int_equal(0x900000 - mapping->start + mapping->offset, 0x500000);
	assert_null(space_find(space, 0x400ff0)); /* below the code of the file */
	assert_null(space_find(space, 0xc01000)); /* behind it */
	assert_int_equal(space_find(space, 0xd00000)->kind, MAPPING_ANONYMOUS);
	space_unref(space);
}

/* Random lists looked up as a plain array would be. */
static void random_lists_agree_with_a_model(void **state)
{
	enum { PAGES = 64, USERS = 8 };
	struct fixture *fixture = *state;
	uint64_t model[USERS][PAGES] = { { 0 } }; /* inode by page */
	struct space *spaces[USERS] = { NULL };

	srand(1);
	for (int round = 0; round < 2000; round++) {
		int user = rand() % USERS;

		space_unref(spaces[user]);
		memset(model[user], 0, sizeof(model[user]));
		spaces_begin(&fixture->spaces);
		for (uint64_t page = (uint64_t)rand() % 8; page < PAGES;) {
			uint64_t pages = 1 + (uint64_t)rand() % 8, inode = 1 + (uint64_t)rand() % 5;

			if (page + pages > PAGES)
				break;
			assert_true(add(fixture, page << 12, (page + pages) << 12, 0, inode));
			for (uint64_t i = page; i < page + pages; i++)
				model[user][i] = inode;
			page += pages + (uint64_t)rand() % 4;
		}
		spaces[user] = end(fixture);
		if (rand() % 10 == 0)
			spaces_sweep(&fixture->spaces, 0);
		for (int i = 0; i < USERS; i++) {
			uint64_t page = (uint64_t)rand() % PAGES;
			const struct mapping *mapping = space_find(spaces[i], page << 12);

			assert_int_equal(mapping ? mapping->binary->key.inode : 0, model[i][page]);
			if (spaces[i])
				assert_ptr_equal(fixture->spaces.items[spaces[i]->index],
						 spaces[i]);
		}
	}
	for (int i = 0; i < USERS; i++)
		space_unref(spaces[i]);
	spaces_sweep(&fixture->spaces, 0);
	assert_int_equal(fixture->spaces.bytes, 0);
	assert_int_equal(fixture->spaces.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(addresses_are_found),
		TEST(addresses_are_found_near_others),
		TEST(equal_lists_are_one),
		TEST(bad_mappings_are_left_out),
		TEST(what_a_cut_list_does_not_touch_is_kept),
		TEST(code_moved_to_large_pages_keeps_its_file),
		TEST(random_lists_agree_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
