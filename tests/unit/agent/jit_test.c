/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf maps and jitdumps of a process, as they are written: the test is that process. What it
 * names are addresses of its own choice, as nothing is sampled here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files/near_file.h"
#include "agent/jit/code_reader.h"
#include "agent/jit/jit.h"
#include "agent/jit/jit_metrics.h"
#include "agent/procs/proc_stat.h"
#include "base/clock.h"
#include "base/mem.h"
#include "unit/agent/forged_wasm.h"

#define LONG_NS (10 * CLOCK_NS_PER_S)
#define SETTLE_NS (120 * CLOCK_NS_PER_S) /* far more than it takes */

static char map_path[64];

static struct process_identity identity_of(pid_t pid)
{
	struct process_identity identity = { .pid = (uint32_t)pid };
	char path[64], text[1024];
	struct proc_stat stat;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, sizeof(text));
	close(fd);
	assert_true(len > 0 && proc_stat_parse(slice_from(text, (size_t)len), &stat));
	identity.start_ns = stat.start_ticks * PROC_STAT_NS_PER_TICK + 1;
	return identity;
}

static void write_map(const char *mode, const char *text)
{
	FILE *file = fopen(map_path, mode);

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int remove_map(void **state)
{
	(void)state;
	unlink(map_path);
	return 0;
}

static struct jit *new_jit_for(const struct jit_program *program)
{
	struct root_files *files = NULL;
	struct jit *jit;

	assert_int_equal(root_files_new(&files, NULL), 0);
	jit = jit_new(0, files, program);
	root_files_unref(files);
	return jit;
}

static struct jit *new_jit(void)
{
	return new_jit_for(NULL);
}

/* Name and line of an address when a window ends; "" = it has none. */
static const char *name_of(struct jit *jit, uint64_t address)
{
	static char text[256];
	struct process_identity identity = identity_of(getpid());
	struct code_name name;
	struct slice raw;

	jit_note(jit, &identity, &(struct jit_address){ .address = address }, clock_monotonic_ns());
	jit_settle(jit, SETTLE_NS);
	if (!jit_find(jit, &identity, address, &name, &raw))
		return "";
	snprintf(text, sizeof(text), "%.*s %.*s:%u", SLICE_FMT(name.function), SLICE_FMT(name.file),
		 name.line);
	return text;
}

static void a_perf_map_is_followed_as_it_grows(void **state)
{
	struct jit *jit = new_jit();

	(void)state;
	write_map("w", "1000 10 first\n2000 10 JS:*f /a.js:1:2\n30");
	assert_string_equal(name_of(jit, 0x1000), "first :0");
	assert_string_equal(name_of(jit, 0x2008), "f /a.js:1");
	assert_string_equal(name_of(jit, 0x3000), ""); /* half a line */
	write_map("a", "00 10 third\n0x1000 0x8 newer\n");
	assert_string_equal(name_of(jit, 0x3000), "third :0");
	assert_string_equal(name_of(jit, 0x1000), "newer :0");
	assert_string_equal(name_of(jit, 0x1008), "first :0");
	jit_free(jit);
}

static void a_perf_map_written_anew_is_read_anew(void **state)
{
	struct jit *jit = new_jit();

	(void)state;
	write_map("w", "1000 10 first\n2000 10 second\n");
	assert_string_equal(name_of(jit, 0x1000), "first :0");
	write_map("w", "1000 10 other\n"); /* shorter */
	assert_string_equal(name_of(jit, 0x5000), "");
	assert_string_equal(name_of(jit, 0x1000), "other :0");
	write_map("w", "1000 10 longer\n4000 10 fourth\n"); /* in place, past where we were */
	assert_string_equal(name_of(jit, 0x4000), "fourth :0");
	assert_string_equal(name_of(jit, 0x1000), "longer :0");
	unlink(map_path);
	write_map("w", "1000 10 another\n6000 10 sixth\n"); /* another file */
	assert_string_equal(name_of(jit, 0x6000), "sixth :0");
	assert_string_equal(name_of(jit, 0x1000), "another :0");
	jit_free(jit);
}

static void a_file_is_read_to_its_end_when_its_name_is_gone(void **state)
{
	struct jit *jit = new_jit();
	FILE *file;

	(void)state;
	write_map("w", "1000 10 first\n");
	assert_string_equal(name_of(jit, 0x1000), "first :0");
	file = fopen(map_path, "a");
	assert_non_null(file);
	unlink(map_path);
	fputs("2000 10 last\n", file);
	fclose(file);
	assert_string_equal(name_of(jit, 0x2000), "last :0");
	jit_free(jit);
}

static void what_is_no_regular_file_is_left_alone(void **state)
{
	struct jit *jit = new_jit();

	(void)state;
	assert_int_equal(mkfifo(map_path, 0600), 0);
	assert_string_equal(name_of(jit, 0x1000), "");
	unlink(map_path);
	assert_int_equal(symlink("/etc/passwd", map_path), 0);
	assert_string_equal(name_of(jit, 0x1000), "");
	jit_free(jit);
}

static void a_map_of_an_earlier_process_is_not_believed(void **state)
{
	struct jit *jit = new_jit();
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	(void)state;
	write_map("w", "1000 10 stale\n");
	assert_int_equal(utimensat(AT_FDCWD, map_path, times, 0), 0);
	assert_string_equal(name_of(jit, 0x1000), "");
	jit_free(jit);
}

static void a_map_of_another_user_is_not_believed(void **state)
{
	struct jit *jit;

	(void)state;
	if (geteuid()) {
		printf("# skip: giving a file to another user needs root\n");
		skip();
	}
	jit = new_jit();
	write_map("w", "1000 10 planted\n");
	assert_int_equal(chown(map_path, 12345, 12345), 0);
	assert_string_equal(name_of(jit, 0x1000), "");
	jit_free(jit);
}

static void another_process_of_that_number_is_not_read(void **state)
{
	struct jit *jit = new_jit();
	struct process_identity identity = identity_of(getpid());
	struct code_name name;
	struct slice raw;

	(void)state;
	write_map("w", "1000 10 first\n");
	identity.start_ns += CLOCK_NS_PER_S;
	jit_note(jit, &identity, &(struct jit_address){ .address = 0x1000 }, clock_monotonic_ns());
	jit_settle(jit, SETTLE_NS);
	assert_false(jit_find(jit, &identity, 0x1000, &name, &raw));
	jit_free(jit);
}

static void readings_are_spaced_out(void **state)
{
	struct jit *jit = new_jit();
	struct process_identity identity = identity_of(getpid());
	int64_t now_ns = clock_monotonic_ns();
	struct code_name name;
	struct slice raw;

	(void)state;
	write_map("w", "1000 10 first\n");
	jit_note(jit, &identity, &(struct jit_address){ .address = 0x1000 }, now_ns);
	jit_settle(jit, SETTLE_NS);
	write_map("a", "2000 10 second\n");
	jit_note(jit, &identity, &(struct jit_address){ .address = 0x2000 },
		 now_ns + 1); /* too soon */
	assert_false(jit_find(jit, &identity, 0x2000, &name, &raw));
	jit_settle(jit, SETTLE_NS); /* the end of a window is a reason */
	assert_true(jit_find(jit, &identity, 0x2000, &name, &raw));
	jit_sweep(jit, now_ns);
	assert_true(jit_find(jit, &identity, 0x2000, &name, &raw)); /* it lives */
	jit_free(jit);
}

static void unused_processes_are_forgotten_though_their_number_lives(void **state)
{
	struct jit *jit = new_jit();
	struct process_identity identity = identity_of(getpid());
	int64_t now_ns = clock_monotonic_ns();
	struct code_name name;
	struct slice raw;

	(void)state;
	write_map("w", "1000 10 named\n");
	assert_string_equal(name_of(jit, 0x1000), "named :0");
	jit_sweep(jit, now_ns + 200 * CLOCK_NS_PER_S);
	jit_sweep(jit, now_ns + 299 * CLOCK_NS_PER_S);
	assert_true(jit_find(jit, &identity, 0x1000, &name, &raw));
	jit_sweep(jit, now_ns + 400 * CLOCK_NS_PER_S);
	assert_false(jit_find(jit, &identity, 0x1000, &name, &raw));
	assert_int_equal(metric_get(&jit_processes), 0);
	assert_string_equal(name_of(jit, 0x1000), "named :0");
	jit_free(jit);
}

static void put_record(FILE *file, uint32_t id, const void *body, size_t bytes)
{
	uint32_t head[4] = { id, (uint32_t)(16 + bytes), 0, 0 };

	assert_int_equal(fwrite(head, sizeof(head), 1, file), 1);
	assert_int_equal(fwrite(body, bytes, 1, file), 1);
}

static void put_load(FILE *file, uint64_t start, const char *name)
{
	uint64_t body[16] = { 0, 0, start, 16, 1 };

	strcpy((char *)(body + 5), name);
	put_record(file, 0, body, 40 + strlen(name) + 1 + 16);
}

static void put_source(FILE *file, uint64_t start, uint32_t line, const char *path)
{
	uint64_t body[16] = { start, 1, start, line };

	strcpy((char *)(body + 4), path);
	put_record(file, 2, body, 32 + strlen(path) + 1);
}

static void put_move(FILE *file, uint64_t from, uint64_t to)
{
	uint64_t body[6] = { 0, to, from, to, 16, 1 };

	put_record(file, 1, body, sizeof(body));
}

static const uint32_t jitdump_header[10] = { 0x4a695444, 1, 40, 62 };

/* A jitdump of this process, in a folder of its own, that holds nothing but its header. */
struct jitdump {
	char folder[32], path[64];
	FILE *file;
	void *marker; /* where it is mapped */
};

static void make_jitdump(struct jitdump *dump)
{
	*dump = (struct jitdump){ .folder = "/tmp/firn-jit-XXXXXX" };
	assert_non_null(mkdtemp(dump->folder));
	snprintf(dump->path, sizeof(dump->path), "%s/jit-%d.dump", dump->folder, (int)getpid());
	dump->file = fopen(dump->path, "w+");
	assert_non_null(dump->file);
	fwrite(jitdump_header, sizeof(jitdump_header), 1, dump->file);
}

static void map_jitdump(struct jitdump *dump)
{
	dump->marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump->file), 0);
	assert_ptr_not_equal(dump->marker, MAP_FAILED);
}

static void remove_jitdump(struct jitdump *dump)
{
	fclose(dump->file);
	munmap(dump->marker, 4096);
	unlink(dump->path);
	rmdir(dump->folder);
}

static void a_mapped_jitdump_is_followed_as_it_grows(void **state)
{
	struct jit *jit = new_jit();
	struct jitdump dump;

	(void)state;
	make_jitdump(&dump);
	put_load(dump.file, 0x1000, "plain");
	put_source(dump.file, 0x2000, 17, "/srv/a.jl");
	put_load(dump.file, 0x2000, "lined");
	put_move(dump.file, 0x2000, 0x3000);
	fflush(dump.file);
	assert_string_equal(name_of(jit, 0x1000), ""); /* nobody has mapped it */
	map_jitdump(&dump);
	jit_free(jit);
	jit = new_jit(); /* or the next look is a minute away */
	assert_string_equal(name_of(jit, 0x1000), "plain :0");
	assert_string_equal(name_of(jit, 0x2000), "lined /srv/a.jl:17");
	assert_string_equal(name_of(jit, 0x300f), "lined /srv/a.jl:17");
	put_move(dump.file, 0x1000, 0x4000); /* of what an earlier turn read */
	put_load(dump.file, 0x1000, "replaced");
	put_record(dump.file, 99, jitdump_header, sizeof(jitdump_header)); /* of a later version */
	fflush(dump.file);
	assert_string_equal(name_of(jit, 0x4000), "plain :0");
	assert_string_equal(name_of(jit, 0x1000), "replaced :0");
	remove_jitdump(&dump);
	jit_free(jit);
}

/* What the kernel has of the test's process: a few lines. */
static struct {
	uint32_t number; /* 0 = the process has none */
	bool is_refused; /* it is another's */
	struct code_line_key keys[8];
	size_t count;
} kernel;

static bool put_process(void *context, const struct process_identity *identity, uint32_t number)
{
	(void)context;
	assert_int_equal(identity->pid, getpid());
	assert_true(number & CODE_NUMBER_OF_JITDUMP);
	if (!kernel.is_refused)
		kernel.number = number;
	return !kernel.is_refused;
}

static void put_line(void *context, const struct code_line_key *key, const struct code_line *line)
{
	size_t at = 0;

	(void)context;
	assert_false(key->reserved);
	while (at < kernel.count &&
	       (kernel.keys[at].line != key->line || kernel.keys[at].number != key->number))
		at++;
	if (!line) {
		assert_true(at < kernel.count);
		kernel.keys[at] = kernel.keys[--kernel.count];
		return;
	}
	assert_true(at < 8);
	kernel.count += at == kernel.count;
	kernel.keys[at] = *key;
}

static void drop_process(void *context, uint32_t pid, uint32_t number)
{
	(void)context;
	assert_int_equal(pid, getpid());
	assert_int_equal(number, kernel.number);
	kernel.number = 0;
}

static const struct jit_program program = { put_process, put_line, drop_process, NULL };

static bool has_line(uint64_t address)
{
	for (size_t i = 0; i < kernel.count; i++)
		if (kernel.keys[i].line == address >> CODE_LINE_SHIFT &&
		    kernel.keys[i].number == kernel.number)
			return true;
	return false;
}

/* Of code of 16 bytes: CFA = rsp + 8, after a byte rsp + 16. */
static void put_unwinding(FILE *file)
{
	static const char frames[] =
		"\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0\x10\0\0\0"
		"\x1c\0\0\0\xd0\xff\xff\xff\x10\0\0\0\0\x41\x0e\x10";
	uint64_t body[9] = { sizeof(frames) - 1, 0, 64 };

	memcpy(body + 3, frames, sizeof(frames) - 1);
	put_record(file, 4, body, 24 + sizeof(frames) - 1);
}

static void a_jitdump_tells_how_its_code_is_unwound(void **state)
{
	struct jit *jit;
	struct jitdump dump;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	make_jitdump(&dump);
	map_jitdump(&dump);
	put_load(dump.file, 0x1000, "pointer");
	put_unwinding(dump.file);
	put_load(dump.file, 0x2000, "rows");
	put_load(dump.file, 0x3000, "pointer, too");
	fflush(dump.file);
	jit = new_jit_for(&program);
	assert_string_equal(name_of(jit, 0x2000), "rows :0");
	assert_int_equal(kernel.count, 1);
	assert_true(has_line(0x2000));
	assert_int_equal(metric_get(&jit_unwinding_lines), 1);
	put_unwinding(dump.file);
	put_load(dump.file, 0x4000, "later");
	put_load(dump.file, 0x2000, "instead");
	put_unwinding(dump.file); /* of what is to come */
	fflush(dump.file);
	assert_string_equal(name_of(jit, 0x4000), "later :0");
	assert_int_equal(kernel.count, 1);
	assert_true(has_line(0x4000));
	put_load(dump.file, 0x5000, "after all");
	fflush(dump.file);
	assert_string_equal(name_of(jit, 0x5000), "after all :0");
	assert_true(has_line(0x5000));
	jit_sweep(jit, clock_monotonic_ns() + 400 * CLOCK_NS_PER_S); /* forgotten */
	assert_int_equal(kernel.count, 0);
	assert_int_equal(kernel.number, 0);
	assert_string_equal(name_of(jit, 0x4000), "later :0");
	assert_true(has_line(0x4000));
	remove_jitdump(&dump);
	jit_free(jit);
}

static void code_of_another_machine_has_no_lines(void **state)
{
	static const struct {
		uint32_t machine;
		size_t lines;
	} headers[] = { { 62, 1 }, { 0, 1 }, { 183, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct jit *jit = new_jit_for(&program);
		struct jitdump dump;

		memset(&kernel, 0, sizeof(kernel));
		make_jitdump(&dump);
		map_jitdump(&dump);
		put_unwinding(dump.file);
		put_load(dump.file, 0x2000, "code");
		fflush(dump.file);
		assert_int_equal(pwrite(fileno(dump.file), &headers[i].machine, 4, 12), 4);
		assert_string_equal(name_of(jit, 0x2000), "code :0");
		assert_int_equal(kernel.count, headers[i].lines);
		remove_jitdump(&dump);
		jit_free(jit);
	}
}

static void code_that_is_left_in_another_way_has_no_lines(void **state)
{
	struct jit *jit;
	struct jitdump dump;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	make_jitdump(&dump);
	map_jitdump(&dump);
	put_unwinding(dump.file);
	put_load(dump.file, 0x2000, "rows");
	fflush(dump.file);
	kernel.is_refused = true;
	jit = new_jit_for(&program);
	assert_string_equal(name_of(jit, 0x2000), "rows :0");
	assert_int_equal(kernel.count, 0);
	jit_free(jit);
	/* It turns out later. */
	kernel.is_refused = false;
	jit = new_jit_for(&program);
	assert_string_equal(name_of(jit, 0x2000), "rows :0");
	assert_int_equal(kernel.count, 1);
	kernel.is_refused = true;
	jit_settle(jit, SETTLE_NS);
	assert_int_equal(kernel.count, 0);
	assert_int_equal(kernel.number, 0);
	put_unwinding(dump.file);
	put_load(dump.file, 0x3000, "more");
	fflush(dump.file);
	assert_string_equal(name_of(jit, 0x3000), "more :0");
	assert_int_equal(kernel.count, 0);
	jit_settle(jit, SETTLE_NS);
	assert_int_equal(metric_get(&jit_unwinding_lines), 0);
	remove_jitdump(&dump);
	jit_free(jit);
}

static size_t lines_put;

static bool put_any_process(void *context, const struct process_identity *identity, uint32_t number)
{
	(void)context;
	(void)identity;
	(void)number;
	return true;
}

static void count_put(void *context, const struct code_line_key *key, const struct code_line *line)
{
	(void)context;
	(void)key;
	(void)line;
	lines_put++;
}

static void drop_any_process(void *context, uint32_t pid, uint32_t number)
{
	(void)context;
	(void)pid;
	(void)number;
}

/* Of as much code as may have rows, and other rows each time. */
static void put_large_code(FILE *file, unsigned round)
{
	const uint32_t bytes = CODE_ROWS_BYTES_MAX, behind = -(bytes + 32);
	char frames[] = "\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"
			"\x10\0\0\0\x1c\0\0\0PPPPSSSS\0\x41\x0e\x10";
	uint64_t unwinding[9] = { sizeof(frames) - 1, 0, 64 },
		 load[8] = { 0, 0, 0x10000000, bytes };

	memcpy(frames + 32, &behind, sizeof(behind));
	memcpy(frames + 36, &bytes, sizeof(bytes));
	frames[sizeof(frames) - 2] = (char)(16 + 8 * (round % 8));
	memcpy(unwinding + 3, frames, sizeof(frames) - 1);
	put_record(file, 4, unwinding, 24 + sizeof(frames) - 1);
	strcpy((char *)(load + 5), "large");
	put_record(file, 0, load, sizeof(load));
}

/* However often a process changes all of its code: the drain thread has other things to do. */
static void lines_are_put_bit_by_bit(void **state)
{
	static const struct jit_program counting = { put_any_process, count_put, drop_any_process,
						     NULL };
	int64_t began_ns = clock_monotonic_ns(), until_ns = began_ns + SETTLE_NS;
	struct jitdump dump;
	struct jit *jit;

	(void)state;
	lines_put = 0;
	make_jitdump(&dump);
	map_jitdump(&dump);
	jit = new_jit_for(&counting);
	for (unsigned round = 1; round <= 10; round++) {
		put_large_code(dump.file, round);
		put_load(dump.file, 0x1000 * round, "next");
		fflush(dump.file);
		while (!*name_of(jit, 0x1000 * round))
			assert_true(clock_monotonic_ns() < until_ns);
		if (round == 1)
			assert_int_equal(lines_put, JIT_PUTS_MAX);
		assert_true(lines_put <=
			    JIT_PUTS_MAX +
				    (uint64_t)(clock_monotonic_ns() - began_ns) / JIT_PUT_NS);
	}
	/* All come, and all go. */
	while (lines_put < 2 * JIT_PUTS_MAX && clock_monotonic_ns() < until_ns)
		jit_settle(jit, SETTLE_NS);
	assert_true(lines_put >= 2 * JIT_PUTS_MAX);
	do
		jit_sweep(jit, clock_monotonic_ns() + 400 * CLOCK_NS_PER_S);
	while (metric_get(&jit_processes) && clock_monotonic_ns() < until_ns);
	assert_int_equal(metric_get(&jit_processes), 0);
	remove_jitdump(&dump);
	jit_free(jit);
}

static bool is_named_with(struct jit *jit, uint64_t address, uint64_t mapped)
{
	struct process_identity identity = identity_of(getpid());
	struct code_name name;
	struct slice raw;

	jit_note(jit, &identity, &(struct jit_address){ .address = address, .mapped = mapped },
		 clock_monotonic_ns());
	jit_settle(jit, SETTLE_NS);
	return jit_find(jit, &identity, address, &name, &raw);
}

static void mappings_are_gone_through_again_when_others_are_mapped(void **state)
{
	struct jit *jit = new_jit();
	struct jitdump dump;

	(void)state;
	write_map("w", "9000 10 in_perf_map\n"); /* so that each window's end is a reason to look */
	make_jitdump(&dump);
	put_load(dump.file, 0x1000, "plain");
	fflush(dump.file);
	assert_false(is_named_with(jit, 0x1000, 5));
	map_jitdump(&dump);
	assert_false(is_named_with(jit, 0x1000, 5)); /* nothing new, we are told */
	assert_true(is_named_with(jit, 0x1000, 6));
	put_load(dump.file, 0x2000, "later");
	fflush(dump.file);
	assert_true(is_named_with(jit, 0x2000, 6)); /* one that was found is followed */
	remove_jitdump(&dump);
	jit_free(jit);
}

static void large_maps_are_read_in_turns(void **state)
{
	struct jit *jit = new_jit();
	FILE *file = fopen(map_path, "w");

	(void)state;
	assert_non_null(file);
	for (unsigned i = 0; i < 90000; i++)
		fprintf(file, "%x 10 void com.acme.generated.Class%u.method(int, long)\n",
			0x100000 + i * 16, i);
	for (unsigned i = 0; i < 300000; i++)
		fputc('x', file); /* a line over all bounds */
	fputs("\n10 10 last\n", file);
	fclose(file);
	assert_string_equal(name_of(jit, 0x10), "last :0");
	assert_string_equal(name_of(jit, 0x100000 + 89999 * 16),
			    "void com.acme.generated.Class89999.method(int, long) :0");
	assert_string_equal(name_of(jit, 0x100000),
			    "void com.acme.generated.Class0.method(int, long) :0");
	jit_free(jit);
}

static long peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

#define GREEDY 6
#define GREEDY_LINES 500000u

static pid_t start_greedy(char path[64])
{
	pid_t pid = fork();
	FILE *file;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		pause();
		_exit(0);
	}
	snprintf(path, 64, "/tmp/perf-%d.map", (int)pid);
	file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < GREEDY_LINES; i++)
		fprintf(file,
			"%x 10 void com.acme.generated.of.process%d.Class%u.method(int, long)\n",
			0x100000 + i * 16, (int)pid, i);
	fclose(file);
	return pid;
}

/* Whatever processes write, together they cost a bounded part of memory and CPU time. */
static void greedy_processes_share_a_budget(void **state)
{
	struct process_identity identities[GREEDY];
	char paths[GREEDY][64];
	struct jit *jit = new_jit();
	pid_t pids[GREEDY];
	double began;
	long before;

	(void)state;
	for (size_t i = 0; i < GREEDY; i++) {
		pids[i] = start_greedy(paths[i]);
		identities[i] = identity_of(pids[i]);
	}
	before = peak_kb();
	began = cpu_seconds();
	for (int round = 0; round < 40; round++) {
		for (size_t i = 0; i < GREEDY; i++)
			jit_note(jit, &identities[i], &(struct jit_address){ .address = 0x10 },
				 clock_monotonic_ns());
		jit_settle(jit, 100 * CLOCK_NS_PER_MS);
		jit_sweep(jit, clock_monotonic_ns());
	}
	printf("# %ld kB more at most, %.1f s of CPU time\n", peak_kb() - before,
	       cpu_seconds() - began);
	assert_true(cpu_seconds() - began < 2.0 * (double)JIT_BURST_NS / CLOCK_NS_PER_S);
	if (!BUILT_WITH_ASAN && !BUILT_WITH_TSAN)
		assert_true(peak_kb() - before < 32 << 10);
	jit_free(jit);
	for (size_t i = 0; i < GREEDY; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		unlink(paths[i]);
	}
}

static void no_progress(void *context)
{
	(void)context;
}

/* As a worker copies what is far; false = more is to be read. */
static bool read_copy(struct code_reader *reader, int file, struct code_map **map)
{
	const struct lender_part part = code_reader_wants(reader);
	struct code_map_builder builder = { 0 };
	off_t size = lseek(file, 0, SEEK_END);
	uint64_t from = part.from <= (uint64_t)size ? part.from : 0;
	struct code_map *before = *map;
	size_t dropped;
	bool more;

	code_reader_adopt(reader, &(struct code_file){ .fd = near_file_copy_part(
							       file, from, (uint64_t)size - from,
							       no_progress, NULL),
						       .inode = 1,
						       .is_copy = true,
						       .copied_from = from });
	assert_true(reader->fd >= 0);
	more = code_reader_read(reader, &builder, before);
	code_reader_close(reader);
	*map = code_map_build(&builder, before, &dropped);
	code_map_unref(before);
	code_map_builder_free(&builder);
	return !more;
}

static const char *name_in(const struct code_map *map, uint64_t address)
{
	static char text[64];
	struct code_place place;

	if (!code_map_find(map, address, &place))
		return "";
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(place.name));
	return text;
}

static void of_a_far_map_what_is_new_is_copied(void **state)
{
	int file = memfd_create("far", MFD_CLOEXEC);
	struct code_map *map = NULL;
	struct code_reader reader;

	(void)state;
	code_reader_init(&reader, CODE_PERF_MAP);
	for (unsigned i = 0; i < 100; i++)
		dprintf(file, "%x 10 before\n", 0x10000 + 16 * i);
	dprintf(file, "1000 10 first\n20");
	assert_true(read_copy(&reader, file, &map));
	assert_string_equal(name_in(map, 0x1000), "first");
	assert_true(code_reader_wants(&reader).from > 1000);
	dprintf(file, "00 10 second\n");
	assert_true(read_copy(&reader, file, &map));
	assert_string_equal(name_in(map, 0x2000), "second");
	assert_string_equal(name_in(map, 0x1000), "first");
	/* Written anew: the first copy lacks the beginning, which shows. */
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	for (unsigned i = 0; i < 200; i++)
		dprintf(file, "%x 10 anew\n", 0x10000 + 16 * i);
	assert_false(read_copy(&reader, file, &map));
	assert_true(read_copy(&reader, file, &map));
	assert_string_equal(name_in(map, 0x10000), "anew");
	assert_string_equal(name_in(map, 0x10000 + 16 * 199), "anew");
	code_map_unref(map);
	code_reader_fini(&reader);
	close(file);
}

/* A process with a /tmp that never answers: a FUSE file system without a server. */
static pid_t start_with_deaf_tmp(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fuse = open("/dev/fuse", O_RDWR);
		char options[64];

		snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0",
			 fuse);
		if (fuse < 0 || unshare(CLONE_NEWNS) ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("deaf", "/tmp", "fuse", 0, options) || write(ready[1], "y", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

/* Name, kind and place in the kernel of an address when a window ends; "" = it has none. */
static const char *wasm_name_of(struct jit *jit, uint64_t address)
{
	static char text[256];
	struct process_identity identity = identity_of(getpid());
	struct jit_address noted = { .address = address, .is_code = true };
	struct code_name name;
	struct slice raw;

	jit_note(jit, &identity, &noted, clock_monotonic_ns());
	jit_settle(jit, SETTLE_NS);
	if (!jit_find(jit, &identity, address, &name, &raw) || name.kind != FRAME_WASM)
		return "";
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(name.function));
	return text;
}

static bool has_block(uint64_t address)
{
	for (size_t i = 0; i < kernel.count; i++)
		if (kernel.keys[i].line == CODE_LINE_OF_BLOCK(address >> CODE_BLOCK_SHIFT) &&
		    kernel.keys[i].number == kernel.number)
			return true;
	return false;
}

/* As wasmtime does it. Another module may come to the place of one that has gone. */
static void webassembly_is_named_by_its_image_in_memory(void **state)
{
	uint8_t *module =
		mmap(NULL, WASM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t code = (uintptr_t)module + WASM_TEXT_AT;
	struct process_identity identity = identity_of(getpid());
	struct jit *jit = new_jit_for(&program);
	struct pollfd news = { .fd = jit_fd(jit), .events = POLLIN };

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	assert_ptr_not_equal(module, MAP_FAILED);
	wasm_forge(module, "42");
	wasm_add_function(module, 0, 64, "wasm[0]::function[0]::first");
	assert_int_equal(mprotect(module + WASM_TEXT_AT, WASM_TEXT_BYTES, PROT_READ | PROT_EXEC),
			 0);
	jit_note(jit, &identity, &(struct jit_address){ .address = code, .is_code = true },
		 clock_monotonic_ns());
	assert_int_equal(poll(&news, 1, SETTLE_NS / CLOCK_NS_PER_MS), 1);
	jit_update(jit);
	assert_true(has_block(code));
	assert_true(jit_keeps_pointer(jit, &identity, code + 4, true));
	assert_false(jit_keeps_pointer(jit, &identity, code, true));
	assert_string_equal(wasm_name_of(jit, code), "first");

	assert_int_equal(mprotect(module, WASM_BYTES, PROT_READ | PROT_WRITE), 0);
	wasm_forge(module, "20");
	wasm_add_function(module, 0, 64, "wasm[0]::function[0]::second");
	assert_int_equal(mprotect(module + WASM_TEXT_AT, WASM_TEXT_BYTES, PROT_READ | PROT_EXEC),
			 0);
	wasm_name_of(jit, code); /* finds that the first has gone */
	assert_string_equal(wasm_name_of(jit, code), "second");
	assert_false(has_block(code));
	munmap(module, WASM_BYTES);
	wasm_name_of(jit, code);
	assert_string_equal(wasm_name_of(jit, code), "");
	jit_free(jit);
}

static void a_file_system_that_never_answers_holds_nobody_up(void **state)
{
	pid_t pid = start_with_deaf_tmp();
	int64_t began_ns = clock_monotonic_ns(), stuck = metric_get(&jit_stuck);
	struct process_identity identity;
	struct jit *jit;

	(void)state;
	if (pid < 0) {
		printf("# skip: a FUSE file system cannot be mounted here\n");
		skip();
	}
	jit = new_jit();
	identity = identity_of(pid);
	jit_note(jit, &identity, &(struct jit_address){ .address = 0x1000 }, began_ns);
	jit_settle(jit, CLOCK_NS_PER_S / 10); /* gives up waiting */
	assert_true(clock_monotonic_ns() - began_ns < LONG_NS / 2);
	write_map("w", "1000 10 first\n");
	do { /* time passes: gives up the thread, once that has begun */
		jit_settle(jit, CLOCK_NS_PER_S / 10);
		jit_sweep(jit, clock_monotonic_ns() + 2 * LONG_NS);
	} while (metric_get(&jit_stuck) == stuck);
	assert_int_equal(metric_get(&jit_stuck), stuck + 1);
	assert_string_equal(name_of(jit, 0x1000), "first :0"); /* another one goes on */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	jit_free(jit);
}

static void stopping_does_not_wait_for_a_file_system(void **state)
{
	pid_t pid = start_with_deaf_tmp();
	int64_t began_ns = clock_monotonic_ns();
	struct process_identity identity;
	struct jit *jit;

	(void)state;
	if (pid < 0) {
		printf("# skip: a FUSE file system cannot be mounted here\n");
		skip();
	}
	jit = new_jit();
	identity = identity_of(pid);
	jit_note(jit, &identity, &(struct jit_address){ .address = 0x1000 }, began_ns);
	jit_settle(jit, CLOCK_NS_PER_S / 10);
	jit_free(jit);
	assert_true(clock_monotonic_ns() - began_ns < LONG_NS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_perf_map_is_followed_as_it_grows, remove_map),
		cmocka_unit_test_teardown(a_perf_map_written_anew_is_read_anew, remove_map),
		cmocka_unit_test(of_a_far_map_what_is_new_is_copied),
		cmocka_unit_test(webassembly_is_named_by_its_image_in_memory),
		cmocka_unit_test_teardown(a_file_is_read_to_its_end_when_its_name_is_gone,
					  remove_map),
		cmocka_unit_test_teardown(what_is_no_regular_file_is_left_alone, remove_map),
		cmocka_unit_test_teardown(a_map_of_an_earlier_process_is_not_believed, remove_map),
		cmocka_unit_test_teardown(a_map_of_another_user_is_not_believed, remove_map),
		cmocka_unit_test_teardown(another_process_of_that_number_is_not_read, remove_map),
		cmocka_unit_test_teardown(readings_are_spaced_out, remove_map),
		cmocka_unit_test_teardown(unused_processes_are_forgotten_though_their_number_lives,
					  remove_map),
		cmocka_unit_test(a_mapped_jitdump_is_followed_as_it_grows),
		cmocka_unit_test(a_jitdump_tells_how_its_code_is_unwound),
		cmocka_unit_test(code_of_another_machine_has_no_lines),
		cmocka_unit_test(code_that_is_left_in_another_way_has_no_lines),
		cmocka_unit_test(lines_are_put_bit_by_bit),
		cmocka_unit_test_teardown(mappings_are_gone_through_again_when_others_are_mapped,
					  remove_map),
		cmocka_unit_test_teardown(large_maps_are_read_in_turns, remove_map),
		cmocka_unit_test(greedy_processes_share_a_budget),
		cmocka_unit_test_teardown(a_file_system_that_never_answers_holds_nobody_up,
					  remove_map),
		cmocka_unit_test(stopping_does_not_wait_for_a_file_system),
	};

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	mem_bound_heaps();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
