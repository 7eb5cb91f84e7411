/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver: where it finds files, which it refuses, what it remembers, many threads at once. */
#include "server/resolve/resolver.h"
#include "server/resolve/worker/symbol_worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "codec/elf/elf.h"
#include "server/resolve/read/symbol_reader.h"
#include "workshop.h"

#define THREADS 8

/* A program with debug information, "program", and the address of its main. */
struct fixture {
	struct workshop workshop;
	struct resolver *resolver;
	struct elf_info info;
	struct slice build_id, path;
	char path_text[256];
	uint64_t main_address, main_offset;
	bool compiled;
};

static uint64_t address_of_main(struct fixture *fixture)
{
	char path[256];
	unsigned long long address = 0;
	FILE *file;

	assert_true(workshop_run(&fixture->workshop, "nm program | grep ' T main$' >main"));
	file = fopen(workshop_path(&fixture->workshop, "main", path), "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llx", &address), 1);
	fclose(file);
	return address;
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void use_resolver(struct fixture *fixture, struct resolver_options options)
{
	resolver_free(fixture->resolver);
	assert_int_equal(resolver_new(&options, &fixture->resolver, NULL), 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct err err;
	int fd;

	*state = fixture;
	workshop_open(&fixture->workshop);
	fixture->compiled = workshop_run(&fixture->workshop,
					 "cc=$(command -v g++ || command -v clang++-14) && "
					 "$cc -O2 -g -Wl,--build-id=sha1 -o program shapes.cc");
	if (!fixture->compiled)
		return 0;
	fixture->path = slice_of(workshop_path(&fixture->workshop, "program", fixture->path_text));
	fd = open_path(fixture->path_text);
	assert_int_equal(elf_read_info(fd, fixture->path_text, &fixture->info, &err), 0);
	close(fd);
	fixture->build_id = slice_of(fixture->info.build_id);
	fixture->main_address = address_of_main(fixture);
	assert_true(elf_address_to_offset(&fixture->info, fixture->main_address,
					  &fixture->main_offset));
	use_resolver(fixture, (struct resolver_options){ .local_files = true });
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	resolver_free(fixture->resolver);
	workshop_close(&fixture->workshop);
	free(fixture);
	return 0;
}

static struct fixture *fixture_of(void **state)
{
	struct fixture *fixture = *state;

	if (!fixture->compiled) {
		printf("# skip: no C++ compiler\n");
		skip();
	}
	return fixture;
}

/* One look-up that waits until the given time; the function that an address is in, "" when unknown.
 */
static enum resolve_reason look_up_until(struct fixture *fixture, struct slice build_id,
					 struct slice path, uint64_t address, bool is_offset,
					 int64_t wait_until_ns, char ret_function[64])
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct resolver_symbols symbols;
	enum resolve_reason reason;
	struct slice name = { 0 };
	size_t count;

	resolver_open(fixture->resolver, build_id, path, is_offset, wait_until_ns, &symbols);
	reason = resolver_find(&symbols, address, is_offset, lines, &count);
	assert_int_equal(reason == RESOLVE_OK, count > 0 && !lines[count - 1].is_unnamed);
	assert_true(!count || reason == RESOLVE_OK || reason == RESOLVE_NO_SYMBOLS);
	if (reason == RESOLVE_OK)
		name = lines[count - 1].name.len ? lines[count - 1].name
						 : lines[count - 1].linkage_name;
	snprintf(ret_function, 64, "%.*s", (int)name.len, name.len ? name.data : "");
	resolver_close(fixture->resolver, &symbols);
	return reason;
}

static enum resolve_reason look_up(struct fixture *fixture, struct slice build_id,
				   struct slice path, uint64_t address, bool is_offset,
				   char ret_function[64])
{
	return look_up_until(fixture, build_id, path, address, is_offset, RESOLVE_WAIT_ALWAYS,
			     ret_function);
}

static enum resolve_reason look_up_main(struct fixture *fixture, struct slice path)
{
	char function[64];
	enum resolve_reason reason =
		look_up(fixture, fixture->build_id, path, fixture->main_address, false, function);

	assert_string_equal(function, reason == RESOLVE_OK ? "main" : "");
	return reason;
}

static void local_file_is_used_by_address_and_by_offset(void **state)
{
	struct fixture *fixture = fixture_of(state);
	char function[64];

	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	assert_int_equal(look_up(fixture, fixture->build_id, fixture->path, fixture->main_offset,
				 true, function),
			 RESOLVE_OK);
	assert_string_equal(function, "main");
	assert_int_equal(
		look_up(fixture, fixture->build_id, fixture->path, 1ull << 40, false, function),
		RESOLVE_OUTSIDE);
}

static void inline_chain_is_innermost_first(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct resolver_symbols symbols;
	bool found = false;
	size_t count;

	resolver_open(fixture->resolver, fixture->build_id, fixture->path, false,
		      RESOLVE_WAIT_ALWAYS, &symbols);
	assert_int_equal(symbols.reason, RESOLVE_OK);
	for (uint64_t at = fixture->info.segments[0].address; !found && at < 0x10000; at++) {
		if (resolver_find(&symbols, at, false, lines, &count) != RESOLVE_OK || count != 3)
			continue;
		found = memmem(lines[0].name.data, lines[0].name.len, "twice", 5) &&
			memmem(lines[1].name.data, lines[1].name.len, "both", 4) &&
			slice_is(lines[2].linkage_name, "_ZN6shapes3box6volumeEi") &&
			lines[2].line == 22 && lines[2].start_line == 19;
	}
	assert_true(found);
	resolver_close(fixture->resolver, &symbols);
}

static void only_files_with_the_wanted_build_id_are_used(void **state)
{
	static const char other[] = "00112233445566778899aabbccddeeff00112233";
	struct fixture *fixture = fixture_of(state);
	char function[64];

	assert_int_equal(look_up(fixture, slice_of(other), fixture->path, fixture->main_address,
				 false, function),
			 RESOLVE_NO_FILE);
	resolver_offer(fixture->resolver, slice_of(other), fixture->path,
		       open_path(fixture->path_text));
	assert_int_equal(look_up(fixture, slice_of(other), fixture->path, fixture->main_address,
				 false, function),
			 RESOLVE_NO_FILE);
}

static void bad_build_ids_never_become_paths(void **state)
{
	static const char *const ids[] = { "",	   "ab",  "../../etc/passwd", "abc", "ABCD",
					   "zz00", "ab/c" };
	struct fixture *fixture = fixture_of(state);
	char function[64];

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_int_equal(
			look_up(fixture, slice_of(ids[i]), fixture->path, 1, false, function),
			RESOLVE_NO_BUILD_ID);
}

static void paths_that_are_no_regular_files_do_not_block(void **state)
{
	struct fixture *fixture = fixture_of(state);
	char path[256];

	assert_true(workshop_run(&fixture->workshop, "mkfifo fifo"));
	assert_int_equal(
		look_up_main(fixture, slice_of(workshop_path(&fixture->workshop, "fifo", path))),
		RESOLVE_NO_FILE);
	assert_int_equal(look_up_main(fixture, slice_of("/dev/zero")), RESOLVE_NO_FILE);
	assert_int_equal(look_up_main(fixture, slice_of("relative")), RESOLVE_NO_FILE);
	assert_int_equal(look_up_main(fixture, slice_from("/proc/self/exe\0x", 16)),
			 RESOLVE_NO_FILE);
}

static void offer_resolves_and_grows_the_version(void **state)
{
	struct fixture *fixture = fixture_of(state);
	uint64_t version;
	int fd;

	use_resolver(fixture, (struct resolver_options){ .local_files = false });
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_NO_FILE);
	version = resolver_version(fixture->resolver);
	fd = open_path(fixture->path_text);
	resolver_offer(fixture->resolver, fixture->build_id, fixture->path, fd);
	close(fd);
	assert_true(unlink(fixture->path_text) == 0);
	assert_true(resolver_version(fixture->resolver) > version);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	version = resolver_version(fixture->resolver);
	resolver_offer(fixture->resolver, fixture->build_id, fixture->path, STDIN_FILENO);
	assert_true(resolver_version(fixture->resolver) == version);
}

static enum resolve_reason ask_until(struct fixture *fixture, int64_t wait_until_ns)
{
	char function[64];

	return look_up_until(fixture, fixture->build_id, fixture->path, fixture->main_address,
			     false, wait_until_ns, function);
}

/*
 * A builder that gets its turn at once may be done before the look-up gives up, so a new resolver
 * asks again until the look-up was first.
 */
static void impatient_look_up_gets_its_names_later(void **state)
{
	struct fixture *fixture = fixture_of(state);
	int64_t patience_ns = clock_monotonic_ns() + 30 * CLOCK_NS_PER_S;
	enum resolve_reason reason = RESOLVE_OK;
	uint64_t version = 0;

	for (int i = 0; i < 200 && reason == RESOLVE_OK; i++) {
		use_resolver(fixture, (struct resolver_options){ .local_files = true });
		version = resolver_version(fixture->resolver);
		reason = ask_until(fixture, 1);
	}
	assert_int_equal(reason, RESOLVE_PENDING);
	assert_int_equal(ask_until(fixture, patience_ns), RESOLVE_OK);
	assert_int_equal(ask_until(fixture, 1), RESOLVE_OK);
	assert_true(resolver_version(fixture->resolver) > version);
}

static void debug_files_are_found_by_id_and_by_link(void **state)
{
	struct fixture *fixture = fixture_of(state);
	const char *id = fixture->info.build_id;

	assert_true(workshop_run(&fixture->workshop,
				 "objcopy --only-keep-debug program p.debug && strip program && "
				 "mkdir -p store/%.2s && cp p.debug store/%.2s/%s.debug",
				 id, id, id + 2));
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_NO_SYMBOLS);
	use_resolver(fixture, (struct resolver_options){ .local_files = true });
	assert_true(
		workshop_run(&fixture->workshop, "objcopy --add-gnu-debuglink=p.debug program"));
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	use_resolver(fixture, (struct resolver_options){
				      .debuginfo_path = strcat(
					      strcpy((char[128]){ 0 }, fixture->workshop.directory),
					      "/store") });
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
}

/* Its code, that is: names are in the pictures anyway. */
static void a_program_may_have_to_be_for_everyone(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct resolver_options options = { .local_files = true, .public_files_only = true };
	struct err err;
	int fd;

	use_resolver(fixture, options);
	assert_true(workshop_run(&fixture->workshop, "chmod 755 program"));
	fd = resolver_open_binary(fixture->resolver, fixture->build_id, fixture->path, &err);
	assert_true(fd >= 0);
	close(fd);
	assert_true(workshop_run(&fixture->workshop, "chmod 750 program"));
	assert_int_equal(
		resolver_open_binary(fixture->resolver, fixture->build_id, fixture->path, &err),
		-ERR_DENIED);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
}

struct missing {
	const struct fixture *fixture;
	enum resolve_reason reason;
	size_t count;
};

static void note_missing(void *context, const struct resolver_missing *seen)
{
	struct missing *missing = context;

	missing->count += slice_equal(seen->build_id, missing->fixture->build_id) &&
			  seen->reason == missing->reason && !seen->path.len;
}

static size_t count_missing(const struct fixture *fixture, enum resolve_reason reason)
{
	struct missing missing = { fixture, reason, 0 };

	resolver_each_missing(fixture->resolver, note_missing, &missing);
	return missing.count;
}

/* A debug file alone serves offsets too, and a stripped program beside it hides nothing. */
static void uploads_are_used_when_they_come(void **state)
{
	struct fixture *fixture = fixture_of(state);
	const char *id = fixture->info.build_id;
	char path[256], function[64];
	uint64_t version;

	use_resolver(fixture, (struct resolver_options){ .uploads_path = workshop_path(
								 &fixture->workshop, "up", path) });
	assert_int_equal(look_up(fixture, fixture->build_id, slice_of(""), fixture->main_offset,
				 true, function),
			 RESOLVE_NO_FILE);
	assert_int_equal(count_missing(fixture, RESOLVE_NO_FILE), 1);
	assert_true(resolver_take_used(fixture->resolver, fixture->build_id));
	assert_false(resolver_take_used(fixture->resolver, fixture->build_id));
	assert_true(workshop_run(&fixture->workshop,
				 "mkdir -p up/%.2s && objcopy --only-keep-debug program "
				 "up/%.2s/%s.debug && strip -o stripped program",
				 id, id, id + 2));
	version = resolver_version(fixture->resolver);
	resolver_file_added(fixture->resolver, fixture->build_id);
	assert_true(resolver_version(fixture->resolver) > version);
	assert_int_equal(look_up(fixture, fixture->build_id, slice_of(""), fixture->main_offset,
				 true, function),
			 RESOLVE_OK);
	assert_string_equal(function, "main");
	assert_int_equal(count_missing(fixture, RESOLVE_NO_FILE), 0);
	assert_true(workshop_run(&fixture->workshop, "mv stripped up/%.2s/%s.bin", id, id + 2));
	version = resolver_version(fixture->resolver);
	resolver_file_added(fixture->resolver, fixture->build_id);
	assert_int_equal(look_up(fixture, fixture->build_id, slice_of(""), fixture->main_offset,
				 true, function),
			 RESOLVE_OK);
	assert_string_equal(function, "main");
	assert_true(resolver_version(fixture->resolver) > version + 1);
}

/* The agent may know the stripped program first, and the one with debug information later. */
static void a_better_file_is_used_whenever_it_comes(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct resolver_symbols symbols;
	char path[256];
	uint64_t version;
	size_t count;
	int stripped, whole = open_path(fixture->path_text);

	assert_true(workshop_run(&fixture->workshop, "strip -g -o stripped program"));
	stripped = open_path(workshop_path(&fixture->workshop, "stripped", path));
	use_resolver(fixture, (struct resolver_options){ .local_files = false });
	resolver_offer(fixture->resolver, fixture->build_id, slice_of(path), stripped);
	for (int round = 0; round < 3; round++) {
		if (round) {
			version = resolver_version(fixture->resolver);
			resolver_offer(fixture->resolver, fixture->build_id, fixture->path,
				       round == 1 ? whole : stripped);
			assert_int_equal(resolver_version(fixture->resolver) > version, round == 1);
		}
		resolver_open(fixture->resolver, fixture->build_id, fixture->path, false,
			      RESOLVE_WAIT_ALWAYS, &symbols);
		assert_int_equal(
			resolver_find(&symbols, fixture->main_address, false, lines, &count),
			RESOLVE_OK);
		assert_int_equal(lines[0].line > 0, round > 0);
		resolver_close(fixture->resolver, &symbols);
	}
	close(stripped);
	close(whole);
}

/* Tables outlive the resolver and, when they are good enough, the files. */
static void tables_are_kept(void **state)
{
	struct fixture *fixture = fixture_of(state);
	char path[256];
	struct resolver_options options = {
		.local_files = true,
		.tables_path = workshop_path(&fixture->workshop, "tables", path),
	};

	use_resolver(fixture, options);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	assert_true(workshop_run(&fixture->workshop, "mv program away"));
	use_resolver(fixture, options);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	assert_true(workshop_run(&fixture->workshop,
				 "for t in tables/*/*; do printf xxxx | dd of=$t bs=1 seek=400 "
				 "conv=notrunc 2>/dev/null; done"));
	use_resolver(fixture, options);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_NO_FILE);
	assert_true(workshop_run(&fixture->workshop, "mv away program && ! ls tables/*/*"));
	use_resolver(fixture, options);
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
	assert_true(workshop_run(&fixture->workshop, "ls tables/*/*.symbols >list"));
}

static void debug_file_of_another_build_is_refused(void **state)
{
	struct fixture *fixture = fixture_of(state);

	assert_true(
		workshop_run(&fixture->workshop,
			     "objcopy --only-keep-debug program p.debug && strip program && "
			     "objcopy --add-gnu-debuglink=p.debug program && "
			     "printf 'int main() { return 7; }' >other.cc && "
			     "$(command -v g++ || command -v clang++-14) -g -o p.debug other.cc"));
	assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_NO_SYMBOLS);
}

/* A worker that does what it must not costs a file its debug information, and that is told. */
static void frames_say_why_debug_information_is_left_out(void **state)
{
	struct fixture *fixture = fixture_of(state);
	struct resolver_symbols symbols;
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count;

	assert_true(workshop_run(&fixture->workshop, "objcopy -w -N '*' program"));
	workshop_tell("forbidden");
	resolver_open(fixture->resolver, fixture->build_id, fixture->path, false,
		      RESOLVE_WAIT_ALWAYS, &symbols);
	workshop_tell(NULL);
	assert_int_equal(resolver_find(&symbols, fixture->main_address, false, lines, &count),
			 RESOLVE_NO_SYMBOLS);
	assert_non_null(strstr(symbols.detail, "made a system call that it is not allowed"));
	resolver_close(fixture->resolver, &symbols);
}

static void tables_over_the_budget_are_built_again(void **state)
{
	struct fixture *fixture = fixture_of(state);
	char path[256], function[64];
	struct elf_info other;
	struct err err;
	int fd;

	assert_true(workshop_run(&fixture->workshop,
				 "printf 'int main() { return 7; }' >other.cc && "
				 "$(command -v g++ || command -v clang++-14) -g "
				 "-Wl,--build-id=sha1 -o other other.cc"));
	fd = open_path(workshop_path(&fixture->workshop, "other", path));
	assert_int_equal(elf_read_info(fd, path, &other, &err), 0);
	close(fd);
	use_resolver(fixture, (struct resolver_options){ .local_files = true, .cache_bytes = 1 });
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look_up_main(fixture, fixture->path), RESOLVE_OK);
		look_up(fixture, slice_of(other.build_id), slice_of(path), 1, false, function);
	}
}

static void *look_up_often(void *context)
{
	struct fixture *fixture = context;
	size_t good = 0;

	for (int i = 0; i < 200; i++)
		good += ask_until(fixture, RESOLVE_WAIT_ALWAYS) == RESOLVE_OK;
	return (void *)(uintptr_t)good;
}

static void threads_share_one_build(void **state)
{
	struct fixture *fixture = fixture_of(state);
	pthread_t threads[THREADS];
	int fd = open_path(fixture->path_text);

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_up_often, fixture), 0);
	for (int i = 0; i < 100; i++)
		resolver_offer(fixture->resolver, fixture->build_id, fixture->path, fd);
	for (int i = 0; i < THREADS; i++) {
		void *good;

		pthread_join(threads[i], &good);
		assert_int_equal((uintptr_t)good, 200);
	}
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* As a worker: dies as one does that asks the kernel for too much, unless it reads symbols alone.
 */
static void misbehave(int argc, char **argv)
{
	if (argc > WORKSHOP_ARG_NOTE && !strcmp(argv[1], "symbol-worker") &&
	    !*argv[WORKSHOP_ARG_NOTE] && *workshop_told()) {
		signal(SIGSYS, SIG_DFL);
		raise(SIGSYS);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(local_file_is_used_by_address_and_by_offset),
		TEST(inline_chain_is_innermost_first),
		TEST(only_files_with_the_wanted_build_id_are_used),
		TEST(bad_build_ids_never_become_paths),
		TEST(paths_that_are_no_regular_files_do_not_block),
		TEST(offer_resolves_and_grows_the_version),
		TEST(impatient_look_up_gets_its_names_later),
		TEST(debug_files_are_found_by_id_and_by_link),
		TEST(a_program_may_have_to_be_for_everyone),
		TEST(uploads_are_used_when_they_come),
		TEST(a_better_file_is_used_whenever_it_comes),
		TEST(tables_are_kept),
		TEST(debug_file_of_another_build_is_refused),
		TEST(frames_say_why_debug_information_is_left_out),
		TEST(tables_over_the_budget_are_built_again),
		TEST(threads_share_one_build),
	};
	int worker;

	misbehave(argc, argv);
	worker = symbol_worker_main(argc, argv); /* it builds tables in a process of its own */

	if (worker >= 0)
		return worker;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
