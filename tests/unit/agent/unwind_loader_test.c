/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader against real BPF maps, with this host's own binaries. What the BPF unwinder does is
 * done here in C: reading the maps, and noting when a table was used. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/unwind/loader.h"
#include "agent/unwind/row_rule.h"
#include "agent/unwind/table_build.h"
#include "agent/unwind/table_chunks.h"
#include "agent/unwind/unwind_metrics.h"
#include "base/clock.h"
#include "base/mem.h"

#define WAIT_NS (100 * CLOCK_NS_PER_S)
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define BASH "/bin/bash"

static int chunks_fd = -1, tables_fd = -1;
static char folder[64];

static int make_chunks_map(void)
{
	struct bpf_map_create_opts inner = { .sz = sizeof(inner), .map_flags = BPF_F_MMAPABLE };
	struct bpf_map_create_opts outer = { .sz = sizeof(outer) };
	int inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, TABLE_CHUNK_BYTES, 1, &inner);
	int fd;

	if (inner_fd < 0)
		return -1;
	outer.inner_map_fd = (uint32_t)inner_fd;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "chunks", 4, 4, TABLE_CHUNKS_MAX, &outer);
	close(inner_fd);
	return fd;
}

static int set_up(void **state)
{
	(void)state;
	chunks_fd = make_chunks_map();
	tables_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "tables", sizeof(struct file_key),
				   sizeof(struct binary_tables), TABLES_MAX, NULL);
	strcpy(folder, "/tmp/firn-unwind-loader-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	close(chunks_fd);
	close(tables_fd);
	umount2(folder, MNT_DETACH);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static bool cannot_run(void)
{
	if (chunks_fd >= 0 && tables_fd >= 0)
		return false;
	print_message("# skip: BPF maps cannot be made here (needs root)\n");
	return true;
}

#define NEEDS_MAPS()                                                                               \
	do {                                                                                       \
		(void)state;                                                                       \
		if (cannot_run())                                                                  \
			skip();                                                                    \
	} while (0)

static struct unwind_loader *start(struct unwind_loader_options options)
{
	struct unwind_loader *loader;
	struct err err;

	options.chunks_fd = chunks_fd;
	options.first_chunk_fd = -1;
	options.tables_fd = tables_fd;
	if (unwind_loader_start(&options, &loader, &err))
		fail_msg("%s", err.message);
	return loader;
}

static struct file_key key_of(uint64_t number)
{
	return (struct file_key){ .inode = number, .device = 1, .changed_ns = 1 };
}

static bool want(struct unwind_loader *loader, struct file_key key, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return unwind_loader_want(loader, &key, fd, NULL, path);
}

static struct unwind_binary describe(struct unwind_loader *loader, struct file_key key)
{
	struct unwind_binary *all = mem_new_array(struct unwind_binary, UNWIND_BINARIES_MAX);
	size_t count = unwind_loader_describe(loader, all, UNWIND_BINARIES_MAX);
	struct unwind_binary found = { .state = UNWIND_STATES };

	for (size_t i = 0; i < count; i++)
		if (!memcmp(&all[i].key, &key, sizeof(key)))
			found = all[i];
	free(all);
	return found;
}

static enum unwind_state state_of(struct unwind_loader *loader, uint64_t number)
{
	return describe(loader, key_of(number)).state;
}

/* ---- what the BPF unwinder reads ---- */

struct reader {
	const uint8_t *chunks[TABLE_CHUNKS_MAX];
};

static void map_chunks(struct reader *reader)
{
	memset(reader, 0, sizeof(*reader));
	for (uint32_t i = 0; i < TABLE_CHUNKS_MAX; i++) {
		uint32_t id;
		void *bytes;
		int fd;

		if (bpf_map_lookup_elem(chunks_fd, &i, &id))
			continue;
		fd = bpf_map_get_fd_by_id(id);
		assert_true(fd >= 0);
		bytes = mmap(NULL, TABLE_CHUNK_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		assert_ptr_not_equal(bytes, MAP_FAILED);
		reader->chunks[i] = bytes;
		close(fd);
	}
}

static void unmap_chunks(struct reader *reader)
{
	for (uint32_t i = 0; i < TABLE_CHUNKS_MAX; i++)
		if (reader->chunks[i])
			munmap((void *)reader->chunks[i], TABLE_CHUNK_BYTES);
}

/* The last of these rows that is not behind the offset, or `before`. */
static uint32_t last_row(const uint32_t *rows, uint32_t count, uint64_t offset, uint32_t before)
{
	for (uint32_t i = 0; i < count && TABLE_ROW_OFFSET(rows[i]) <= offset; i++)
		before = rows[i];
	return before;
}

static bool find_rule(const struct reader *reader, const struct binary_tables *tables,
		      uint64_t offset, struct unwind_rule *ret)
{
	for (uint32_t i = 0; i < tables->segments_count; i++) {
		const struct table_segment *segment = &tables->segments[i];
		const uint8_t *chunk = reader->chunks[segment->chunk];
		const uint32_t *words = (const uint32_t *)(chunk + segment->lines_at);
		uint64_t at = offset - ((uint64_t)segment->first_block << TABLE_BLOCK_SHIFT);
		uint64_t in_bucket = at & ((1u << segment->bucket_shift) - 1);
		const uint32_t *line = words + (at >> segment->bucket_shift) * TABLE_LINE_WORDS;
		uint32_t far, row;

		if (at >> TABLE_BLOCK_SHIFT >= segment->blocks)
			continue;
		far = TABLE_ROW_OFFSET(line[0]);
		row = last_row(line + 1, far ? TABLE_LINE_ROWS_MAX - 1 : TABLE_LINE_ROWS_MAX,
			       in_bucket, line[0]);
		row = last_row(words + (line[TABLE_LINE_ROWS_MAX] & TABLE_RULE_MASK), far,
			       in_bucket, row);
		*ret = row_rule_unpack(TABLE_ROW_RULE(row));
		if (row & TABLE_RULE_LISTED)
			*ret = ((const struct unwind_rule
					 *)(chunk + segment->rules_at))[TABLE_RULE_INDEX(row)];
		return true;
	}
	return false;
}

/* ---- what the builder says ---- */

struct built {
	int fd;
	struct table_file file;
	struct table_image images[TABLE_SEGMENTS_MAX];
	uint64_t binary_bytes;
};

static void build(const char *path, struct built *ret)
{
	int binary_fd = open(path, O_RDONLY | O_CLOEXEC);
	struct table_input input = { .fd = binary_fd, .name = path };
	struct table_limits limits = { 0 };
	struct table_stats stats;
	struct stat stat_ret;
	struct err err;

	assert_int_equal(fstat(binary_fd, &stat_ret), 0);
	ret->binary_bytes = (uint64_t)stat_ret.st_size;
	ret->fd = memfd_create("built", MFD_CLOEXEC);
	if (table_build(&input, ret->fd, &limits, &stats, &err) ||
	    table_file_open(ret->fd, path, &ret->file, &err))
		fail_msg("%s", err.message);
	for (uint32_t i = 0; i < ret->file.header.segments_count; i++)
		assert_int_equal(table_image_load(&ret->file, i, &ret->images[i], NULL), 0);
	close(binary_fd);
}

static void built_free(struct built *built)
{
	for (uint32_t i = 0; i < built->file.header.segments_count; i++)
		table_image_free(&built->images[i]);
	close(built->fd);
}

static bool built_rule(const struct built *built, uint64_t offset, struct unwind_rule *ret)
{
	for (uint32_t i = 0; i < built->file.header.segments_count; i++)
		if (table_image_find(&built->images[i], offset, ret))
			return true;
	return false;
}

static void assert_rules_equal(const struct reader *reader, struct file_key key,
			       const struct built *built, size_t probes)
{
	struct binary_tables tables;
	uint64_t offset = 0;
	size_t known = 0;

	assert_int_equal(bpf_map_lookup_elem(tables_fd, &key, &tables), 0);
	assert_int_equal(tables.segments_count, built->file.header.segments_count);
	for (size_t i = 0; i < probes; i++) {
		struct unwind_rule mine, theirs;
		bool is_found;

		offset = (offset + 0x9e3779b97f4a7c15ull) % built->binary_bytes;
		is_found = find_rule(reader, &tables, offset, &mine);
		assert_int_equal(is_found, built_rule(built, offset, &theirs));
		if (is_found && memcmp(&mine, &theirs, sizeof(mine)) != 0)
			fail_msg("other rule at offset %#llx", (unsigned long long)offset);
		known += is_found && mine.cfa != UNWIND_CFA_NONE;
	}
	assert_true(known > probes / 10);
}

static void assert_images_equal(const struct reader *reader, struct file_key key,
				const struct built *built)
{
	struct binary_tables tables;

	assert_int_equal(bpf_map_lookup_elem(tables_fd, &key, &tables), 0);
	for (uint32_t i = 0; i < tables.segments_count; i++)
		assert_memory_equal(reader->chunks[tables.segments[i].chunk] +
					    tables.segments[i].lines_at,
				    built->images[i].bytes, built->images[i].segment.image_bytes);
}

/* Notes a use, as the unwinder does in place. */
static void use(uint64_t number)
{
	struct file_key key = key_of(number);
	struct binary_tables tables;

	assert_int_equal(bpf_map_lookup_elem(tables_fd, &key, &tables), 0);
	tables.used_at_ns = (uint64_t)clock_monotonic_ns();
	assert_int_equal(bpf_map_update_elem(tables_fd, &key, &tables, BPF_EXIST), 0);
}

/* ---- tests ---- */

static void loaded_tables_are_what_was_built(void **state)
{
	static const char *const paths[] = { BASH, LIBC, "/proc/self/exe" };
	struct unwind_loader *loader;
	struct built built;
	struct reader reader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ 0 });
	for (size_t i = 0; i < 3; i++)
		assert_true(want(loader, key_of(i), paths[i]));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	map_chunks(&reader);
	for (size_t i = 0; i < 3; i++) {
		struct unwind_binary binary = describe(loader, key_of(i));

		assert_int_equal(binary.state, UNWIND_LOADED);
		assert_string_equal(binary.path, paths[i]);
		assert_non_null(strstr(binary.sources, ".eh_frame"));
		assert_true(binary.rows > 0 && binary.bytes > 4 * binary.rows);
		assert_true(binary.build_ns > 0 && !binary.cached);
		build(paths[i], &built);
		assert_images_equal(&reader, key_of(i), &built);
		assert_rules_equal(&reader, key_of(i), &built, 200000);
		built_free(&built);
	}
	unmap_chunks(&reader);
	unwind_loader_free(loader);
}

static void the_vdso_is_loaded_at_the_start(void **state)
{
	struct unwind_loader *loader;
	struct binary_tables tables;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ 0 });
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &FILE_KEY_VDSO, &tables), 0);
	assert_int_equal(tables.segments_count, 1);
	assert_in_range(tables.segments[0].first_block + tables.segments[0].blocks, 1, 64);
	assert_true(describe(loader, FILE_KEY_VDSO).build_id[0] != '\0');
	unwind_loader_free(loader);
}

static void files_without_unwind_information_get_an_empty_entry(void **state)
{
	struct file_key key = key_of(1);
	struct binary_tables tables;
	struct unwind_loader *loader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ 0 });
	assert_false(unwind_loader_is_known(loader, &key));
	assert_true(want(loader, key, "/etc/passwd"));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_true(unwind_loader_is_known(loader, &key));
	assert_int_equal(state_of(loader, 1), UNWIND_EMPTY);
	assert_true(describe(loader, key).reason[0] != '\0');
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &key, &tables), 0);
	assert_int_equal(tables.segments_count, 0);
	unwind_loader_free(loader);
}

static void load_one(const char *path, struct unwind_binary *ret)
{
	struct unwind_loader *loader =
		start((struct unwind_loader_options){ .cache_path = folder });
	struct reader reader;
	struct built built;

	assert_true(want(loader, key_of(1), path));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	*ret = describe(loader, key_of(1));
	build(path, &built);
	map_chunks(&reader);
	assert_images_equal(&reader, key_of(1), &built);
	unmap_chunks(&reader);
	built_free(&built);
	unwind_loader_free(loader);
}

static void cached_path(char path[PATH_MAX])
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.table", folder);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
	globfree(&found);
}

static void a_second_agent_finds_the_table_in_the_cache(void **state)
{
	struct unwind_binary binary;

	NEEDS_MAPS();
	load_one(BASH, &binary);
	assert_int_equal(binary.state, UNWIND_LOADED);
	assert_false(binary.cached);
	load_one(BASH, &binary);
	assert_int_equal(binary.state, UNWIND_LOADED);
	assert_true(binary.cached);
	assert_int_equal(binary.build_ns, 0);
}

static void damaged_files_of_the_cache_are_built_anew(void **state)
{
	int64_t damaged = metric_get(&unwind_cache_damaged);
	struct unwind_binary binary;
	char path[PATH_MAX];
	int fd;

	NEEDS_MAPS();
	load_one(BASH, &binary);
	cached_path(path);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "damage", 6, TABLE_FILE_ALIGN + 1000), 6);
	close(fd);
	load_one(BASH, &binary);
	assert_int_equal(binary.state, UNWIND_LOADED);
	assert_false(binary.cached);
	assert_int_equal(metric_get(&unwind_cache_damaged), damaged + 1);
	cached_path(path);
	assert_int_equal(truncate(path, 100), 0);
	load_one(BASH, &binary);
	assert_false(binary.cached);
	load_one(BASH, &binary);
	assert_true(binary.cached);
}

static void a_full_disk_costs_no_table(void **state)
{
	int64_t failed = metric_get(&unwind_cache_failed);
	struct unwind_binary binary;
	glob_t found;
	char pattern[80];

	NEEDS_MAPS();
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", folder, "tmpfs", 0, "size=32k,mode=0700")) {
		print_message("# skip: no small disk can be mounted here\n");
		skip();
	}
	load_one(BASH, &binary);
	assert_int_equal(binary.state, UNWIND_LOADED);
	assert_false(binary.cached);
	assert_int_equal(metric_get(&unwind_cache_failed), failed + 1);
	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	assert_int_equal(glob(pattern, GLOB_PERIOD, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 2); /* . and .. */
	globfree(&found);
}

static void without_a_cache_folder_it_works_all_the_same(void **state)
{
	struct unwind_loader *loader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ .cache_path = "/proc/no/such/folder" });
	assert_true(want(loader, key_of(1), BASH));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(state_of(loader, 1), UNWIND_LOADED);
	unwind_loader_free(loader);
}

/* How many tables of this file one chunk holds, with the vdso's. */
static uint32_t tables_in_a_chunk(const char *path)
{
	struct unwind_loader *loader = start((struct unwind_loader_options){ 0 });
	uint64_t vdso_bytes, bytes;

	assert_true(want(loader, key_of(1), path));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	vdso_bytes = describe(loader, FILE_KEY_VDSO).bytes;
	bytes = describe(loader, key_of(1)).bytes;
	unwind_loader_free(loader);
	assert_true(bytes > 0 && bytes < TABLE_CHUNK_BYTES / 4);
	return (uint32_t)((TABLE_CHUNK_BYTES - vdso_bytes) / bytes);
}

static void fill(struct unwind_loader *loader, uint64_t first, uint64_t count, const char *path)
{
	for (uint64_t i = first; i < first + count; i++) {
		assert_true(want(loader, key_of(i), path));
		assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	}
}

static void the_tables_unused_for_longest_make_room(void **state)
{
	struct unwind_loader *loader;
	struct file_key gone = key_of(2);
	struct binary_tables tables;
	struct reader reader;
	struct built built;
	uint32_t room;

	NEEDS_MAPS();
	room = tables_in_a_chunk(BASH);
	loader = start((struct unwind_loader_options){
		.cache_path = folder, .arena_bytes = TABLE_CHUNK_BYTES, .keep_ns = 1 });
	fill(loader, 1, room, BASH);
	use(1);
	assert_true(unwind_loader_is_known(loader, &gone));
	fill(loader, 100, 1, BASH);
	assert_int_equal(state_of(loader, 1), UNWIND_LOADED);
	assert_int_equal(state_of(loader, 2), UNWIND_EVICTED);
	assert_int_equal(state_of(loader, 100), UNWIND_LOADED);
	assert_false(unwind_loader_is_known(loader, &gone));
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &gone, &tables), -ENOENT);
	/* It comes back without its file, out of the cache. */
	assert_true(unwind_loader_want(loader, &gone, -1, NULL, BASH));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(state_of(loader, 2), UNWIND_LOADED);
	assert_int_equal(describe(loader, gone).loads, 2);
	assert_int_equal(state_of(loader, 3), UNWIND_EVICTED);
	/* What is loaded now is whole, the vdso too. */
	build(BASH, &built);
	map_chunks(&reader);
	assert_images_equal(&reader, key_of(1), &built);
	assert_images_equal(&reader, key_of(2), &built);
	assert_images_equal(&reader, key_of(100), &built);
	assert_images_equal(&reader, key_of(room), &built);
	assert_int_equal(describe(loader, FILE_KEY_VDSO).state, UNWIND_LOADED);
	unmap_chunks(&reader);
	built_free(&built);
	unwind_loader_free(loader);
}

static void tables_in_use_stay_and_the_newcomer_waits(void **state)
{
	int64_t evictions = metric_get(&unwind_evictions);
	int64_t no_room = metric_get(&unwind_refused_room);
	struct file_key late = key_of(100);
	struct unwind_loader *loader;
	uint32_t room;

	NEEDS_MAPS();
	room = tables_in_a_chunk(BASH);
	loader = start((struct unwind_loader_options){ .cache_path = folder,
						       .arena_bytes = TABLE_CHUNK_BYTES,
						       .keep_ns = 1000 * CLOCK_NS_PER_S });
	fill(loader, 1, room, BASH);
	fill(loader, 100, 1, BASH);
	assert_int_equal(state_of(loader, 100), UNWIND_FAILED);
	assert_non_null(strstr(describe(loader, late).reason, "no room"));
	assert_true(unwind_loader_is_known(loader, &late)); /* for now */
	assert_int_equal(metric_get(&unwind_evictions), evictions);
	assert_int_equal(metric_get(&unwind_refused_room), no_room + 1);
	for (uint64_t i = 1; i <= room; i++)
		assert_int_equal(state_of(loader, i), UNWIND_LOADED);
	unwind_loader_free(loader);
}

/* Whoever runs now comes before what was unused for a second, though not for ten. */
static void a_newcomer_in_use_gets_room_soon(void **state)
{
	struct unwind_loader *loader;
	int64_t deadline_ns;
	uint32_t room;

	NEEDS_MAPS();
	room = tables_in_a_chunk(BASH);
	loader = start((struct unwind_loader_options){ .cache_path = folder,
						       .arena_bytes = TABLE_CHUNK_BYTES,
						       .keep_ns = 10 * CLOCK_NS_PER_S });
	fill(loader, 1, room, BASH);
	fill(loader, 200, 1, BASH);
	deadline_ns = clock_monotonic_ns() + WAIT_NS;
	while (state_of(loader, 200) != UNWIND_LOADED && clock_monotonic_ns() < deadline_ns) {
		if (state_of(loader, 200) == UNWIND_FAILED)
			use(200); /* as the unwinder does when it misses the table */
		sched_yield();
	}
	assert_int_equal(state_of(loader, 200), UNWIND_LOADED);
	assert_true(clock_monotonic_ns() < deadline_ns);
	unwind_loader_free(loader);
}

/* An ELF file of a machine that we know nothing of. */
static void make_foreign(char path[PATH_MAX])
{
	uint16_t machine = EM_S390;
	char command[2 * PATH_MAX];
	int fd;

	snprintf(path, PATH_MAX, "%s/foreign", folder);
	snprintf(command, sizeof(command), "cp %s %s", BASH, path);
	assert_int_equal(system(command), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine)),
			 sizeof(machine));
	close(fd);
}

static void a_table_that_cannot_be_had_says_so(void **state)
{
	struct file_key foreign = key_of(1), closed = key_of(2);
	struct strbuf metrics = { 0 };
	struct unwind_loader *loader;
	struct binary_tables tables;
	char path[PATH_MAX];

	NEEDS_MAPS();
	make_foreign(path);
	loader = start((struct unwind_loader_options){ 0 });
	assert_true(want(loader, foreign, path));
	unwind_loader_cannot_open(loader, &closed, "/gone/lib\"x.so");
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(state_of(loader, 1), UNWIND_FAILED);
	assert_int_equal(state_of(loader, 2), UNWIND_FAILED);
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &foreign, &tables), 0);
	assert_int_equal(tables.missing, TABLE_MISSING_FAILED);
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &closed, &tables), 0);
	assert_int_equal(tables.missing, TABLE_MISSING_FAILED);
	assert_true(unwind_loader_is_known(loader, &foreign)); /* it stays what it is */
	metrics_render(&metrics);
	assert_non_null(strstr(strbuf_text(&metrics), "firn_agent_unwind_missing{path=\"/tmp/"));
	assert_non_null(strstr(strbuf_text(&metrics), "{path=\"/gone/lib\\\"x.so\",reason=\""));
	/* A file that can be opened in the end gets its table. */
	assert_true(want(loader, closed, BASH));
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(state_of(loader, 2), UNWIND_LOADED);
	assert_int_equal(bpf_map_lookup_elem(tables_fd, &closed, &tables), 0);
	assert_true(tables.segments_count > 0 && !tables.missing);
	strbuf_free(&metrics);
	unwind_loader_free(loader);
}

struct caller {
	struct unwind_loader *loader;
	pthread_t thread;
	uint64_t keys;
};

static void *call(void *data)
{
	struct caller *caller = data;
	struct unwind_binary binaries[8];

	for (uint64_t i = 1; i <= caller->keys; i++) {
		struct file_key key = key_of(i);
		int fd = open(i % 2 ? BASH : LIBC, O_RDONLY | O_CLOEXEC);

		unwind_loader_is_known(caller->loader, &key);
		unwind_loader_want(caller->loader, &key, fd, "ab", i % 2 ? BASH : LIBC);
		unwind_loader_describe(caller->loader, binaries, 8);
	}
	return NULL;
}

static void a_table_is_loaded_once_whoever_asks(void **state)
{
	struct unwind_loader *loader;
	struct caller callers[4];

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ .cache_path = folder });
	for (size_t i = 0; i < 4; i++) {
		callers[i] = (struct caller){ .loader = loader, .keys = 40 };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(callers[i].thread, NULL);
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	for (uint64_t i = 1; i <= 40; i++) {
		struct unwind_binary binary = describe(loader, key_of(i));

		assert_int_equal(binary.state, UNWIND_LOADED);
		assert_int_equal(binary.loads, 1);
		assert_int_equal(binary.cached, i > 2);
	}
	unwind_loader_free(loader);
}

/* ---- in which order ---- */

static int gate[2]; /* a pipe: a byte lets the loader's thread go on */

static void wait_at_gate(int signal)
{
	char byte;

	(void)signal;
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		continue;
}

static bool has_name(const char *tid, const char *name)
{
	char path[300], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	file = fopen(path, "re");
	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	return !strncmp(text, name, strlen(name));
}

/* Stops its thread, which waits for work and holds no lock. */
static void stop(struct unwind_loader *loader)
{
	struct sigaction action = { .sa_handler = wait_at_gate };
	DIR *tasks = opendir("/proc/self/task");
	int signalled = 0;
	struct dirent *task;

	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	while ((task = readdir(tasks)))
		if (has_name(task->d_name, "firn-unwind"))
			signalled += !tgkill(getpid(), atoi(task->d_name), SIGUSR1);
	closedir(tasks);
	assert_int_equal(signalled, 1);
}

static void let_go(struct unwind_loader *loader)
{
	assert_int_equal(write(gate[1], "", 1), 1);
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	close(gate[0]);
	close(gate[1]);
}

/* Tables of the same size are put one behind the other. */
static uint64_t place_of(uint64_t number)
{
	struct file_key key = key_of(number);
	struct binary_tables tables;

	assert_int_equal(bpf_map_lookup_elem(tables_fd, &key, &tables), 0);
	assert_true(tables.segments_count > 0);
	return (uint64_t)tables.segments[0].chunk << 32 | tables.segments[0].lines_at;
}

static bool hurry(struct unwind_loader *loader, uint64_t number)
{
	struct file_key key = key_of(number);

	return unwind_loader_hurry(loader, &key);
}

static void tables_that_stacks_wait_for_come_first(void **state)
{
	struct unwind_loader *loader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ .cache_path = folder });
	stop(loader);
	for (uint64_t i = 1; i <= 6; i++)
		assert_true(want(loader, key_of(i), BASH));
	assert_true(hurry(loader, 6));
	assert_true(hurry(loader, 4));
	assert_false(hurry(loader, 7)); /* nobody has asked for it */
	let_go(loader);
	assert_false(hurry(loader, 6));
	assert_true(place_of(4) < place_of(6));
	assert_true(place_of(6) < place_of(1));
	assert_true(place_of(1) < place_of(2));
	assert_true(place_of(3) < place_of(5));
	unwind_loader_free(loader);
}

static void the_first_one_is_not_overtaken_for_good(void **state)
{
	struct unwind_loader *loader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ .cache_path = folder });
	stop(loader);
	for (uint64_t i = 1; i <= 20; i++)
		assert_true(want(loader, key_of(i), BASH));
	for (uint64_t i = 3; i <= 20; i++)
		assert_true(hurry(loader, i));
	let_go(loader);
	assert_true(place_of(9) < place_of(1));
	assert_true(place_of(1) < place_of(10));
	assert_true(place_of(16) < place_of(2));
	assert_true(place_of(2) < place_of(17));
	unwind_loader_free(loader);
}

/* The largest library here, or NULL. */
static const char *large_binary(void)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
					     "/usr/lib/llvm-14/lib/libLLVM-14.so.1" };

	for (size_t i = 0; i < 2; i++)
		if (!access(paths[i], R_OK))
			return paths[i];
	return NULL;
}

static void it_stops_in_the_middle_of_a_build(void **state)
{
	int64_t files = metric_get(&unwind_refused_files);
	int64_t waiting = metric_get(&unwind_waiting);
	const char *large = large_binary();
	struct unwind_loader *loader;
	char pattern[80];
	glob_t found;

	NEEDS_MAPS();
	if (!large) {
		print_message("# skip: no large library (libLLVM-14) here\n");
		skip();
	}
	loader = start((struct unwind_loader_options){ .cache_path = folder });
	assert_true(want(loader, key_of(0), large));
	/* Asking is faster than loading: in the end too many files are open. */
	for (uint64_t i = 1; want(loader, key_of(i), BASH); i++)
		assert_true(i < UNWIND_BINARIES_MAX);
	assert_int_equal(metric_get(&unwind_refused_files), files + 1);
	unwind_loader_free(loader);
	assert_int_equal(metric_get(&unwind_waiting), waiting);
	snprintf(pattern, sizeof(pattern), "%s/.draft-*", folder);
	assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

static void old_binaries_are_forgotten_for_new_ones(void **state)
{
	struct file_key first = key_of(1), last = key_of(2 * UNWIND_BINARIES_MAX);
	struct unwind_binary *all;
	struct unwind_loader *loader;
	size_t count;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ 0 });
	for (uint64_t i = 1; i <= 2 * UNWIND_BINARIES_MAX; i++) {
		assert_true(want(loader, key_of(i), "/etc/passwd"));
		if (i % 200 == 0)
			assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	}
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	all = mem_new_array(struct unwind_binary, UNWIND_BINARIES_MAX);
	count = unwind_loader_describe(loader, all, UNWIND_BINARIES_MAX);
	assert_in_range(count, UNWIND_BINARIES_MAX / 2, UNWIND_BINARIES_MAX - 1);
	assert_false(unwind_loader_is_known(loader, &first));
	assert_true(unwind_loader_is_known(loader, &last));
	assert_int_equal(describe(loader, FILE_KEY_VDSO).state, UNWIND_LOADED);
	free(all);
	unwind_loader_free(loader);
}

static void files_that_are_not_open_are_refused_unless_cached(void **state)
{
	struct file_key key = key_of(1);
	struct unwind_loader *loader;

	NEEDS_MAPS();
	loader = start((struct unwind_loader_options){ .cache_path = folder });
	assert_false(unwind_loader_want(loader, &key, -1, "00", BASH));
	assert_false(unwind_loader_is_known(loader, &key));
	unwind_loader_free(loader);
}

static void without_maps_nothing_is_asked_for(void **state)
{
	struct unwind_loader_options options = { .chunks_fd = -1, .tables_fd = -1 };
	struct unwind_binary binary;
	struct unwind_loader *loader;
	struct file_key key = key_of(1);

	(void)state;
	assert_int_equal(unwind_loader_start(&options, &loader, NULL), 0);
	assert_true(unwind_loader_is_known(loader, &key));
	assert_false(want(loader, key, "/proc/self/exe"));
	assert_int_equal(unwind_loader_describe(loader, &binary, 1), 0);
	assert_true(unwind_loader_wait_idle(loader, WAIT_NS));
	unwind_loader_free(loader);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(loaded_tables_are_what_was_built),
		TEST(the_vdso_is_loaded_at_the_start),
		TEST(files_without_unwind_information_get_an_empty_entry),
		TEST(a_second_agent_finds_the_table_in_the_cache),
		TEST(damaged_files_of_the_cache_are_built_anew),
		TEST(without_a_cache_folder_it_works_all_the_same),
		TEST(the_tables_unused_for_longest_make_room),
		TEST(tables_in_use_stay_and_the_newcomer_waits),
		TEST(a_newcomer_in_use_gets_room_soon),
		TEST(a_table_that_cannot_be_had_says_so),
		TEST(a_table_is_loaded_once_whoever_asks),
		TEST(tables_that_stacks_wait_for_come_first),
		TEST(the_first_one_is_not_overtaken_for_good),
		TEST(it_stops_in_the_middle_of_a_build),
		TEST(old_binaries_are_forgotten_for_new_ones),
		TEST(files_that_are_not_open_are_refused_unless_cached),
		TEST(without_maps_nothing_is_asked_for),
		TEST(a_full_disk_costs_no_table), /* the last: it leaves the mount namespace */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
