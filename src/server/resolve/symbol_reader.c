/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_reader.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "server/resolve/dwarf_reader.h"
#include "server/resolve/elf_symbols.h"
#include "server/resolve/go_symbols.h"
#include "server/resolve/mini_debuginfo.h"

#define GIB ((uint64_t)1 << 30)
#define ZDEBUG_HEADER_BYTES 12 /* "ZLIB", size as big-endian u64 */

const struct symbol_limits symbol_limits_default = {
	.file_bytes = 16 * GIB,
	.section_bytes = 8 * GIB,
	.table_bytes = 4 * GIB,
	.entries = (uint64_t)1 << 30,
	.duration_ns = 120 * CLOCK_NS_PER_S,
};

static METRIC_COUNTER(damaged, "firn_resolve_dwarf_damaged_total", "",
		      "Units and line tables of DWARF that were left early because of damage.");
static METRIC_COUNTER(
	refused, "firn_resolve_dwarf_refused_total", "",
	"Files whose DWARF was not used: over a limit, or its alternate file missing.");

/* One open file. */
struct reader_file {
	const char *name;
	enum symbol_input_kind kind;
	const char *directory;
	struct elf_info info;
	Elf *elf;
	Elf *mini; /* the file inside its .gnu_debugdata, or NULL */
	struct strbuf mini_bytes;
	uint64_t debug_bytes; /* of DWARF */
};

struct reader {
	struct reader_file files[SYMBOL_INPUTS_MAX];
	size_t count;
	const struct symbol_limits *limits;
};

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

void symbol_reader_init(void)
{
	static struct metric *const metrics[] = { &damaged, &refused };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len >= suffix_len && !strcmp(name + len - suffix_len, suffix);
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
		if (has_suffix(name, "debug_info") || has_suffix(name, "debug_line"))
			file->debug_bytes += full_bytes(section, &header, name);
	}
	return 0;
}

/* What is wrong with it costs its names, not the rest of the file. */
static void open_mini(struct reader_file *file)
{
	struct slice section = section_bytes(file->elf, ".gnu_debugdata");

	if (section.len && mini_debuginfo_open(section, &file->mini_bytes, &file->mini, NULL))
		metric_add(&damaged, 1);
}

static void close_file(struct reader_file *file)
{
	elf_end(file->mini);
	strbuf_free(&file->mini_bytes);
	elf_end(file->elf);
}

static int open_file(struct reader_file *file, const struct symbol_input *input,
		     const struct symbol_limits *limits, struct err *err)
{
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
	file->elf = elf_begin(input->fd, ELF_C_READ, NULL);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF)
		return err_set(err, ERR_INVALID, "read symbols of \"%s\": %s", input->name,
			       elf_errmsg(-1));
	open_mini(file);
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
		.deadline_ns = clock_monotonic_ns() + limits->duration_ns,
		.cancelled = limits->cancelled,
	};
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL), *shared = NULL;
	struct reader_file *alternate;
	struct dwarf_sections sections;
	uint64_t left_early = 0;
	bool is_needed;
	int status;

	if (!dwarf)
		return 0;
	alternate = alternate_of(reader, dwarf, &is_needed);
	if (alternate)
		shared = dwarf_begin_elf(alternate->elf, DWARF_C_READ, NULL);
	if (is_needed && !shared) {
		metric_add(&refused, 1);
		dwarf_end(dwarf);
		return 0;
	}
	sections = sections_of(file->elf);
	sections.split = split_places_of(reader, file);
	if (shared) {
		add_alternate_texts(alternate->elf, &sections);
		dwarf_setalt(dwarf, shared);
	}
	status = dwarf_reader_run(dwarf, &sections, &dwarf_limits, builder, &left_early, err);
	metric_add(&damaged, (int64_t)left_early);
	*ret_found = builder->table->scopes_count > 0 || builder->line_blocks.count > 0;
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
		.deadline_ns = clock_monotonic_ns() + limits->duration_ns,
		.cancelled = limits->cancelled,
	};

	return go_symbols_read(file->elf, file->info.machine, file->name, &go_limits, builder,
			       ret_found, err);
}

/*
 * The DWARF of the file that has most of it: what is left in a stripped copy does not hide the
 * whole. Go's own table says the same as its DWARF, so it is for where there is none.
 */
static int read_debug_info(struct reader *reader, struct symbol_builder *builder, bool *ret_found,
			   struct err *err)
{
	bool tried[SYMBOL_INPUTS_MAX] = { false };
	int status = 0;

	for (size_t i = 0; !status && i < reader->count; i++)
		status = check_sections(&reader->files[i], reader->limits, err);
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
	return status;
}

static int build(struct reader *reader, bool with_debug_info, struct symbol_table **ret,
		 struct err *err)
{
	struct symbol_builder builder;
	struct symbol_table *table = NULL;
	bool has_debug_info = false;
	int status = 0;

	symbol_builder_init(&builder, reader->limits->table_bytes);
	add_code(reader, &builder);
	if (with_debug_info)
		status = read_debug_info(reader, &builder, &has_debug_info, err);
	for (size_t i = 0; !status && i < reader->count; i++) {
		if (reader->files[i].kind != SYMBOL_INPUT_MAIN)
			continue;
		elf_symbols_read(reader->files[i].elf, &builder);
		if (reader->files[i].mini)
			elf_symbols_read(reader->files[i].mini, &builder);
	}
	if (!status) {
		table = symbol_builder_finish(&builder);
		if (!table)
			status =
				err_set(err, ERR_LIMIT,
					"read symbols of \"%s\": over the memory budget of %" PRIu64
					" bytes",
					reader->files[0].name, reader->limits->table_bytes);
	}
	if (!status) {
		table->info = reader->files[0].info;
		elf_restore_offsets(&table->info);
		table->has_debug_info = has_debug_info;
		*ret = table;
	}
	symbol_builder_free(&builder);
	return status;
}

int symbol_table_build(const struct symbol_input *inputs, size_t count,
		       const struct symbol_limits *limits, struct symbol_table **ret,
		       struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct reader reader = { .limits = limits };
	int status = 0;

	pthread_once(&once, init_libelf);
	for (size_t i = 0; !status && i < count && i < SYMBOL_INPUTS_MAX; i++) {
		struct reader_file *file = &reader.files[reader.count++];

		status = open_file(file, &inputs[i], limits, err);
		if (status && inputs[i].kind != SYMBOL_INPUT_MAIN) {
			close_file(file);
			*file = (struct reader_file){ .name = NULL };
			reader.count--;
			status = 0;
		}
	}
	if (!status) {
		status = build(&reader, true, ret, err);
		if (status) {
			metric_add(&refused, 1);
			status = build(&reader, false, ret, err);
		}
	}
	for (size_t i = 0; i < reader.count; i++)
		close_file(&reader.files[i]);
	return status;
}
