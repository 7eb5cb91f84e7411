/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/symbol_reader.h"

#include <assert.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/resolve/read/class_guess.h"
#include "server/resolve/read/dwarf_reader.h"
#include "server/resolve/read/elf_inflate.h"
#include "server/resolve/read/elf_symbols.h"
#include "server/resolve/read/function_extents.h"
#include "server/resolve/read/go_symbols.h"
#include "server/resolve/read/mini_debuginfo.h"
#include "server/resolve/read/plt_symbols.h"

#define GIB ((uint64_t)1 << 30)
#define ZDEBUG_HEADER_BYTES 12 /* "ZLIB", size as big-endian u64 */

const struct symbol_limits symbol_limits_default = {
	.file_bytes = 16 * GIB,
	.section_bytes = 8 * GIB,
	.table_bytes = GIB / 2,
	.entries = (uint64_t)1 << 30,
	.duration_ns = 120 * CLOCK_NS_PER_S,
};

/* One open file. */
struct reader_file {
	const char *name;
	enum symbol_input_kind kind;
	const char *directory;
	struct elf_info info;
	struct slice image; /* the file, mapped, or a copy with its debug sections unpacked */
	Elf *elf;
	Elf *mini; /* the file inside its .gnu_debugdata, or NULL */
	struct strbuf mini_bytes;
	uint64_t debug_bytes; /* of DWARF */
};

struct reader {
	struct reader_file files[SYMBOL_INPUTS_MAX];
	size_t count;
	const struct symbol_limits *limits;
	const int *scratch; /* NULL: in memory */
	size_t scratch_used;
	struct symbol_report report;
	struct symbol_table about;
};

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static struct slice section_bytes(Elf *elf, const char *wanted)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return (struct slice){ "", 0 };
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (strcmp(name, wanted) &&
			      (!has_prefix(name, ".z") || strcmp(name + 2, wanted + 1))))
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			return slice_from(data->d_buf, data->d_size);
	}
	return (struct slice){ "", 0 };
}

/* How large a section is once it is decompressed. */
static uint64_t full_bytes(Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	GElf_Chdr compression;
	Elf_Data *raw;
	uint64_t bytes = 0;

	if (header->sh_type == SHT_NOBITS)
		return 0;
	if (header->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(section, &compression) ? compression.ch_size : header->sh_size;
	if (!has_prefix(name, ".zdebug"))
		return header->sh_size;
	raw = elf_rawdata(section, NULL);
	if (!raw || raw->d_size < ZDEBUG_HEADER_BYTES)
		return header->sh_size;
	for (int i = 4; i < ZDEBUG_HEADER_BYTES; i++)
		bytes = bytes << 8 | ((const uint8_t *)raw->d_buf)[i];
	return bytes;
}

/* Bounds what decompressing can take, and sizes the DWARF up. */
static int check_sections(struct reader_file *file, const struct symbol_limits *limits,
			  struct err *err)
{
	Elf_Scn *section = NULL;
	uint64_t total = 0;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return 0;
	while ((section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		if (!name || (!has_prefix(name, ".debug") && !has_prefix(name, ".zdebug")))
			continue;
		if (__builtin_add_overflow(total, full_bytes(section, &header, name), &total) ||
		    total > limits->section_bytes)
			return err_set(
				err, ERR_LIMIT,
				"read symbols of \"%s\": debug sections of more than %" PRIu64
				" bytes",
				file->name, limits->section_bytes);
		if (slice_ends_with(slice_of(name), SLICE_LITERAL("debug_info")) ||
		    slice_ends_with(slice_of(name), SLICE_LITERAL("debug_line")))
			file->debug_bytes += full_bytes(section, &header, name);
	}
	return 0;
}

/* What is wrong with it costs its names, not the rest of the file. */
static void open_mini(struct reader *reader, struct reader_file *file)
{
	struct slice section = section_bytes(file->elf, ".gnu_debugdata");

	if (section.len && mini_debuginfo_open(section, &file->mini_bytes, &file->mini, NULL))
		reader->report.damaged++;
}

static int map_file(struct reader_file *file, int fd, struct err *err)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "map \"%s\"", file->name);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_set_errno(err, errno, "map \"%s\"", file->name);
	file->image = slice_from(bytes, (size_t)st.st_size);
	file->elf = elf_memory(bytes, file->image.len);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF)
		return err_set(err, ERR_INVALID, "read symbols of \"%s\": %s", file->name,
			       elf_errmsg(-1));
	return 0;
}

static void unmap_file(struct reader_file *file)
{
	elf_end(file->elf);
	if (file->image.len)
		munmap((void *)(uintptr_t)file->image.data, file->image.len);
	file->elf = NULL;
	file->image.len = 0;
}

static int take_scratch(struct reader *reader, struct err *err)
{
	if (!reader->scratch)
		return spill_file(NULL, err);
	assert(reader->scratch_used < SYMBOL_SCRATCH_FILES);
	return reader->scratch[reader->scratch_used++];
}

/* Puts a copy with its debug sections unpacked in the place of the file. */
static int inflate_file(struct reader *reader, struct reader_file *file, struct err *err)
{
	int fd = take_scratch(reader, err), status;

	if (fd < 0)
		return fd;
	status = elf_inflate(file->elf, file->image, reader->limits->section_bytes, fd, err);
	if (!status) {
		unmap_file(file);
		status = map_file(file, fd, err);
	}
	close(fd);
	return status ? err_wrap(err, "read symbols of \"%s\"", file->name) : 0;
}

static void close_file(struct reader_file *file)
{
	elf_end(file->mini);
	strbuf_free(&file->mini_bytes);
	unmap_file(file);
}

static int open_file(struct reader *reader, struct reader_file *file,
		     const struct symbol_input *input, struct err *err)
{
	const struct symbol_limits *limits = reader->limits;
	int status = elf_read_info(input->fd, input->name, &file->info, err);

	if (status)
		return status;
	file->name = input->name;
	file->kind = input->kind;
	file->directory = input->directory;
	if (file->info.file_bytes > limits->file_bytes)
		return err_set(err, ERR_LIMIT,
			       "read symbols of \"%s\": %" PRIu64 " bytes, at most %" PRIu64
			       " allowed",
			       input->name, file->info.file_bytes, limits->file_bytes);
	if (file->info.type == ET_REL && file->kind == SYMBOL_INPUT_MAIN)
		return err_set(err, ERR_UNSUPPORTED,
			       "read symbols of \"%s\": a relocatable object has no addresses",
			       input->name);
	status = map_file(file, input->fd, err);
	if (status)
		return status;
	open_mini(reader, file);
	return 0;
}

/*
 * The file with the entries that dwz moved out of this one, or NULL. *ret_needed says whether there
 * has to be one: without it libdw would open whatever path the file names.
 */
static struct reader_file *alternate_of(struct reader *reader, Dwarf *dwarf, bool *ret_needed)
{
	const void *wanted;
	const char *path;
	ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &path, &wanted);

	*ret_needed = bytes != 0;
	for (size_t i = 0; bytes > 0 && i < reader->count; i++) {
		const void *build_id;

		if (reader->files[i].kind == SYMBOL_INPUT_ALTERNATE &&
		    dwelf_elf_gnu_build_id(reader->files[i].elf, &build_id) == bytes &&
		    !memcmp(build_id, wanted, (size_t)bytes))
			return &reader->files[i];
	}
	return NULL;
}

static struct dwarf_sections sections_of(Elf *elf)
{
	struct slice str = section_bytes(elf, ".debug_str");
	struct slice line_str = section_bytes(elf, ".debug_line_str");

	return (struct dwarf_sections){
		.lines = {
			.line = section_bytes(elf, ".debug_line"),
			.line_str = line_str,
			.str = str,
			.big_endian = elf_getident(elf, NULL)[EI_DATA] == ELFDATA2MSB,
		},
		.texts = { str, line_str, section_bytes(elf, ".debug_info"),
			   section_bytes(elf, ".debug_types") },
		.addresses = section_bytes(elf, ".debug_addr"),
		.ranges = section_bytes(elf, ".debug_ranges"),
	};
}

static struct split_places split_places_of(const struct reader *reader,
					   const struct reader_file *file)
{
	struct split_places places = { .directory = file->directory };

	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].kind == SYMBOL_INPUT_PACKAGE)
			places.package = reader->files[i].elf;
	return places;
}

static void add_alternate_texts(Elf *elf, struct dwarf_sections *sections)
{
	sections->texts[4] = section_bytes(elf, ".debug_str");
	sections->texts[5] = section_bytes(elf, ".debug_info");
}

/* Reads the DWARF of one file; *ret_found stays false when it has none to use. */
static int read_dwarf(struct reader *reader, const struct reader_file *file,
		      struct symbol_builder *builder, bool *ret_found, struct err *err)
{
	const struct symbol_limits *limits = reader->limits;
	struct dwarf_limits dwarf_limits = {
		.entries = limits->entries,
		.deadline_ns = clock_thread_cpu_ns() + limits->duration_ns,
	};
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL), *shared = NULL;
	struct reader_file *alternate = NULL;
	struct dwarf_sections sections;
	uint64_t left_early = 0;
	bool is_needed = false;
	int status;

	if (dwarf)
		alternate = alternate_of(reader, dwarf, &is_needed);
	if (alternate)
		shared = dwarf_begin_elf(alternate->elf, DWARF_C_READ, NULL);
	if (is_needed && !shared) {
		reader->report.refused++;
		dwarf_end(dwarf);
		return 0;
	}
	sections = sections_of(file->elf);
	sections.image = file->image;
	sections.split = split_places_of(reader, file);
	if (shared) {
		add_alternate_texts(alternate->elf, &sections);
		dwarf_setalt(dwarf, shared);
	}
	status = dwarf_reader_run(dwarf, &sections, &dwarf_limits, builder, &left_early, err);
	reader->report.damaged += left_early;
	if (symbol_builder_has_scopes(builder))
		reader->about.origin = SYMBOL_ORIGIN_DWARF;
	else if (symbol_builder_has_lines(builder))
		reader->about.origin = SYMBOL_ORIGIN_LINES;
	*ret_found = reader->about.origin != SYMBOL_ORIGIN_NONE;
	if (*ret_found)
		reader->about.debug_bytes = file->debug_bytes;
	dwarf_end(dwarf);
	dwarf_end(shared);
	return status ? err_wrap(err, "read symbols of \"%s\"", file->name) : 0;
}

static void add_code(const struct reader *reader, struct symbol_builder *builder)
{
	bool has_sections = false;

	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].kind == SYMBOL_INPUT_MAIN)
			has_sections |= elf_symbols_code(reader->files[i].elf, builder);
	for (size_t i = 0; !has_sections && i < reader->files[0].info.segments_count; i++) {
		const struct elf_segment *segment = &reader->files[0].info.segments[i];

		if (segment->executable)
			symbol_builder_code(builder, segment->address,
					    segment->address + segment->memory_bytes);
	}
	symbol_builder_code_done(builder);
}

static int read_go(const struct reader_file *file, const struct symbol_limits *limits,
		   struct symbol_builder *builder, bool *ret_found, struct err *err)
{
	const struct go_limits go_limits = {
		.section_bytes = limits->section_bytes,
		.deadline_ns = clock_thread_cpu_ns() + limits->duration_ns,
	};

	return go_symbols_read(file->elf, file->info.machine, file->name, &go_limits, builder,
			       ret_found, err);
}

static int unpack_all(struct reader *reader, struct err *err)
{
	int status = 0;

	for (size_t i = 0; !status && i < reader->count; i++) {
		status = check_sections(&reader->files[i], reader->limits, err);
		if (!status && elf_inflate_is_needed(reader->files[i].elf))
			status = inflate_file(reader, &reader->files[i], err);
	}
	return status;
}

/*
 * The DWARF of the file that has most of it: what is left in a stripped copy does not hide the
 * whole. Go's own table says the same as its DWARF, so it is for where there is none.
 */
static int read_debug_info(struct reader *reader, struct symbol_builder *builder, bool *ret_found,
			   struct err *err)
{
	bool tried[SYMBOL_INPUTS_MAX] = { false };
	int status = unpack_all(reader, err);

	for (size_t round = 0; !status && !*ret_found && round < reader->count; round++) {
		size_t best = SIZE_MAX;

		for (size_t i = 0; i < reader->count; i++)
			if (!tried[i] &&
			    (best == SIZE_MAX ||
			     reader->files[i].debug_bytes > reader->files[best].debug_bytes))
				best = i;
		if (best == SIZE_MAX)
			break;
		tried[best] = true;
		status = read_dwarf(reader, &reader->files[best], builder, ret_found, err);
	}
	for (size_t i = 0; !status && !*ret_found && i < reader->count; i++)
		status = read_go(&reader->files[i], reader->limits, builder, ret_found, err);
	if (*ret_found && reader->about.origin == SYMBOL_ORIGIN_NONE)
		reader->about.origin = SYMBOL_ORIGIN_GO;
	return status;
}

static void read_symbols(const struct reader *reader, struct symbol_builder *builder)
{
	bool has_all = symbol_builder_has_all_asked(builder);

	for (size_t i = 0; i < reader->count; i++) {
		const struct reader_file *file = &reader->files[i];

		if (file->kind != SYMBOL_INPUT_MAIN)
			continue;
		elf_symbols_read(file->elf, builder);
		if (file->mini)
			elf_symbols_read(file->mini, builder);
		plt_symbols_read(file->elf, file->info.machine, builder);
		if (!has_all)
			function_extents_read(file->elf, file->info.machine, builder);
		if (reader->about.origin < SYMBOL_ORIGIN_GO)
			class_guess_read(file->elf, builder);
	}
}

static int build(struct reader *reader, bool with_debug_info, int out_fd, struct err *err)
{
	struct symbol_table *about = &reader->about;
	struct symbol_builder builder;
	bool is_found = false;
	int spill_fd = take_scratch(reader, err), status = 0;

	if (spill_fd < 0)
		return spill_fd;
	symbol_builder_init(&builder, reader->limits->table_bytes, spill_fd);
	builder.is_for_once = reader->limits->is_for_once;
	builder.asked = reader->limits->asked;
	add_code(reader, &builder);
	about->info = reader->files[0].info;
	about->has_binary = elf_has_offsets(&about->info);
	elf_restore_offsets(&about->info);
	about->origin = SYMBOL_ORIGIN_NONE;
	if (with_debug_info)
		status = read_debug_info(reader, &builder, &is_found, err);
	if (!status) {
		read_symbols(reader, &builder);
		if (about->origin == SYMBOL_ORIGIN_NONE && builder.candidates_count)
			about->origin = SYMBOL_ORIGIN_SYMBOLS;
		status = symbol_builder_finish(&builder, about, out_fd, err);
		if (status)
			err_wrap(err, "read symbols of \"%s\"", reader->files[0].name);
	}
	symbol_builder_free(&builder);
	close(spill_fd);
	return status;
}

int symbol_reader_source(const struct symbol_input *input, struct symbol_source *ret,
			 struct err *err)
{
	struct stat st;

	if (fstat(input->fd, &st))
		return err_set_errno(err, errno, "read symbols of \"%s\"", input->name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "read symbols of \"%s\": not a regular file",
			       input->name);
	*ret = (struct symbol_source){
		.bytes = (uint64_t)st.st_size,
		.kind = input->kind,
	};
	return 0;
}

/* Files that only add to the binary are left out when they cannot be read. */
static int open_files(struct reader *reader, const struct symbol_input *inputs, size_t count,
		      struct err *err)
{
	struct symbol_table *about = &reader->about;

	for (size_t i = 0; i < count && i < SYMBOL_INPUTS_MAX; i++) {
		struct reader_file *file = &reader->files[reader->count++];
		int status = symbol_reader_source(&inputs[i], &about->sources[about->sources_count],
						  err);

		if (!status)
			about->sources_count++;
		if (!status)
			status = open_file(reader, file, &inputs[i], err);
		if (status && inputs[i].kind == SYMBOL_INPUT_MAIN)
			return status;
		if (status) {
			close_file(file);
			*file = (struct reader_file){ .name = NULL };
			reader->count--;
		}
	}
	return 0;
}

int symbol_reader_write(const struct symbol_input *inputs, size_t count,
			const struct symbol_limits *limits, const char *note, const int *scratch,
			int out_fd, struct symbol_report *ret_report, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[ERR_MESSAGE_BYTES] = "";
	struct reader reader = { .limits = limits, .scratch = scratch, .about.note = text };
	struct err cause = { 0 };
	int status;

	pthread_once(&once, init_libelf);
	status = open_files(&reader, inputs, count, err);
	if (note)
		snprintf(text, sizeof(text), "%s", note);
	if (!status) {
		status = build(&reader, !note, out_fd, &cause);
		if (status && !note) {
			reader.report.refused++;
			snprintf(text, sizeof(text), "%s", cause.message);
			if (ftruncate(out_fd, 0))
				status = err_set_errno(&cause, errno, "empty a temporary file");
			else
				status = build(&reader, false, out_fd, &cause);
		}
		if (status && err)
			*err = cause;
	}
	for (size_t i = 0; i < reader.count; i++)
		close_file(&reader.files[i]);
	*ret_report = reader.report;
	return status;
}
