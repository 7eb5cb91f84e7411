/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of unwind tables: what it keeps, what it gives up, and whom it does not trust. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/unwind/table_cache.h"

#define KIB 1024u
#define NOBODY 65534
#define HOUR_S 3600

static char folder[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/firn-table-cache-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct table_cache *open_cache(uint64_t max_bytes)
{
	struct table_cache *cache;
	struct err err;

	if (table_cache_open(folder, max_bytes, &cache, &err))
		fail_msg("%s", err.message);
	return cache;
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static bool exists(const char *name)
{
	struct stat stat;

	return !lstat(path_of(name), &stat);
}

static void publish(struct table_cache *cache, const char *name, size_t bytes)
{
	struct table_cache_draft draft;
	struct err err;

	assert_int_equal(table_cache_create(cache, &draft, &err), 0);
	assert_int_equal(ftruncate(draft.fd, (off_t)bytes), 0);
	assert_int_equal(table_cache_publish(cache, &draft, name, &err), 0);
	close(draft.fd);
}

static void set_age(const char *name, time_t age_s)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - age_s } };

	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static size_t count_drafts(void)
{
	DIR *listing = opendir(folder);
	struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(listing)))
		count += !strncmp(entry->d_name, ".draft-", 7);
	closedir(listing);
	return count;
}

static void cache_makes_missing_folders_for_itself_alone(void **state)
{
	char path[128];
	struct table_cache *cache;
	struct stat stat_ret;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b/c", folder);
	assert_int_equal(table_cache_open(path, 0, &cache, NULL), 0);
	assert_int_equal(stat(path, &stat_ret), 0);
	assert_int_equal(stat_ret.st_mode & 07777, 0700);
	table_cache_close(cache);
}

static void cache_finds_what_was_published(void **state)
{
	struct table_cache *cache = open_cache(0);
	struct table_cache_draft draft;
	char text[8] = "";
	int fd;

	(void)state;
	assert_int_equal(table_cache_find(cache, "aa.table", &fd, NULL), -ERR_NOT_FOUND);
	assert_int_equal(table_cache_create(cache, &draft, NULL), 0);
	assert_int_equal(write(draft.fd, "first", 5), 5);
	assert_int_equal(table_cache_find(cache, "aa.table", &fd, NULL), -ERR_NOT_FOUND);
	assert_int_equal(table_cache_publish(cache, &draft, "aa.table", NULL), 0);
	close(draft.fd);
	assert_int_equal(table_cache_find(cache, "aa.table", &fd, NULL), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "first");
	close(fd);
	assert_int_equal(table_cache_bytes(cache), 5);
	table_cache_close(cache);
}

static void two_agents_may_publish_the_same_table(void **state)
{
	struct table_cache *one = open_cache(0), *two = open_cache(0);
	struct table_cache_draft a, b;
	char byte;
	int fd;

	(void)state;
	assert_int_equal(table_cache_create(one, &a, NULL), 0);
	assert_int_equal(table_cache_create(two, &b, NULL), 0);
	assert_int_equal(write(a.fd, "a", 1), 1);
	assert_int_equal(write(b.fd, "b", 1), 1);
	assert_int_equal(table_cache_publish(one, &a, "x.table", NULL), 0);
	assert_int_equal(table_cache_publish(two, &b, "x.table", NULL), 0);
	assert_int_equal(table_cache_find(one, "x.table", &fd, NULL), 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'b');
	assert_int_equal(count_drafts(), 0);
	close(fd);
	close(a.fd);
	close(b.fd);
	table_cache_close(one);
	table_cache_close(two);
}

static void over_its_bound_the_least_recently_used_go(void **state)
{
	struct table_cache *cache = open_cache(64 * KIB);
	char name[32];
	int fd;

	(void)state;
	assert_int_equal(close(open(path_of("notes.txt"), O_CREAT | O_WRONLY, 0600)), 0);
	set_age("notes.txt", 1000 * HOUR_S);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d.table", i);
		publish(cache, name, 8 * KIB);
		set_age(name, (100 - i) * HOUR_S);
	}
	assert_int_equal(table_cache_find(cache, "0.table", &fd, NULL), 0); /* now the youngest */
	close(fd);
	publish(cache, "new.table", 8 * KIB);
	assert_true(table_cache_bytes(cache) <= 64 * KIB);
	assert_true(exists("new.table"));
	assert_true(exists("0.table"));
	assert_false(exists("1.table"));
	assert_true(exists("7.table"));
	assert_true(exists("notes.txt"));
	table_cache_close(cache);
}

static void the_bound_holds_for_what_was_there_before(void **state)
{
	struct table_cache *cache = open_cache(0);

	(void)state;
	publish(cache, "old.table", 40 * KIB);
	set_age("old.table", HOUR_S);
	publish(cache, "young.table", 40 * KIB);
	table_cache_close(cache);
	cache = open_cache(64 * KIB);
	assert_int_equal(table_cache_bytes(cache), 40 * KIB);
	assert_false(exists("old.table"));
	assert_true(exists("young.table"));
	table_cache_close(cache);
}

static void drafts_of_the_dead_are_removed(void **state)
{
	struct table_cache *cache = open_cache(0);
	struct table_cache_draft abandoned, fresh;
	char name[64];

	(void)state;
	assert_int_equal(table_cache_create(cache, &abandoned, NULL), 0);
	assert_int_equal(table_cache_create(cache, &fresh, NULL), 0);
	strcpy(name, abandoned.name);
	set_age(name, HOUR_S);
	table_cache_close(cache);
	cache = open_cache(0);
	assert_false(exists(name));
	assert_true(exists(fresh.name));
	table_cache_discard(cache, &fresh);
	assert_int_equal(count_drafts(), 0);
	close(abandoned.fd);
	close(fresh.fd);
	table_cache_close(cache);
}

static void folders_that_others_can_write_are_refused(void **state)
{
	struct table_cache *cache;
	char link[80];

	(void)state;
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(table_cache_open(folder, 0, &cache, NULL), -ERR_DENIED);
	assert_int_equal(chmod(folder, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(folder, link), 0);
	assert_true(table_cache_open(link, 0, &cache, NULL) < 0);
}

static void only_regular_files_of_our_own_are_opened(void **state)
{
	struct table_cache *cache = open_cache(0);
	int fd;

	(void)state;
	publish(cache, "real.table", 1);
	assert_int_equal(symlink("real.table", path_of("link.table")), 0);
	assert_int_equal(mkfifo(path_of("pipe.table"), 0600), 0);
	assert_true(table_cache_find(cache, "link.table", &fd, NULL) < 0);
	assert_int_equal(table_cache_find(cache, "pipe.table", &fd, NULL), -ERR_DENIED);
	if (!geteuid()) {
		assert_int_equal(chown(path_of("real.table"), NOBODY, NOBODY), 0);
		assert_int_equal(table_cache_find(cache, "real.table", &fd, NULL), -ERR_DENIED);
	}
	/* A link in the way is replaced, and what it names stays. */
	publish(cache, "link.table", 2);
	assert_int_equal(table_cache_find(cache, "link.table", &fd, NULL), 0);
	close(fd);
	table_cache_close(cache);
}

static void read_only_folders_can_still_be_read(void **state)
{
	bool is_root = !geteuid();
	struct table_cache_draft draft;
	struct table_cache *cache;
	int fd;

	(void)state;
	if (is_root) {
		assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
		assert_int_equal(seteuid(NOBODY), 0);
	}
	cache = open_cache(0);
	publish(cache, "a.table", 1);
	assert_int_equal(chmod(folder, 0500), 0);
	assert_int_equal(table_cache_create(cache, &draft, NULL), -ERR_DENIED);
	assert_int_equal(table_cache_find(cache, "a.table", &fd, NULL), 0);
	close(fd);
	table_cache_remove(cache, "a.table");
	assert_true(exists("a.table"));
	assert_int_equal(table_cache_bytes(cache), 1);
	assert_int_equal(chmod(folder, 0700), 0);
	table_cache_remove(cache, "a.table");
	assert_false(exists("a.table"));
	assert_int_equal(table_cache_bytes(cache), 0);
	table_cache_close(cache);
	if (is_root)
		assert_int_equal(seteuid(0), 0);
}

static void names_tell_files_of_one_build_id_apart(void **state)
{
	struct elf_info info = { .build_id = "00ff12", .file_bytes = 100, .segments_count = 1 };
	char name[TABLE_CACHE_NAME_BYTES], other[TABLE_CACHE_NAME_BYTES];

	(void)state;
	assert_true(table_cache_name(&info, 0, name));
	assert_int_equal(strncmp(name, "00ff12-", 7), 0);
	assert_true(table_cache_name(&info, 0, other));
	assert_string_equal(name, other);
	assert_true(table_cache_name(&info, 1000, other));
	assert_string_not_equal(name, other);
	info.segments[0].offset = 4096;
	assert_true(table_cache_name(&info, 0, other));
	assert_string_not_equal(name, other);
}

static void only_hex_digits_become_names(void **state)
{
	static const char *const bad[] = { "", "../../etc/passwd", "AB", "12/34", "." };
	char name[TABLE_CACHE_NAME_BYTES];
	struct elf_info info = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(info.build_id, bad[i]);
		assert_false(table_cache_name(&info, 0, name));
	}
	memset(info.build_id, 'f', sizeof(info.build_id) - 1);
	assert_true(table_cache_name(&info, 0, name));
	assert_true(strlen(name) < TABLE_CACHE_NAME_BYTES - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(cache_makes_missing_folders_for_itself_alone),
		TEST(cache_finds_what_was_published),
		TEST(two_agents_may_publish_the_same_table),
		TEST(over_its_bound_the_least_recently_used_go),
		TEST(the_bound_holds_for_what_was_there_before),
		TEST(drafts_of_the_dead_are_removed),
		TEST(folders_that_others_can_write_are_refused),
		TEST(only_regular_files_of_our_own_are_opened),
		TEST(read_only_folders_can_still_be_read),
		TEST(names_tell_files_of_one_build_id_apart),
		TEST(only_hex_digits_become_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
