/* SPDX-License-Identifier: Apache-2.0 */
/* Separate debug files, found in a folder that stands for the root of a container. */
#include "agent/export/debug_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/elf/elf.h"

struct root {
	char path[64];
	int program_fd;
	struct debug_file_place place;
	struct elf_info info;
	struct strbuf found;
};

static bool run(const struct root *root, const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && { %s; } >/dev/null 2>&1", root->path, command);
	return !system(line);
}

/* A stripped /app/program and its debug file, "debug", in no place yet. */
static int set_up(void **state)
{
	struct root *root = calloc(1, sizeof(*root));
	char path[96];

	snprintf(root->path, sizeof(root->path), "/tmp/firn-debug-file-XXXXXX");
	if (!mkdtemp(root->path) ||
	    !run(root, "mkdir -p app usr/lib/debug/.build-id && "
		       "echo 'int main(void) { return 0; }' >a.c && "
		       "cc -g -Wl,--build-id=sha1 -o app/program a.c && "
		       "objcopy --only-keep-debug app/program debug && strip app/program"))
		return -1;
	snprintf(path, sizeof(path), "%s/app/program", root->path);
	if (root_files_new(&root->place.files, NULL))
		return -1;
	root->place.root_fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root->program_fd = open(path, O_RDONLY | O_CLOEXEC);
	*state = root;
	return elf_read_info(root->program_fd, path, &root->info, NULL);
}

static int tear_down(void **state)
{
	struct root *root = *state;
	char command[96];

	close(root->place.root_fd);
	root_files_unref(root->place.files);
	close(root->program_fd);
	strbuf_free(&root->found);
	snprintf(command, sizeof(command), "rm -r %s", root->path);
	free(root);
	return system(command);
}

static const char *find(struct root *root)
{
	int fd = debug_file_find(&root->place, root->program_fd, SLICE_LITERAL("/app/program"),
				 root->info.build_id, &root->found);

	if (fd < 0)
		return "";
	close(fd);
	return strbuf_text(&root->found);
}

static void put_by_id(const struct root *root, const char *source)
{
	const char *id = root->info.build_id;
	char command[512];

	snprintf(command, sizeof(command),
		 "mkdir -p usr/lib/debug/.build-id/%.2s && cp -a %s "
		 "usr/lib/debug/.build-id/%.2s/%s.debug",
		 id, source, id, id + 2);
	assert_true(run(root, command));
}

static void by_build_id(void **state)
{
	struct root *root = *state;
	char want[160];

	assert_string_equal(find(root), "");
	put_by_id(root, "debug");
	snprintf(want, sizeof(want), "/usr/lib/debug/.build-id/%.2s/%s.debug", root->info.build_id,
		 root->info.build_id + 2);
	assert_string_equal(find(root), want);
}

/* Links of packages are absolute, and lead to somewhere below the same root. */
static void links_stay_in_the_root(void **state)
{
	struct root *root = *state;

	assert_true(run(root, "mkdir -p usr/lib/debug/app && "
			      "cp debug usr/lib/debug/app/program.debug && "
			      "ln -s /usr/lib/debug/app/program.debug link && "
			      "ln -s ../../../../../../../../..$PWD/debug out"));
	put_by_id(root, "link");
	assert_string_not_equal(find(root), "");
	put_by_id(root, "out");
	assert_string_equal(find(root), "");
}

static void other_builds_and_odd_files_are_left(void **state)
{
	struct root *root = *state;

	assert_true(run(root,
			"echo 'int main(void) { return 1; }' >b.c && "
			"cc -g -Wl,--build-id=sha1 -o other b.c && mkfifo fifo && mkdir dir"));
	put_by_id(root, "other");
	assert_string_equal(find(root), "");
	assert_true(run(root, "rm usr/lib/debug/.build-id/*/*"));
	put_by_id(root, "fifo");
	assert_string_equal(find(root), "");
	assert_true(run(root, "rm usr/lib/debug/.build-id/*/* && echo text >text"));
	put_by_id(root, "text");
	assert_string_equal(find(root), "");
}

static void reopen(struct root *root)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/app/program", root->path);
	close(root->program_fd);
	root->program_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(root->program_fd >= 0);
}

static void by_link(void **state)
{
	static const char *const places[] = { "app/debug", "app/.debug/debug",
					      "usr/lib/debug/app/debug" };
	struct root *root = *state;

	assert_true(run(root, "objcopy --add-gnu-debuglink=debug app/program"));
	reopen(root);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char command[256];

		snprintf(command, sizeof(command), "mkdir -p $(dirname %s) && cp debug %s",
			 places[i], places[i]);
		assert_true(run(root, command));
		assert_string_equal(find(root) + 1, places[i]);
		snprintf(command, sizeof(command), "rm %s", places[i]);
		assert_true(run(root, command));
		assert_string_equal(find(root), "");
	}
}

/* Without a build id the checksum decides. */
static void checksum_decides_for_files_without_build_id(void **state)
{
	struct root *root = *state;

	assert_true(run(root, "cc -g -Wl,--build-id=none -o app/program a.c && "
			      "objcopy --only-keep-debug app/program debug && "
			      "strip app/program && "
			      "objcopy --add-gnu-debuglink=debug app/program && cp debug app/"));
	reopen(root);
	assert_string_equal(find(root), "/app/debug");
	assert_true(run(root, "printf x >>app/debug"));
	assert_string_equal(find(root), "");
}

/* dwz needs two files that have something in common. */
static void alternate_by_its_build_id(void **state)
{
	struct root *root = *state;
	struct strbuf found = { 0 };
	int fd, alternate;
	char path[96];

	if (!run(root, "command -v dwz")) {
		printf("# skip: no dwz\n");
		skip();
	}
	assert_true(run(root, "echo 'struct s { int a[3]; char *b; }; int f(struct s *s) "
			      "{ return s->a[1]; }' >c.c && "
			      "for f in one two; do cc -g -gdwarf-4 -Wl,--build-id=sha1 "
			      "-Wl,-e,main -o $f.debug a.c c.c || exit 1; done && "
			      "mkdir usr/lib/debug/.dwz && "
			      "dwz -m usr/lib/debug/.dwz/common.debug "
			      "-M /usr/lib/debug/.dwz/common.debug one.debug two.debug"));
	snprintf(path, sizeof(path), "%s/one.debug", root->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	alternate =
		debug_file_find_alternate(&root->place, fd, SLICE_LITERAL("/one.debug"), &found);
	assert_true(alternate >= 0);
	assert_string_equal(strbuf_text(&found), "/usr/lib/debug/.dwz/common.debug");
	close(alternate);
	assert_true(debug_file_find_alternate(&root->place, root->program_fd,
					      SLICE_LITERAL("/app/program"), &found) < 0);
	close(fd);
	strbuf_free(&found);
}

/* A process whose root directory is `path`; 0 when that is not allowed here. */
static pid_t start_in(const char *path)
{
	int pipe_of[2];
	pid_t pid;
	char is_there = 0;

	assert_int_equal(pipe(pipe_of), 0);
	pid = fork();
	if (!pid) {
		is_there = !chroot(path);
		if (write(pipe_of[1], &is_there, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(pipe_of[0], &is_there, 1), 1);
	close(pipe_of[0]);
	close(pipe_of[1]);
	if (is_there)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_root_that_may_hang_is_left_to_others(void **state)
{
	struct root *root = *state;
	pid_t pid = start_in("/proc");
	int own = debug_file_root(getpid());

	if (!pid)
		skip();
	assert_true(own >= 0); /* on a disk, in memory, or an overlay */
	close(own);
	assert_int_equal(debug_file_root(pid), -1); /* on none of these */
	end(pid);
	own = debug_file_root(pid);
	assert_true(own >= 0);
	close(own);
	/* They find the files all the same. */
	close(root->place.root_fd);
	root->place.root_fd = -1;
	root->place.pid = (uint32_t)start_in(root->path);
	assert_true(run(root,
			"mkdir -p app/.debug && objcopy --add-gnu-debuglink=debug app/program && "
			"mv debug app/.debug/debug"));
	assert_string_equal(find(root), "/app/.debug/debug");
	end((pid_t)root->place.pid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_build_id),
		TEST(links_stay_in_the_root),
		TEST(other_builds_and_odd_files_are_left),
		TEST(by_link),
		TEST(checksum_decides_for_files_without_build_id),
		TEST(alternate_by_its_build_id),
		TEST(a_root_that_may_hang_is_left_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
