/* SPDX-License-Identifier: Apache-2.0 */
/* Records and samples to images, mappings and binaries; our own process stands for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/procs/proc_stat.h"
#include "agent/procs/procs_metrics.h"
#include "agent/procs/tracker.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define NOBODY (1u << 22) /* over the limit of pids */

#define SETTLE_NS (60 * CLOCK_NS_PER_S)

struct fixture {
	struct tracker tracker;
	struct lender *lender;
	size_t wanted; /* tables */
	size_t tables; /* so many: all are known then; 0 = none ever is */
	size_t put;    /* lists read from /proc */
	struct space_mapping put_first;
};

static bool table_is_known(void *context, const struct file_key *key)
{
	const struct fixture *fixture = context;

	(void)key;
	return fixture->tables && fixture->wanted >= fixture->tables;
}

static void want_table(void *context, const struct file_key *key, int fd, const char *build_id,
		       const char *path)
{
	struct fixture *fixture = context;

	(void)key;
	assert_non_null(build_id);
	assert_true(path[0] == '/');
	assert_true(fd >= 0);
	close(fd);
	fixture->wanted++;
}

static void space_read(void *context, const struct record_head *head,
		       const struct space_mapping *mappings, size_t count)
{
	struct fixture *fixture = context;

	assert_int_equal(head->tgid, getpid());
	assert_true(count > 0);
	fixture->put++;
	fixture->put_first = mappings[0];
}

static int setup(void **state)
{
	struct fixture *fixture = mem_new(struct fixture);
	struct tracker_options options = {
		.announce_binaries = true,
		.tables = { .is_known = table_is_known, .want = want_table, .context = fixture },
		.space_read = space_read,
		.space_read_context = fixture,
	};

	assert_int_equal(lender_new(&fixture->lender, NULL), 0);
	options.lender = fixture->lender;
	tracker_init(&fixture->tracker, &options);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	tracker_fini(&fixture->tracker, 0);
	lender_free(fixture->lender);
	free(fixture);
	return 0;
}

static struct record_head head_of(uint32_t tgid, uint64_t at_ns)
{
	return (struct record_head){
		.tgid = tgid, .tid = tgid, .process_start_ns = 1, .at_ns = at_ns
	};
}

static void take(struct fixture *fixture, const struct space_record *record)
{
	size_t len = SPACE_RECORD_HEADER_BYTES + record->count * sizeof(struct space_mapping);

	fixture->tracker.wait_left_ns = SETTLE_NS; /* however slow the host is */
	assert_true(tracker_take_space(&fixture->tracker, record, len, 1));
	tracker_settle(&fixture->tracker, SETTLE_NS, 1);
}

static struct process *process_of(struct fixture *fixture, uint32_t tgid)
{
	struct record_head head = head_of(tgid, 0);

	return tracker_process(&fixture->tracker, tracker_get(&fixture->tracker, &head, 1));
}

/* Looks at a stack as the drain does. */
static const struct space *locate(struct fixture *fixture, const struct record_head *head,
				  const uint64_t *addresses, size_t count)
{
	static struct sample sample;
	uint32_t index = tracker_get(&fixture->tracker, head, 1);

	assert_int_not_equal(index, TRACKER_FULL);
	fixture->tracker.wait_left_ns = SETTLE_NS;
	sample.head = *head;
	return tracker_space(
		&fixture->tracker, index,
		tracker_locate(&fixture->tracker, index, &sample, addresses, count, 1));
}

/* Our own executable mappings of files, as the kernel side would send them. */
static void own_mappings(struct space_record *record)
{
	FILE *file = fopen("/proc/self/maps", "r");
	struct maps_file maps = { 0 };

	assert_int_equal(maps_file_read(&maps, fileno(file), NULL), 1);
	fclose(file);
	for (size_t i = 0; i < maps.count && record->count < SPACE_PART_MAPPINGS; i++) {
		const struct maps_range *range = &maps.ranges[i];
		struct stat stat_of;

		if (range->kind != MAPPING_FILE || stat(range->path, &stat_of))
			continue;
		record->mappings[record->count++] = (struct space_mapping){
			.start = range->start,
			.end = range->end,
			.offset = range->offset,
			.file = { range->inode, range->device,
				  stat_of.st_mtim.tv_sec * CLOCK_NS_PER_S +
					  stat_of.st_mtim.tv_nsec },
		};
	}
	maps_file_free(&maps);
	assert_true(record->count > 0);
}

/* What is announced since the last time: this binary, or nothing. */
static void assert_announced(struct fixture *fixture, const struct binary *binary)
{
	size_t count;
	struct binary_news *news = binaries_take_news(&fixture->tracker.binaries, &count);

	assert_int_equal(count, binary ? 1 : 0);
	if (binary) {
		assert_string_equal(news[0].path, binary->path);
		assert_string_equal(news[0].build_id, binary->elf->build_id);
	}
	for (size_t i = 0; i < count; i++)
		binary_news_free(&news[i]);
	free(news);
}

static void files_of_a_living_process_are_opened_at_once(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5), .parts = 1 };
	uint64_t address = (uint64_t)(uintptr_t)files_of_a_living_process_are_opened_at_once;
	char *self = realpath("/proc/self/exe", NULL);
	struct fixture *fixture = *state;
	const struct mapping *mapping;

	own_mappings(&record);
	take(fixture, &record);
	mapping = space_find(process_of(fixture, (uint32_t)getpid())->space, address);
	assert_non_null(mapping->binary->elf);
	assert_string_equal(mapping->binary->path, self);
	assert_int_equal(fixture->wanted, fixture->tracker.binaries.count);
	assert_announced(fixture, NULL); /* nobody was seen in them yet */
	locate(fixture, &record.head, &address, 1);
	assert_announced(fixture, mapping->binary);
	locate(fixture, &record.head, &address, 1);
	assert_announced(fixture, NULL); /* once is enough */
	free(self);
}

/* Its files stay open until then: the process may have ended. */
static void tables_of_a_process_are_wanted_with_its_first_sample(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5), .parts = 1 };
	uint64_t address =
		(uint64_t)(uintptr_t)tables_of_a_process_are_wanted_with_its_first_sample;
	struct fixture *fixture = *state;
	size_t count;

	tracker_set_only_sampled(&fixture->tracker, true);
	own_mappings(&record);
	take(fixture, &record);
	fixture->tables = count = fixture->tracker.binaries.count;
	assert_int_equal(fixture->wanted, 0);
	assert_int_equal(fixture->tracker.binaries.pinned, count);
	lender_free(fixture->lender);
	fixture->lender = fixture->tracker.options.lender = NULL;
	locate(fixture, &record.head, &address, 1);
	assert_int_equal(fixture->wanted, count);
}

/* Who should have taken them was full: they come again, file and all, or with the next sample. */
static void news_that_were_not_taken_come_again(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5), .parts = 1 };
	uint64_t address = (uint64_t)(uintptr_t)news_that_were_not_taken_come_again;
	struct fixture *fixture = *state;
	struct binaries *binaries = &fixture->tracker.binaries;
	const struct mapping *mapping;
	struct binary_news *news;
	size_t count;

	own_mappings(&record);
	take(fixture, &record);
	mapping = space_find(process_of(fixture, (uint32_t)getpid())->space, address);
	locate(fixture, &record.head, &address, 1);
	news = binaries_take_news(binaries, &count);
	assert_int_equal(count, 1);
	binaries_give_back(binaries, news, count);
	free(news);
	assert_announced(fixture, mapping->binary);
	locate(fixture, &record.head, &address, 1);
	assert_announced(fixture, NULL);

	/* Too many are open: the file is opened again when there is room. */
	mapping->binary->announced = false;
	locate(fixture, &record.head, &address, 1);
	tracker_settle(&fixture->tracker, SETTLE_NS, 1);
	news = binaries_take_news(binaries, &count);
	assert_int_equal(count, 1);
	binaries->pinned += BINARIES_PINNED_MAX;
	binaries_give_back(binaries, news, count);
	binaries->pinned -= BINARIES_PINNED_MAX;
	free(news);
	assert_announced(fixture, NULL);
	locate(fixture, &record.head, &address, 1);
	tracker_settle(&fixture->tracker, SETTLE_NS, 1);
	assert_announced(fixture, mapping->binary);
}

static void ended_process_gets_its_files_from_the_next_that_maps_them(void **state)
{
	struct space_record ended = { .head = head_of(NOBODY, 5), .parts = 1 }, living;
	struct fixture *fixture = *state;
	const struct space *space;
	uint64_t address;

	own_mappings(&ended);
	living = ended;
	living.head = head_of((uint32_t)getpid(), 6);
	for (size_t i = 0; i < ended.count; i++) { /* loaded elsewhere */
		ended.mappings[i].start += 1ull << 40;
		ended.mappings[i].end += 1ull << 40;
	}
	address = ended.mappings[0].start;
	take(fixture, &ended);
	space = locate(fixture, &ended.head, &address, 1);
	assert_non_null(space);
	assert_false(space_find(space, address)->binary->opened);
	take(fixture, &living);
	assert_non_null(space_find(space, address)->binary->elf);
	assert_int_equal(fixture->tracker.binaries.count,
			 process_of(fixture, NOBODY)->space->count);
	assert_non_null(process_executable(process_of(fixture, NOBODY)));
}

/* The main thread has ended before anyone looked; the stacks do not change any more. */
static void what_could_not_be_opened_is_tried_again(void **state)
{
	struct space_record record = { .head = head_of(NOBODY, 5), .parts = 1 };
	uint64_t address = (uint64_t)(uintptr_t)what_could_not_be_opened_is_tried_again;
	struct fixture *fixture = *state;
	static struct sample sample;
	const struct binary *binary;
	uint32_t index;

	own_mappings(&record);
	for (int i = 0; i < 10; i++) /* each tries, and none of that makes the next wait */
		take(fixture, &record);
	binary = space_find(locate(fixture, &record.head, &address, 1), address)->binary;
	assert_false(binary->opened);
	sample.head = record.head;
	sample.head.tid = (uint32_t)getpid(); /* another thread, which is there */
	index = tracker_get(&fixture->tracker, &sample.head, 2);
	tracker_look_again(&fixture->tracker, index, &sample, 2);
	tracker_settle(&fixture->tracker, SETTLE_NS, 2);
	assert_false(binary->opened); /* too early */
	tracker_look_again(&fixture->tracker, index, &sample, CLOCK_NS_PER_S / 10);
	tracker_settle(&fixture->tracker, SETTLE_NS, CLOCK_NS_PER_S / 10);
	assert_true(binary->opened);
	assert_announced(fixture, binary);
}

static void other_files_in_the_place_are_not_taken(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5), .parts = 1 };
	struct fixture *fixture = *state;
	const struct space *space;

	own_mappings(&record);
	record.mappings[0].file.inode++;
	record.mappings[0].file.changed_ns++;
	take(fixture, &record);
	space = process_of(fixture, (uint32_t)getpid())->space;
	assert_false(space->mappings[0].binary->opened);
	for (uint32_t i = 1; i < space->count; i++)
		assert_true(space->mappings[i].binary->opened);
}

static void memory_files_and_deleted_ones_are_opened(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5),
				       .parts = 1,
				       .count = 1 };
	struct fixture *fixture = *state;
	int fd = memfd_create("program", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY);
	const struct binary *binary;
	struct stat stat;
	char block[4096];
	void *memory;
	ssize_t len;

	if (geteuid() != 0) {
		printf("# skip: /proc/PID/map_files is root's\n");
		close(fd);
		close(self);
		skip();
	}
	while ((len = read(self, block, sizeof(block))) > 0)
		assert_int_equal(write(fd, block, (size_t)len), len);
	close(self);
	assert_int_equal(fstat(fd, &stat), 0);
	memory = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	record.mappings[0] = (struct space_mapping){
		.start = (uint64_t)(uintptr_t)memory,
		.end = (uint64_t)(uintptr_t)memory + 8192,
		.file = { stat.st_ino, 1,
			  stat.st_mtim.tv_sec * CLOCK_NS_PER_S + stat.st_mtim.tv_nsec },
	};
	take(fixture, &record);
	binary = process_of(fixture, (uint32_t)getpid())->space->mappings[0].binary;
	assert_string_equal(binary->path, "/memfd:program");
	assert_true(binary->elf->build_id[0] != '\0');
	munmap(memory, 8192);
}

static void proc_is_read_where_the_kernel_asks_for_it(void **state)
{
	struct space_record record = { .head = head_of(1, 5),
				       .parts = 1,
				       .space_flags = SPACE_READ_PROC };
	uint64_t address = (uint64_t)(uintptr_t)proc_is_read_where_the_kernel_asks_for_it;
	struct fixture *fixture = *state;
	struct proc_stat_line {
		char text[1024];
	} line;
	const struct mapping *mapping;
	char *at;
	FILE *file = fopen("/proc/self/stat", "r");

	/* Our own name and start, so that we are found to be the image. */
	assert_non_null(fgets(line.text, sizeof(line.text), file));
	fclose(file);
	record.head = head_of((uint32_t)getpid(), 5);
	at = strrchr(line.text, ')');
	memcpy(record.head.process_name, strchr(line.text, '(') + 1,
	       (size_t)(at - strchr(line.text, '(') - 1));
	for (int field = 3; field <= 22; field++)
		at = strchr(at + 1, ' ');
	record.head.process_start_ns = strtoull(at, NULL, 10) * 10000000;
	take(fixture, &record);
	assert_int_equal(fixture->put, 1);
	assert_true(fixture->put_first.start < fixture->put_first.end);
	assert_true(fixture->put_first.file.inode != 0);
	assert_true(fixture->put_first.file.changed_ns != 0);
	mapping = space_find(locate(fixture, &record.head, &address, 1), address);
	assert_non_null(mapping->binary->elf);
}

static void budget_bounds_the_work_and_counts_what_it_forbids(void **state)
{
	struct space_record record = { .head = head_of((uint32_t)getpid(), 5), .parts = 1 };
	struct fixture *fixture = *state;
	int64_t before = metric_get(&procs_reads_put_off);

	own_mappings(&record);
	assert_true(proc_budget_allows(&fixture->tracker.budget, 1));
	proc_budget_spend(&fixture->tracker.budget, 2 * PROC_BUDGET_BURST_NS);
	take(fixture, &record);
	assert_int_equal(metric_get(&procs_reads_put_off) - before, record.count);
	assert_false(process_of(fixture, (uint32_t)getpid())->space->mappings[0].binary->opened);
	assert_false(proc_budget_allows(&fixture->tracker.budget, 9 * CLOCK_NS_PER_S));
	assert_true(proc_budget_allows(&fixture->tracker.budget, 11 * CLOCK_NS_PER_S));
	proc_budget_spend(&fixture->tracker.budget, 2 * PROC_BUDGET_BURST_NS);
	/* However long the rest was, no more than the burst is saved up. */
	assert_true(proc_budget_allows(&fixture->tracker.budget, 9000 * CLOCK_NS_PER_S));
	assert_in_range(fixture->tracker.budget.left_ns, 1, PROC_BUDGET_BURST_NS);
}

/* When our own process started, as samples say it. */
static uint64_t own_start_ns(void)
{
	FILE *file = fopen("/proc/self/stat", "r");
	struct proc_stat stat;
	char text[1024];
	size_t len = fread(text, 1, sizeof(text), file);

	fclose(file);
	assert_true(proc_stat_parse(slice_from(text, len), &stat));
	return stat.start_ticks * PROC_STAT_NS_PER_TICK;
}

static void process_that_renames_itself_is_described_by_its_new_name(void **state)
{
	struct record_head head = head_of((uint32_t)getpid(), 5);
	struct fixture *fixture = *state;
	struct process *process;

	head.process_start_ns = own_start_ns();
	memcpy(head.process_name, "before", 7);
	assert_null(locate(fixture, &head, NULL, 0));
	process = tracker_process(&fixture->tracker, tracker_get(&fixture->tracker, &head, 1));
	assert_null(process->executable); /* /proc shows another name: perhaps another program */
	assert_int_equal(prctl(PR_GET_NAME, head.process_name), 0);
	assert_null(locate(fixture, &head, NULL, 0));
	assert_non_null(process->executable);
	assert_non_null(process->cgroups);
}

/* Samples of one CPU wait there while those of another arrive. */
static void late_sample_does_not_take_the_new_name_back(void **state)
{
	struct record_head head = head_of(NOBODY, 10), late = head_of(NOBODY, 5);
	struct fixture *fixture = *state;
	struct process *process;

	memcpy(head.process_name, "after", 6);
	memcpy(late.process_name, "before", 7);
	process = tracker_process(&fixture->tracker, tracker_get(&fixture->tracker, &head, 20));
	assert_ptr_equal(process, tracker_process(&fixture->tracker,
						  tracker_get(&fixture->tracker, &late, 21)));
	assert_string_equal(process->name, "after");
	assert_int_equal(process->seen_at_ns, 21);
}

static void lists_are_bounded_until_a_sweep(void **state)
{
	struct space_record record = { .parts = 1, .count = SPACE_PART_MAPPINGS };
	struct fixture *fixture = *state;
	struct tracker *tracker = &fixture->tracker;
	bool taken = true;
	uint32_t round = 0;

	proc_budget_allows(&tracker->budget, 1);
	proc_budget_spend(&tracker->budget, 1ll << 40); /* nothing is opened */
	for (; taken; round++) {
		for (uint64_t i = 0; i < record.count; i++)
			record.mappings[i] = (struct space_mapping){
				.start = (round * 64ull + i) << 12,
				.end = (round * 64ull + i + 1) << 12,
				.file = { .inode = 1 },
			};
		record.head = head_of(NOBODY + round % 100, round);
		taken = tracker_take_space(tracker, &record, sizeof(record), 1);
	}
	assert_in_range(tracker->spaces.bytes, TRACKER_BYTES_MAX, TRACKER_BYTES_MAX + 65536);
	tracker_sweep(tracker, 2);
	assert_true(tracker_take_space(tracker, &record, sizeof(record), 3));
	assert_true(tracker->spaces.bytes < TRACKER_BYTES_MAX / 8); /* 100 images, 200 lists */
}

/* What a naive model remembers of a counted stack: which version of the mappings it fell into. */
struct expected {
	uint32_t process, space;
	uint64_t inode;
};

#define MODEL_PROCESSES 5
#define MODEL_WINDOW 200

/* One list of 1 to 3 parts whose first mapping's inode is the version; sometimes a part is lost. */
static bool send_version(struct fixture *fixture, uint32_t tgid, uint64_t version, uint64_t at_ns)
{
	uint16_t parts = (uint16_t)(1 + rand() % 3), lost = (uint16_t)(rand() % 8);

	for (uint16_t part = 0; part < parts; part++) {
		struct space_record record = {
			.head = head_of(tgid, at_ns), .part = part, .parts = parts, .count = 1
		};

		record.head.cpu = tgid % 3;
		record.mappings[0] = (struct space_mapping){
			.start = (part + 1ull) << 20,
			.end = ((part + 1ull) << 20) + 4096,
			.file = { .inode = version },
		};
		if (part != lost)
			take(fixture, &record);
	}
	return lost >= parts;
}

/* The lists of one process that late samples may be of, the last one first. */
struct versions {
	struct {
		uint64_t inode, since;
	} of[PROCESS_PAST_MAX + 1];
	size_t count;
};

static void add_version(struct versions *versions, uint64_t inode, uint64_t since)
{
	memmove(versions->of + 1, versions->of, PROCESS_PAST_MAX * sizeof(versions->of[0]));
	versions->of[0].inode = inode;
	versions->of[0].since = since;
	versions->count += versions->count <= PROCESS_PAST_MAX;
}

/* A time: now, or just before one of the lists came. Sets *ret_inode to the list that held then. */
static uint64_t pick_time(const struct versions *versions, uint64_t now, uint64_t *ret_inode)
{
	size_t i = (size_t)rand() % (versions->count + 1);

	if (rand() % 4 || i == versions->count) {
		*ret_inode = versions->count ? versions->of[0].inode : 0;
		return now;
	}
	*ret_inode = i + 1 < versions->count ? versions->of[i + 1].inode : versions->of[i].inode;
	return versions->of[i].since - 1;
}

/*
 * Random changes of mappings, with samples in between of which some come late, over several
 * windows: at the window's end each stack still means what it meant when it was taken.
 */
static void stacks_keep_the_mappings_of_their_time(void **state)
{
	struct versions versions[MODEL_PROCESSES] = { 0 };
	struct fixture *fixture = *state;
	struct tracker *tracker = &fixture->tracker;
	struct expected expected[MODEL_WINDOW];
	uint64_t next = 1, now = 100;

	srand(2);
	proc_budget_allows(&tracker->budget, 1);
	proc_budget_spend(&tracker->budget, 1ll << 40);
	for (int window = 0; window < 50; window++) {
		for (int i = 0; i < MODEL_WINDOW; i++, now += 10) {
			uint32_t which = (uint32_t)rand() % MODEL_PROCESSES;
			struct record_head head;
			uint64_t at_ns;

			if (rand() % 3 == 0 || !versions[which].count) {
				if (send_version(fixture, NOBODY + which, next, now))
					add_version(&versions[which], next, now);
				next++;
			}
			at_ns = pick_time(&versions[which], now, &expected[i].inode);
			head = head_of(NOBODY + which, at_ns);
			expected[i].process = tracker_get(tracker, &head, 1);
			expected[i].space =
				tracker_space_at(tracker, expected[i].process, (int64_t)at_ns);
		}
		for (int i = 0; i < MODEL_WINDOW; i++) {
			const struct space *space =
				tracker_space(tracker, expected[i].process, expected[i].space);
			const struct mapping *mapping = space_find(space, 1ull << 20);

			if (expected[i].inode) /* else it got the first list that came */
				assert_int_equal(mapping->binary->key.inode, expected[i].inode);
		}
		tracker_sweep(tracker, 2);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_of_a_living_process_are_opened_at_once),
		TEST(tables_of_a_process_are_wanted_with_its_first_sample),
		TEST(news_that_were_not_taken_come_again),
		TEST(ended_process_gets_its_files_from_the_next_that_maps_them),
		TEST(what_could_not_be_opened_is_tried_again),
		TEST(other_files_in_the_place_are_not_taken),
		TEST(memory_files_and_deleted_ones_are_opened),
		TEST(proc_is_read_where_the_kernel_asks_for_it),
		TEST(budget_bounds_the_work_and_counts_what_it_forbids),
		TEST(process_that_renames_itself_is_described_by_its_new_name),
		TEST(late_sample_does_not_take_the_new_name_back),
		TEST(lists_are_bounded_until_a_sweep),
		TEST(stacks_keep_the_mappings_of_their_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
