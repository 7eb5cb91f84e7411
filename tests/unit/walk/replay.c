/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/walk/replay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/bpf/space.h"
#include "agent/unwind/table_build.h"
#include "base/mem.h"
#include "codec/elf/elf.h"
#include "codec/process/procmaps.h"

#define MAPPINGS_MAX 256
#define FILES_MAX 64
#define PATH_BYTES 256

struct replay_file {
	struct file_key key;
	struct binary_tables tables;
};

struct replay {
	pid_t pid;
	struct space_mapping mappings[MAPPINGS_MAX];
	char paths[MAPPINGS_MAX][PATH_BYTES];
	size_t mappings_count;
	struct space_head head;
	struct space_part parts[SPACE_PARTS_MAX];
	struct replay_file files[FILES_MAX];
	size_t files_count;
	uint8_t *chunks[TABLE_CHUNKS_MAX];
	uint32_t chunks_count;
	uint32_t version; /* of mappings and tables, as in space_versions */
	struct walk *walks[REPLAY_WALKERS];
};

/* What the unwinder's seven functions look at. */
static struct replay *now;
static const struct recording *now_recording;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Code is the same for the whole run, so it is not part of a recording. */
static long read_code(void *to, size_t bytes, uint64_t address)
{
	struct iovec local = { to, bytes }, remote = { (void *)address, bytes };

	return process_vm_readv(now->pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes ? 0 : -EFAULT;
}

static inline long walk_read(void *to, __u32 bytes, __u64 address)
{
	uint64_t at = address - now_recording->stack_start;

	if (address < now_recording->stack_start || at > now_recording->stack_bytes ||
	    bytes > now_recording->stack_bytes - at)
		return read_code(to, bytes, address);
	memcpy(to, now_recording->stack + at, bytes);
	return 0;
}

static inline const struct space_head *walk_space(__u32 tgid)
{
	return tgid == (__u32)now->pid ? &now->head : NULL;
}

static inline const struct space_part *walk_space_part(const struct space_part_key *key)
{
	return key->part < now->head.parts ? &now->parts[key->part] : NULL;
}

static inline const struct binary_tables *walk_tables(const struct file_key *file, __u64 now_ns)
{
	(void)now_ns;
	for (size_t i = 0; i < now->files_count; i++)
		if (!memcmp(&now->files[i].key, file, sizeof(*file)))
			return &now->files[i].tables;
	return NULL;
}

static inline const __u8 *walk_chunk(const struct table_segment *segment, __u64 into)
{
	(void)into;
	return segment->chunk < now->chunks_count ? now->chunks[segment->chunk] : NULL;
}

/* struct user_regs_struct begins as struct pt_regs does. */
static inline long walk_read_registers(__u64 *to)
{
	memcpy(to, &now_recording->registers, 21 * sizeof(*to));
	return 0;
}

static inline const struct code_line *walk_code_line(const struct code_line_key *key)
{
	(void)key;
	return NULL;
}

static inline void walk_copy(void *to, __u32 bytes, const void *from)
{
	memcpy(to, from, bytes);
}

/* The process's list of mappings is always there. */
struct walk;
static inline bool walk_ask(struct walk *walk)
{
	(void)walk;
	return false;
}

#include "agent/bpf/beam.h"
#include "agent/bpf/jvm.h"
#include "agent/bpf/lua.h"
#include "agent/bpf/v8.h"

static bool place_segment(struct replay *replay, const struct table_file *file, uint32_t segment,
			  struct table_segment *ret)
{
	struct table_image image;
	struct err err;
	uint8_t *chunk;

	if (replay->chunks_count >= TABLE_CHUNKS_MAX ||
	    table_image_load(file, segment, &image, &err))
		return false;
	chunk = mem_calloc(1, TABLE_CHUNK_BYTES);
	memcpy(chunk, image.bytes, image.segment.image_bytes);
	*ret = table_file_place(&image.segment, replay->chunks_count, 0);
	replay->chunks[replay->chunks_count++] = chunk;
	table_image_free(&image);
	return true;
}

static void load_tables(struct replay *replay, const struct table_input *input,
			const struct file_key *key)
{
	int fd = memfd_create("table", MFD_CLOEXEC);
	struct replay_file *file;
	struct table_file table;
	struct table_stats stats;
	struct err err;

	assert(fd >= 0 && replay->files_count < FILES_MAX);
	file = &replay->files[replay->files_count++];
	file->key = *key;
	if (table_build(input, fd, &(struct table_limits){ 0 }, &stats, &err) ||
	    table_file_open(fd, input->name, &table, &err)) {
		printf("# %s: %s\n", input->name, err.message);
	} else {
		for (uint32_t i = 0; i < table.header.segments_count; i++)
			if (place_segment(replay, &table, i, &file->tables.segments[i]))
				file->tables.segments_count = i + 1;
	}
	close(fd);
}

static bool has_tables(const struct replay *replay, const struct file_key *key)
{
	for (size_t i = 0; i < replay->files_count; i++)
		if (!memcmp(&replay->files[i].key, key, sizeof(*key)))
			return true;
	return false;
}

static void load_vdso(struct replay *replay, uint64_t bytes)
{
	struct table_input input = { .fd = -1, .name = "[vdso]" };
	struct file_key key = FILE_KEY_VDSO;

	input.image = slice_from((const void *)getauxval(AT_SYSINFO_EHDR), bytes);
	if (!has_tables(replay, &key))
		load_tables(replay, &input, &key);
}

static void load_file(struct replay *replay, const char *path, const struct file_key *key)
{
	struct table_input input = { .name = path };

	if (has_tables(replay, key))
		return;
	input.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(input.fd >= 0);
	load_tables(replay, &input, key);
	close(input.fd);
}

static void add_mapping(struct replay *replay, const struct procmaps_line *line)
{
	size_t at = replay->mappings_count;
	struct space_mapping *mapping = &replay->mappings[at];

	if (!line->executable || at >= MAPPINGS_MAX)
		return;
	*mapping = (struct space_mapping){ .start = line->start, .end = line->end };
	snprintf(replay->paths[at], PATH_BYTES, "%.*s", SLICE_FMT(line->path));
	replay->mappings_count++;
	if (slice_is(line->path, "[vdso]")) {
		mapping->file = FILE_KEY_VDSO;
		load_vdso(replay, line->end - line->start);
	} else if (line->inode) {
		mapping->offset = line->offset;
		mapping->file.inode = line->inode;
		mapping->file.device = line->dev_major << 20 | line->dev_minor;
		load_file(replay, replay->paths[at], &mapping->file);
	}
}

static void make_parts(struct replay *replay)
{
	replay->head.parts = 0;
	for (size_t i = 0; i < replay->mappings_count; i++) {
		struct space_part *part = &replay->parts[i / SPACE_PART_MAPPINGS];

		if (i % SPACE_PART_MAPPINGS == 0) {
			replay->head.firsts[replay->head.parts++] = replay->mappings[i].start;
			part->count = 0;
		}
		part->mappings[part->count++] = replay->mappings[i];
	}
}

void replay_read_mappings(struct replay *replay)
{
	struct procmaps_line line;
	char path[32], text[1024];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)replay->pid);
	file = fopen(path, "re");
	replay->mappings_count = 0;
	replay->version += SPACE_VERSION_STEP;
	while (file && fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = '\0';
		if (!procmaps_parse_line(slice_of(text), &line, NULL))
			add_mapping(replay, &line);
	}
	if (file)
		fclose(file);
	make_parts(replay);
}

struct replay *replay_new(pid_t pid)
{
	struct replay *replay = mem_new(struct replay);

	replay->pid = pid;
	replay->version = SPACE_FOLLOWED;
	for (int i = 0; i < REPLAY_WALKERS; i++)
		replay->walks[i] = mem_new(struct walk);
	replay_read_mappings(replay);
	return replay;
}

void replay_free(struct replay *replay)
{
	if (!replay)
		return;
	for (uint32_t i = 0; i < replay->chunks_count; i++)
		free(replay->chunks[i]);
	for (int i = 0; i < REPLAY_WALKERS; i++)
		free(replay->walks[i]);
	free(replay);
}

bool replay_record(const struct replay *replay, pid_t thread, struct recording *ret)
{
	struct iovec local = { ret->stack, sizeof(ret->stack) }, remote;
	ssize_t len;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &ret->registers))
		return false;
	ret->stack_start = ret->registers.rsp - 128;
	remote = (struct iovec){ (void *)ret->stack_start, sizeof(ret->stack) };
	len = process_vm_readv(replay->pid, &local, 1, &remote, 1, 0);
	ret->stack_bytes = len > 0 ? (size_t)len : 0;
	return true;
}

static void start_walk(struct walk *walk, const struct user_regs_struct *registers)
{
	walk->pc = registers->rip;
	walk->sp = registers->rsp;
	walk->fp = registers->rbp;
	walk->bx = registers->rbx;
	walk->full = true;
}

enum stack_end replay_walk(struct replay *replay, unsigned walker,
			   const struct recording *recording, struct sample *ret)
{
	struct walk *walk = replay->walks[walker];

	now = replay;
	now_recording = recording;
	walk_own(walk, &(struct walk_owner){ .tgid = (__u32)replay->pid,
					     .fingerprint = 1,
					     .version = replay->version });
	walk_start(walk);
	walk->at = 0;
	start_walk(walk, &recording->registers);
	for (bool on = walk_leaf(walk, ret); on; on = walk_frame(walk, ret))
		continue;
	ret->kernel_count = 0;
	ret->user_count = (__u16)walk->at;
	ret->user_end = (__u8)walk->end;
	return walk->end;
}

static size_t mapping_index(const struct replay *replay, uint64_t address)
{
	size_t i = 0;

	while (i < replay->mappings_count &&
	       (address < replay->mappings[i].start || address >= replay->mappings[i].end))
		i++;
	return i;
}

bool replay_knows(const struct replay *replay, uint64_t address)
{
	return mapping_index(replay, address) < replay->mappings_count;
}

const char *replay_name(const struct replay *replay, uint64_t address)
{
	static char name[PATH_BYTES + 32];
	size_t i = mapping_index(replay, address);
	const struct space_mapping *mapping = &replay->mappings[i];
	const char *slash;

	if (i == replay->mappings_count) {
		snprintf(name, sizeof(name), "0x%" PRIx64, address);
		return name;
	}
	slash = strrchr(replay->paths[i], '/');
	snprintf(name, sizeof(name), "%s+0x%" PRIx64, slash ? slash + 1 : replay->paths[i],
		 (uint64_t)(address - mapping->start + mapping->offset));
	return name;
}
