/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the channel, the reader in a thread: texts, refusals, and a reader that hangs. */
#include "server/debuginfo/local_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/debuginfo/source_tar.h"

#define PATIENCE_NS (60 * CLOCK_NS_PER_S)
#define SHORT_NS (200 * CLOCK_NS_PER_MS)

struct world {
	char folder[40], path[64];
	int ends[2];
	pthread_t thread;
	struct local_source *source;
	struct strbuf text, why;
};

static void *serve(void *argument)
{
	local_source_serve(*(int *)argument);
	return NULL;
}

static void start_reader(struct world *world)
{
	assert_int_equal(pthread_create(&world->thread, NULL, serve, &world->ends[1]), 0);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	snprintf(world->folder, sizeof(world->folder), "/tmp/firn-local-XXXXXX");
	if (!mkdtemp(world->folder) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, world->ends))
		return -1;
	snprintf(world->path, sizeof(world->path), "%s/file.c", world->folder);
	world->source = local_source_new(world->ends[0]);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	close(world->ends[0]);
	pthread_join(world->thread, NULL);
	close(world->ends[1]);
	local_source_free(world->source);
	strbuf_free(&world->text);
	strbuf_free(&world->why);
	unlink(world->path);
	rmdir(world->folder);
	free(world);
	return 0;
}

/* As many bytes, each of which says where it is. */
static void write_text(const struct world *world, size_t bytes)
{
	FILE *file = fopen(world->path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < bytes; i++)
		fputc('a' + (int)(i % 23), file);
	assert_int_equal(fclose(file), 0);
}

static bool is_written(const struct strbuf *text, size_t bytes)
{
	bool is_same = text->len == bytes;

	for (size_t i = 0; is_same && i < bytes; i++)
		is_same = text->data[i] == 'a' + (int)(i % 23);
	return is_same;
}

static bool read_path(struct world *world, const char *path, int64_t patience_ns)
{
	strbuf_clear(&world->text);
	strbuf_clear(&world->why);
	return local_source_read(world->source, slice_of(path), clock_monotonic_ns() + patience_ns,
				 &world->text, &world->why);
}

static void texts_of_any_length_come_whole(void **state)
{
	static const size_t lengths[] = { 0, 1, 32767, 32768, 32769, 1000000 };
	struct world *world = *state;

	start_reader(world);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		write_text(world, lengths[i]);
		assert_true(read_path(world, world->path, PATIENCE_NS));
		assert_true(is_written(&world->text, lengths[i]));
	}
	assert_int_equal(truncate(world->path, (off_t)SOURCE_FILE_BYTES_MAX), 0);
	assert_true(read_path(world, world->path, PATIENCE_NS));
	assert_int_equal(world->text.len, SOURCE_FILE_BYTES_MAX);
}

static void what_is_no_text_on_a_disk_is_refused(void **state)
{
	static const char *const paths[] = { "",
					     "relative.c",
					     "/",
					     "/no/such/file",
					     "/proc/self/environ",
					     "/dev/null",
					     "/proc/version",
					     "/sys/kernel/mm/transparent_hugepage/enabled" };
	struct world *world = *state;

	start_reader(world);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (read_path(world, paths[i], PATIENCE_NS))
			fail_msg("%s was read", paths[i]);
		assert_int_equal(world->text.len, 0);
	}
	assert_int_equal(mkfifo(world->path, 0600), 0); /* nobody writes: it hangs nothing */
	assert_false(read_path(world, world->path, PATIENCE_NS));
	assert_non_null(strstr(strbuf_text(&world->why), "not on this host"));
	unlink(world->path);
	write_text(world, 1);
	assert_int_equal(truncate(world->path, (off_t)SOURCE_FILE_BYTES_MAX + 1), 0);
	assert_false(read_path(world, world->path, PATIENCE_NS));
	assert_non_null(strstr(strbuf_text(&world->why), "more than"));
}

/* What comes too late is not taken for the answer to what was asked next. */
static void a_reader_that_hangs_is_not_waited_for(void **state)
{
	struct world *world = *state;
	char other[80];

	snprintf(other, sizeof(other), "%s-none", world->path);
	write_text(world, 100000);
	assert_false(read_path(world, world->path, SHORT_NS));
	assert_non_null(strstr(strbuf_text(&world->why), "does not answer"));
	start_reader(world);
	assert_false(read_path(world, other, PATIENCE_NS));
	assert_non_null(strstr(strbuf_text(&world->why), "not on this host"));
	assert_true(read_path(world, world->path, PATIENCE_NS));
	assert_true(is_written(&world->text, 100000));
}

static void a_reader_that_has_ended_is_told(void **state)
{
	struct world *world = *state;

	start_reader(world);
	write_text(world, 10);
	shutdown(world->ends[1], SHUT_RDWR);
	assert_false(read_path(world, world->path, PATIENCE_NS));
	assert_non_null(strstr(strbuf_text(&world->why), "does not answer"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(texts_of_any_length_come_whole),
		TEST(what_is_no_text_on_a_disk_is_refused),
		TEST(a_reader_that_hangs_is_not_waited_for),
		TEST(a_reader_that_has_ended_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
