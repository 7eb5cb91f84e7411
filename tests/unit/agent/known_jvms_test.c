/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of HotSpot that one agent has read are known to the next one. */
#include "agent/collect/known_jvms.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/firn-known-jvms-XXXXXX";
static struct known_jvms known;

static struct known_jvm library(uint64_t inode)
{
	return (struct known_jvm){ .key = { .inode = inode, .device = 1, .changed_ns = 7 },
				   .file = { .code_bytes = 100 + inode } };
}

static void add(uint64_t inode)
{
	struct known_jvm item = library(inode);

	known_jvms_add(&known, &item.key, &item.file);
}

static void path_of_list(char *ret, size_t len)
{
	snprintf(ret, len, "%s/hotspot-libraries", folder);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[64];

	(void)state;
	path_of_list(path, sizeof(path));
	unlink(path);
	return rmdir(folder);
}

static void the_next_agent_knows_them(void **state)
{
	struct known_jvm second = library(2);

	(void)state;
	known_jvms_open(&known, folder);
	assert_int_equal(known.count, 0);
	add(1);
	add(2);
	add(1);
	assert_int_equal(known.count, 2);
	known_jvms_close(&known);
	known_jvms_open(&known, folder);
	assert_int_equal(known.count, 2);
	assert_memory_equal(&known.items[1], &second, sizeof(second));
	known_jvms_close(&known);
}

static void a_damaged_list_is_as_good_as_none(void **state)
{
	char path[64], byte;
	int fd;

	(void)state;
	path_of_list(path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 60), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 60), 1);
	close(fd);
	known_jvms_open(&known, folder);
	assert_int_equal(known.count, 0);
	add(3);
	known_jvms_close(&known);
	known_jvms_open(&known, folder);
	assert_int_equal(known.count, 1);
	assert_false(known_jvms_parse(&known, "short", 5));
	known_jvms_close(&known);
}

static void the_oldest_go(void **state)
{
	(void)state;
	known_jvms_open(&known, NULL);
	for (uint64_t i = 0; i < KNOWN_JVMS_MAX + 3; i++)
		add(i);
	assert_int_equal(known.count, KNOWN_JVMS_MAX);
	assert_int_equal(known.items[0].key.inode, 3);
	known_jvms_close(&known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_agent_knows_them),
		cmocka_unit_test(a_damaged_list_is_as_good_as_none),
		cmocka_unit_test(the_oldest_go),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
