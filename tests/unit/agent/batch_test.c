/* SPDX-License-Identifier: Apache-2.0 */
/* A window's counts to tables, with processes and kernel symbols made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/describe/batch.h"
#include "agent/describe/vdso.h"
#include "base/mem.h"
#include "model/profile_type.h"

struct fixture {
	struct counts counts;
	struct tracker tracker;
	struct kernel_symbols symbols;
	struct kernel_image image;
	struct tables tables;
	struct tables_view view;
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	struct fixture *fixture = mem_new(struct fixture);
	char path[] = "/tmp/firn-kallsyms-XXXXXX";

	close(mkstemp(path));
	write_file(path, "ffffffff81000000 T _text\n"
			 "ffffffff81000100 T do_syscall_64\n"
			 "ffffffff81000200 t __pfx_vfs_read\n"
			 "ffffffff81000210 T vfs_read\n"
			 "ffffffff81000300 D not_code\n"
			 "ffffffffc0000000 t ext4_readdir\t[ext4]\n");
	fixture->image.fd = -1;
	counts_init(&fixture->counts);
	tracker_init(&fixture->tracker, &(struct tracker_options){ 0 });
	tables_init(&fixture->tables);
	assert_int_equal(kernel_symbols_read(&fixture->symbols, path, NULL), 0);
	unlink(path);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	counts_free(&fixture->counts);
	tracker_fini(&fixture->tracker, 0);
	kernel_symbols_free(&fixture->symbols);
	tables_free(&fixture->tables);
	free(fixture);
	return 0;
}

static struct sample sample_of(uint32_t tgid, const char *name)
{
	struct sample sample = { .head = { .tgid = tgid, .tid = tgid, .process_start_ns = 1 } };

	snprintf(sample.head.process_name, SAMPLE_NAME_BYTES, "%s", name);
	snprintf(sample.thread_name, SAMPLE_NAME_BYTES, "%s", name);
	return sample;
}

static void add_kernel(struct sample *sample, uint64_t address)
{
	memmove(&sample->frames[sample->kernel_count + 1], &sample->frames[sample->kernel_count],
		sample->user_count * sizeof(__u64));
	sample->frames[sample->kernel_count++] = address;
}

static void add_user(struct sample *sample, uint64_t address)
{
	sample->frames[sample->kernel_count + sample->user_count++] = address;
}

/* The i-th sample is of tick `first_tick` + i, or of none. */
static struct process *count_from(struct fixture *fixture, const struct sample *sample, int times,
				  uint32_t first_tick)
{
	uint32_t index = tracker_get(&fixture->tracker, &sample->head, 1);
	static struct counts_key key;
	uint32_t space;

	assert_true(counts_key_of(&fixture->counts, sample, index, false, &key));
	space = tracker_space_at(&fixture->tracker, index, (int64_t)sample->head.at_ns);
	for (int i = 0; i < times; i++)
		assert_int_not_equal(counts_add(&fixture->counts, &key, space,
						first_tick == COUNTS_NO_TIME
							? first_tick
							: first_tick + (uint32_t)i),
				     COUNTS_FULL);
	return tracker_process(&fixture->tracker, index);
}

static struct process *count(struct fixture *fixture, const struct sample *sample, int times)
{
	return count_from(fixture, sample, times, COUNTS_NO_TIME);
}

/* As the kernel side would: a list of one mapping, from the sample's time on. */
static struct binary *map_file(struct fixture *fixture, const struct sample *sample, uint64_t start,
			       uint64_t end, uint64_t offset, uint64_t inode)
{
	struct space_record record = { .head = sample->head, .parts = 1, .count = 1 };
	struct process *process;

	record.head.kind = RECORD_SPACE;
	record.mappings[0] = (struct space_mapping){ .start = start,
						     .end = end,
						     .offset = offset,
						     .file = { .inode = inode, .device = 1 } };
	assert_true(tracker_take_space(&fixture->tracker, &record, sizeof(record), 1));
	process = tracker_process(&fixture->tracker,
				  tracker_get(&fixture->tracker, &sample->head, 1));
	assert_non_null(process->space);
	return process->space->mappings[0].binary;
}

static void build(struct fixture *fixture)
{
	struct batch_window window = {
		.counts = &fixture->counts,
		.tracker = &fixture->tracker,
		.kernel_symbols = &fixture->symbols,
		.kernel_image = &fixture->image,
		.labels = { .node = "host-1" },
		.start_ns = 1000,
		.duration_ns = 500,
		.period_ns = 52631578,
		.batch_id = 42,
	};

	batch_build(&fixture->tables, &window);
	fixture->view = tables_view_of(&fixture->tables);
}

/* "mapping!function@address" from the root, joined by ';'. */
static char *stack_text(const struct tables_view *view, uint32_t node)
{
	struct strbuf out = { 0 };
	uint32_t frames[512];
	size_t frames_count = 0;

	for (; node; node = view->nodes[node].parent)
		frames[frames_count++] = view->nodes[node].frame;
	strbuf_add(&out, "", 0);
	while (frames_count-- > 0) {
		const struct frame *frame = &view->frames[frames[frames_count]];

		strbuf_addf(&out, "%.*s!%.*s", SLICE_FMT(tables_text(view, frame->mapping_file)),
			    SLICE_FMT(tables_text(view, frame->function)));
		if (frame->address)
			strbuf_addf(&out, "@%llx", (unsigned long long)frame->address);
		if (frame->flags & FRAME_ADDR_OFFSET)
			strbuf_add_text(&out, "+file");
		if (frames_count)
			strbuf_add_byte(&out, ';');
	}
	return out.data;
}

static void assert_stack(const struct tables_view *view, uint32_t row, const char *want)
{
	char *text = stack_text(view, view->rows[row].stack);

	assert_string_equal(text, want);
	free(text);
}

static void kernel_frames_have_names_and_modules(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "cat");

	add_kernel(&sample, 0xffffffffc0000010); /* leaf: exact */
	add_kernel(&sample, 0xffffffff81000300); /* return address: the call was in vfs_read */
	add_kernel(&sample, 0xffffffff81000150);
	add_kernel(&sample, 0xfffffffff0000000); /* far behind everything */
	count(fixture, &sample, 1);
	build(fixture);
	assert_stack(&fixture->view, 0,
		     "[kernel]!@ffffffffefffffff;[kernel]!do_syscall_64;[kernel]!vfs_read;"
		     "[ext4]!ext4_readdir");
	assert_true(fixture->symbols.missed);
}

/* They count from `_text`, which this kernel has moved 16 MiB from where it was linked to. */
static void kernel_frames_with_vmlinux_have_its_addresses(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "cat");
	const struct frame *frame;

	fixture->image = (struct kernel_image){ .fd = 0,
						.build_id = "aa11",
						.text_address = 0xffffffff80000000 };
	add_kernel(&sample, 0xffffffff81000218);
	add_kernel(&sample, 0xffffffffc0000011);
	count(fixture, &sample, 1);
	build(fixture);
	frame = &fixture->view.frames[fixture->view.nodes[fixture->view.rows[0].stack].frame];
	assert_true(slice_is(tables_text(&fixture->view, frame->function), "vfs_read"));
	assert_true(slice_is(tables_text(&fixture->view, frame->build_id), "aa11"));
	assert_true(frame->address == 0xffffffff80000218);
	frame = &fixture->view.frames[fixture->view.nodes[1].frame];
	assert_true(slice_is(tables_text(&fixture->view, frame->mapping_file), "[ext4]"));
	assert_true(frame->address == 0);
}

static void report_has_type_labels_and_times(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "cat");
	const struct tables_view *view = &fixture->view;
	struct process *process;
	struct strbuf type = { 0 };
	struct profile_type parts;
	uint32_t labels;

	process = count(fixture, &sample, 3);
	process->executable = mem_strndup("/usr/bin/cat", 12);
	process->cgroups = mem_strndup("0::/system.slice/a.service\n", 27);
	build(fixture);
	assert_int_equal(view->reports_count, 1);
	assert_int_equal(view->reports[0].start_ns, 1000);
	assert_int_equal(view->reports[0].duration_ns, 500);
	assert_int_equal(view->reports[0].batch_id, 42);
	assert_int_equal(view->totals[0], 3);
	parts = profile_type_of(view, 0, 0);
	profile_type_format(&type, &parts);
	assert_string_equal(strbuf_text(&type), "on_cpu:samples:count:cpu:nanoseconds:delta");
	strbuf_free(&type);
	assert_int_equal(view->groups[0].period, 52631578);
	labels = view->series[view->reports[0].series].label_set;
	assert_true(slice_is(tables_label_value(view, labels, slice_of("node")), "host-1"));
	assert_true(slice_is(tables_label_value(view, labels, slice_of("comm")), "cat"));
	assert_true(
		slice_is(tables_label_value(view, labels, slice_of("executable")), "/usr/bin/cat"));
	assert_true(slice_is(tables_label_value(view, labels, slice_of("cgroup")),
			     "/system.slice/a.service"));
	assert_true(
		slice_is(tables_label_value(view, labels, slice_of("systemd_unit")), "a.service"));
	assert_int_equal(view->label_sets[labels].label_count, 5); /* no pid, no thread_name */
}

static void processes_with_equal_labels_are_one_series(void **state)
{
	struct fixture *fixture = *state;
	struct sample first = sample_of(10, "cc1"), second = sample_of(11, "cc1");
	struct sample other = sample_of(12, "ld");

	add_kernel(&first, 0xffffffff81000150);
	add_kernel(&second, 0xffffffff81000150);
	count(fixture, &first, 2);
	count(fixture, &second, 5);
	count(fixture, &other, 1);
	build(fixture);
	assert_int_equal(fixture->view.reports_count, 2);
	assert_int_equal(fixture->view.reports[0].row_count, 1); /* the same stack: one row */
	assert_int_equal(fixture->view.totals[0] + fixture->view.totals[1], 8);
	assert_int_equal(fixture->view.values[0], 7);
}

static void times_of_samples_go_with_their_row(void **state)
{
	static const uint32_t ticks[] = { 3, 4, 100, 101, 102 };
	struct fixture *fixture = *state;
	struct sample first = sample_of(10, "cc1"), second = sample_of(11, "cc1");
	struct sample leaf = sample_of(12, "cc1"), other = sample_of(13, "ld");

	add_kernel(&first, 0xffffffff81000150);
	add_kernel(&second, 0xffffffff81000150);
	count_from(fixture, &first, 3, 100);
	count_from(fixture, &leaf, 1, 7);
	count(fixture, &other, 1);
	count_from(fixture, &second, 2, 3);
	build(fixture);
	assert_int_equal(fixture->view.reports_count, 2);
	assert_int_equal(fixture->view.moments_count, 6);
	for (uint32_t r = 0; r < 2; r++) {
		const struct report *report = &fixture->view.reports[r];
		const struct moment *moments = fixture->view.moments + report->moment_first;
		uint32_t row = 0;

		if (report->row_count == 1) {
			assert_int_equal(report->moment_count, 0); /* of ld */
			continue;
		}
		assert_int_equal(report->moment_count, 6);
		for (uint32_t i = 0; i < 6; i++) {
			bool of_leaf =
				fixture->view.values[report->value_first + moments[i].row] == 1;

			assert_int_equal(moments[i].tick, of_leaf ? 7 : ticks[row++]);
		}
		assert_int_equal(row, 5);
	}
}

static void cut_stacks_say_why_at_the_root(void **state)
{
	static const struct {
		enum stack_end end;
		const char *text;
	} cases[] = {
		{ STACK_COMPLETE, "[anon]!" },
		{ STACK_NO_FRAME_POINTER, "![truncated: no frame pointer];[anon]!" },
		{ STACK_UNREADABLE, "![truncated: unreadable stack];[anon]!" },
		{ STACK_TOO_DEEP, "![truncated: too deep];[anon]!" },
		{ STACK_32_BIT, "![truncated: 32-bit process];[anon]!" },
		{ STACK_NO_USER_REGISTERS, "![truncated: no user registers];[anon]!" },
		{ STACK_KERNEL_WALK, "[anon]!" },
		{ STACK_GUESSED_POINTER, "![guess: frame pointer];[anon]!" },
	};
	struct fixture *fixture = *state;
	bool found[sizeof(cases) / sizeof(cases[0])] = { false };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sample sample = sample_of(10, "cat");

		add_user(&sample, 0x1234);
		sample.user_end = cases[i].end;
		count(fixture, &sample, 1);
	}
	build(fixture);
	for (uint32_t row = 0; row < fixture->view.rows_count; row++) {
		char *text = stack_text(&fixture->view, fixture->view.rows[row].stack);

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			found[i] |= !strcmp(text, cases[i].text);
		free(text);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_true(found[i]);
}

/* The address of this test program's code, as nm(1) prints it. */
static uint64_t address_in_file(const char *path, const char *function)
{
	char command[5000], line[512];
	uint64_t address = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm --defined-only '%s'", path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		unsigned long long at;
		char type, name[256];

		if (sscanf(line, "%llx %c %255s", &at, &type, name) == 3 && !strcmp(name, function))
			address = at;
	}
	pclose(nm);
	assert_true(address > 0);
	return address;
}

static void native_frames_have_the_addresses_of_their_file(void **state)
{
	uint64_t address = (uint64_t)(uintptr_t)native_frames_have_the_addresses_of_their_file;
	struct fixture *fixture = *state;
	struct sample sample = sample_of((uint32_t)getpid(), "self");
	char *path = realpath("/proc/self/exe", NULL), want[8192];
	uint64_t in_file = address_in_file(path, "native_frames_have_the_addresses_of_their_file");
	const struct frame *frame;
	struct binary *binary;
	struct elf_info *elf;
	int fd;

	/* The test program itself stands for a binary: mapped as a whole, as far as we say. */
	binary = map_file(fixture, &sample, address - in_file, address + 4096, 0, 7);
	add_user(&sample, address + 5);
	count(fixture, &sample, 1);
	elf = mem_new(struct elf_info);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_read_info(fd, path, elf, NULL), 0);
	binaries_fill(&fixture->tracker.binaries, binary, 1, fd, elf, path, 1);
	assert_non_null(binary->elf);
	build(fixture);
	snprintf(want, sizeof(want), "%s!@%llx", path, (unsigned long long)in_file + 5);
	assert_stack(&fixture->view, 0, want);
	frame = &fixture->view.frames[fixture->view.nodes[fixture->view.rows[0].stack].frame];
	assert_true(slice_is(tables_text(&fixture->view, frame->build_id), binary->elf->build_id));
	free(path);
}

static void unopened_files_give_file_offsets(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "cat");
	struct binary *binary = map_file(fixture, &sample, 0x2000, 0x3000, 0x1000, 7);

	add_user(&sample, 0x2345);
	count(fixture, &sample, 1);
	binary_name(binary, "/gone\xff");
	build(fixture);
	assert_stack(&fixture->view, 0, "/gone?!@1345+file"); /* and the path is UTF-8 now */
}

static void files_without_a_path_are_named_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "cat");

	map_file(fixture, &sample, 0x2000, 0x3000, 0x1000, 7);
	add_user(&sample, 0x2345);
	count(fixture, &sample, 1);
	build(fixture);
	assert_stack(&fixture->view, 0, "[unknown file]!@1345+file");
}

/* One library goes, another comes to the same place, all in one window. */
static void changed_mappings_do_not_touch_samples_from_before(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "plugins");
	struct binary *first, *second;

	sample.head.at_ns = 100;
	first = map_file(fixture, &sample, 0x2000, 0x3000, 0, 7);
	add_user(&sample, 0x2345);
	count(fixture, &sample, 1);
	sample.head.at_ns = 200;
	second = map_file(fixture, &sample, 0x2000, 0x3000, 0x5000, 8);
	count(fixture, &sample, 4);
	sample.head.at_ns = 150; /* taken before the change, sent after it */
	count(fixture, &sample, 2);
	binary_name(first, "/first.so");
	binary_name(second, "/second.so");
	build(fixture);
	assert_int_equal(fixture->view.rows_count, 2);
	assert_stack(&fixture->view, 0, "/first.so!@345+file");
	assert_stack(&fixture->view, 1, "/second.so!@5345+file");
	assert_int_equal(fixture->view.values[0], 3);
	assert_int_equal(fixture->view.values[1], 4);
}

/* A file whose code has addresses of its own, so that frames say which was taken. */
static void fill_elf(struct fixture *fixture, struct binary *binary, const char *path,
		     uint64_t address)
{
	struct elf_info *elf = mem_new(struct elf_info);

	elf->segments[0] = (struct elf_segment){ .address = address,
						 .file_bytes = 0x10000,
						 .memory_bytes = 0x10000,
						 .executable = true };
	elf->segments_count = 1;
	binaries_fill(&fixture->tracker.binaries, binary, 1, open("/dev/null", O_RDONLY), elf, path,
		      1);
}

/* Frames recur in a window's stacks; what was at an address in another list is another frame. */
static void frames_that_recur_are_of_their_list(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "plugins");
	struct binary *first, *second;

	sample.head.at_ns = 100;
	first = map_file(fixture, &sample, 0x2000, 0x3000, 0, 7);
	sample.head.at_ns = 200;
	second = map_file(fixture, &sample, 0x2000, 0x3000, 0x5000, 8);
	fill_elf(fixture, first, "/first.so", 0x10000);
	fill_elf(fixture, second, "/second.so", 0x70000);
	add_user(&sample, 0x2345);
	for (int i = 0; i < 4; i++) {
		sample.head.at_ns = i % 2 ? 200 : 100;
		count(fixture, &sample, 1);
		add_user(&sample, 0x2400);
	}
	build(fixture);
	assert_int_equal(fixture->view.rows_count, 4);
	for (uint32_t row = 0; row < 4; row++) {
		static const char *const expected[] = {
			"/first.so!@10345",
			"/second.so!@75400;/second.so!@75345",
			"/first.so!@10400;/first.so!@10400;/first.so!@10345",
			"/second.so!@75400;/second.so!@75400;/second.so!@75400;/second.so!@75345",
		};

		assert_stack(&fixture->view, row, expected[row]);
	}
}

static void executable_of_an_ended_process_is_its_first_mapping(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = sample_of(10, "sh");
	struct tables_view *view = &fixture->view;
	struct binary *binary = map_file(fixture, &sample, 0x2000, 0x3000, 0x1000, 7);

	count(fixture, &sample, 1);
	binary_name(binary, "/usr/bin/dash"); /* learnt from another process, later */
	build(fixture);
	assert_true(
		slice_is(tables_label_value(view, view->series[view->reports[0].series].label_set,
					    slice_of("executable")),
			 "/usr/bin/dash"));
}

static void hidden_kernel_addresses_are_explained(void **state)
{
	struct kernel_symbols symbols = { 0 };
	char path[] = "/tmp/firn-kallsyms-XXXXXX";
	struct slice name, module;
	struct err err;

	(void)state;
	close(mkstemp(path));
	write_file(path, "0000000000000000 T _text\n0000000000000000 T vfs_read\n");
	assert_int_equal(kernel_symbols_read(&symbols, path, &err), -ERR_DENIED);
	assert_non_null(strstr(err.message, "kptr_restrict"));
	write_file(path, "garbage\n");
	assert_int_equal(kernel_symbols_read(&symbols, path, &err), -ERR_NOT_FOUND);
	unlink(path);
	assert_int_not_equal(kernel_symbols_read(&symbols, path, &err), 0);
	assert_non_null(strstr(err.message, path));
	assert_false(kernel_symbols_find(&symbols, 0xffffffff81000000, &name, &module));
	kernel_symbols_free(&symbols);
}

/* A module that was loaded again elsewhere counts; one that is merely used more does not. */
static void modules_that_moved_are_noticed(void **state)
{
	static const char *const same[] = {
		"ext4 100 1 - Live 0xffffffffc0401000\njbd2 20 1 ext4, Live 0xffffffffc0300000 "
		"(E)\n",
		"ext4 100 7 - Live 0xffffffffc0401000\njbd2 20 2 - Live 0xffffffffc0300000 (E)\n",
	};
	static const char *const others[] = {
		"ext4 100 1 - Live 0xffffffffc0402000\njbd2 20 1 ext4, Live 0xffffffffc0300000 "
		"(E)\n",
		"ext4 101 1 - Live 0xffffffffc0401000\njbd2 20 1 ext4, Live 0xffffffffc0300000 "
		"(E)\n",
		"ext4 100 1 - Live 0xffffffffc0401000\n",
	};
	char path[] = "/tmp/firn-modules-XXXXXX";
	uint64_t hash;

	(void)state;
	close(mkstemp(path));
	write_file(path, same[0]);
	hash = kernel_symbols_hash_modules(path);
	write_file(path, same[1]);
	assert_true(kernel_symbols_hash_modules(path) == hash);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		write_file(path, others[i]);
		assert_true(kernel_symbols_hash_modules(path) != hash);
	}
	unlink(path);
	assert_true(kernel_symbols_hash_modules(path) == 0);
}

static struct program_code loaded; /* one program; at 0: none is known */

static bool list_programs(void *context, struct strbuf *ret)
{
	++*(unsigned *)context;
	strbuf_add(ret, (const char *)&loaded, sizeof(loaded));
	return loaded.start != 0;
}

static void expect_symbol(struct kernel_symbols *symbols, uint64_t address, const char *expected)
{
	struct slice name, module;

	assert_true(kernel_symbols_find(symbols, address, &name, &module));
	assert_true(slice_is(name, expected));
}

/* A reading costs more than a minute of samples: not for modules that no sample is in. */
static void modules_that_changed_are_read_when_one_is_asked_for(void **state)
{
	static const char *const first = "ffffffff81000000 T _text\nffffffff81000100 T core\n"
					 "ffffffffc0300000 t old_read\t[ext4]\n";
	static const char *const second = "ffffffff81000000 T _text\nffffffff81000100 T core_read\n"
					  "ffffffffc0300000 t new_read\t[ext4]\n";
	char path[] = "/tmp/firn-kallsyms-XXXXXX", modules[] = "/tmp/firn-modules-XXXXXX";
	struct kernel_symbol_files files;
	struct kernel_symbols symbols = { 0 };
	int64_t now_ns = 1;
	unsigned lists = 0;

	(void)state;
	loaded = (struct program_code){ 0 };
	files.symbols = mkstemp(path);
	files.modules = mkstemp(modules);
	write_file(path, first);
	kernel_symbols_refresh(&symbols, &files, list_programs, &lists, now_ns);
	expect_symbol(&symbols, 0xffffffffc0300010, "old_read");
	write_file(path, second);
	write_file(modules, "ext4 100 1 - Live 0xffffffffc0401000\n");
	now_ns += 61 * CLOCK_NS_PER_S;
	kernel_symbols_refresh(&symbols, &files, list_programs, &lists, now_ns);
	expect_symbol(&symbols, 0xffffffff81000110, "core");
	expect_symbol(&symbols, 0xffffffffc0300010, "new_read");
	expect_symbol(&symbols, 0xffffffff81000110, "core_read");
	kernel_symbols_free(&symbols);
	close(files.symbols);
	close(files.modules);
	unlink(path);
	unlink(modules);
}

/* They come and go all the time: /proc/kallsyms is not read for them. */
static void programs_are_listed_when_one_is_asked_for(void **state)
{
	static const char *const text = "ffffffff81000000 T _text\nffffffff81000100 T core\n"
					"ffffffffc0300000 t bpf_prog_1_old\t[bpf]\n"
					"ffffffffc0309000 t bpf_trampoline_7\t[bpf]\n";
	char path[] = "/tmp/firn-kallsyms-XXXXXX";
	struct kernel_symbol_files files = { .modules = -1 };
	struct kernel_symbols symbols = { 0 };
	struct slice name, module;
	int64_t now_ns = 1;
	unsigned lists = 0;

	(void)state;
	loaded = (struct program_code){ 0xffffffffc0300000, 0xffffffffc0300100, "bpf_prog_1_old" };
	files.symbols = mkstemp(path);
	write_file(path, text);
	kernel_symbols_refresh(&symbols, &files, list_programs, &lists, now_ns);
	expect_symbol(&symbols, 0xffffffffc0300010, "bpf_prog_1_old");
	write_file(path, "ffffffff81000000 T _text\nffffffff81000100 T core_read\n");
	loaded = (struct program_code){ 0xffffffffc0300200, 0xffffffffc0300300, "bpf_prog_2_new" };
	now_ns += 61 * CLOCK_NS_PER_S;
	lists = 0;
	kernel_symbols_refresh(&symbols, &files, list_programs, &lists, now_ns);
	expect_symbol(&symbols, 0xffffffff81000110, "core");
	assert_int_equal(lists, 0);
	expect_symbol(&symbols, 0xffffffffc0300210, "bpf_prog_2_new");
	expect_symbol(&symbols, 0xffffffffc0300010, "bpf_prog_1_old"); /* a sample may be older */
	expect_symbol(&symbols, 0xffffffffc0309010, "bpf_trampoline_7");
	assert_false(kernel_symbols_find(&symbols, 0xffffffffc0300110, &name, &module));
	assert_false(kernel_symbols_find(&symbols, 0xffffffffc0300300, &name, &module));
	assert_int_equal(lists, 1);
	expect_symbol(&symbols, 0xffffffff81000110, "core");
	kernel_symbols_free(&symbols);
	close(files.symbols);
	unlink(path);
}

/* As nm reads them from a copy of the image. */
static void functions_of_the_vdso_have_names(void **state)
{
	const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
	char path[] = "/tmp/firn-vdso-XXXXXX", command[96], name[128], type;
	unsigned long long address;
	size_t found = 0;
	int fd = mkstemp(path);
	FILE *symbols;

	(void)state;
	if (!vdso) {
		print_message("# skip: no vdso here\n");
		skip();
	}
	/* What lies behind it may not be mapped: write() then stops. */
	for (size_t at = 0; at < 16384 && write(fd, vdso + at, 4096) == 4096; at += 4096)
		;
	close(fd);
	snprintf(command, sizeof(command), "nm -D --defined-only --without-symbol-versions %s",
		 path);
	symbols = popen(command, "r");
	assert_non_null(symbols);
	while (fscanf(symbols, "%llx %c %127s", &address, &type, name) == 3) {
		if (type != 'T')
			continue;
		assert_true(slice_is(vdso_function(address), name));
		assert_true(slice_is(vdso_function(address + 1), name));
		found++;
	}
	pclose(symbols);
	unlink(path);
	assert_true(found > 0);
	assert_int_equal(vdso_function(1ull << 40).len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_frames_have_names_and_modules),
		TEST(kernel_frames_with_vmlinux_have_its_addresses),
		TEST(report_has_type_labels_and_times),
		TEST(processes_with_equal_labels_are_one_series),
		TEST(times_of_samples_go_with_their_row),
		TEST(cut_stacks_say_why_at_the_root),
		TEST(native_frames_have_the_addresses_of_their_file),
		TEST(unopened_files_give_file_offsets),
		TEST(files_without_a_path_are_named_unknown),
		TEST(changed_mappings_do_not_touch_samples_from_before),
		TEST(frames_that_recur_are_of_their_list),
		TEST(executable_of_an_ended_process_is_its_first_mapping),
		cmocka_unit_test(hidden_kernel_addresses_are_explained),
		cmocka_unit_test(modules_that_moved_are_noticed),
		cmocka_unit_test(modules_that_changed_are_read_when_one_is_asked_for),
		cmocka_unit_test(programs_are_listed_when_one_is_asked_for),
		cmocka_unit_test(functions_of_the_vdso_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
