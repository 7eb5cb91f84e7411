/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/go_symbols.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/elf/gopclntab_lines.h"

#define CHECK_FUNCTIONS 64 /* between two looks at the clock */

/* One section that has bytes in the file. */
struct go_section {
	const char *name;
	uint64_t address;
	struct slice bytes;
};

struct go_reader {
	Elf *elf;
	const char *name;
	const struct go_limits *limits;
	struct symbol_builder *builder;
	struct gopclntab *table;
	struct section_reader *data, *relocations;
	struct gopclntab_lines lines;
	uint32_t *scopes; /* of the calls of one function, or SYMBOL_NONE while unknown */
	size_t scopes_capacity;
};

static bool read_section(const struct go_reader *reader, Elf_Scn *section, struct go_section *ret)
{
	GElf_Shdr header;
	Elf_Data *data;
	size_t names;

	if (elf_getshdrstrndx(reader->elf, &names) || !gelf_getshdr(section, &header) ||
	    header.sh_type == SHT_NOBITS || header.sh_flags & SHF_COMPRESSED ||
	    !(header.sh_flags & SHF_ALLOC) || header.sh_size > reader->limits->section_bytes)
		return false;
	ret->name = elf_strptr(reader->elf, names, header.sh_name);
	data = ret->name ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_buf || !data->d_size)
		return false;
	ret->address = header.sh_addr;
	ret->bytes = slice_from(data->d_buf, data->d_size);
	return true;
}

static bool find_section(const struct go_reader *reader, const char *name, struct go_section *ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(reader->elf, &names))
		return false;
	while ((section = elf_nextscn(reader->elf, section))) {
		GElf_Shdr header;
		const char *found;

		if (!gelf_getshdr(section, &header))
			continue;
		found = elf_strptr(reader->elf, names, header.sh_name);
		if (found && !strcmp(found, name))
			return read_section(reader, section, ret);
	}
	return false;
}

static bool open_table(struct go_reader *reader, uint16_t machine, const struct go_section *section)
{
	section_reader_open_memory(reader->data, section->bytes, section->address, reader->name);
	if (gopclntab_open(reader->table, reader->data, machine, NULL))
		return false;
	reader->lines.table = section->bytes;
	return true;
}

/* The linkers of C programs put it among other read-only data, without a name of its own. */
static bool find_hidden_table(struct go_reader *reader, uint16_t machine)
{
	struct go_section section;
	uint64_t offset;

	if (!find_section(reader, ".data.rel.ro", &section) &&
	    !find_section(reader, ".rodata", &section))
		return false;
	section_reader_open_memory(reader->data, section.bytes, section.address, reader->name);
	if (gopclntab_find(reader->data, machine, &offset, NULL))
		return false;
	section.bytes = slice_tail(section.bytes, (size_t)offset);
	section.address += offset;
	return open_table(reader, machine, &section);
}

static bool find_table(struct go_reader *reader, uint16_t machine)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	struct go_section section;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (find_section(reader, names[i], &section) &&
		    open_table(reader, machine, &section))
			return true;
	return find_section(reader, ".go.buildinfo", &section) &&
	       find_hidden_table(reader, machine);
}

/* What the module's description, which is in some section of data, says: text, inline trees. */
static void find_addresses(struct go_reader *reader)
{
	static const char *const places[] = { ".go.module", ".noptrdata", ".data.rel.ro", ".data" };
	struct gopclntab_layout *layout = &reader->table->layout;
	struct section_reader *relocations = NULL;
	struct go_section section;

	if (layout->version < GOPCLNTAB_GO_1_18)
		return;
	if (find_section(reader, ".rela.dyn", &section) ||
	    find_section(reader, ".rela", &section)) {
		relocations = reader->relocations;
		section_reader_open_memory(relocations, section.bytes, section.address,
					   reader->name);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!find_section(reader, places[i], &section))
			continue;
		section_reader_open_memory(reader->data, section.bytes, section.address,
					   reader->name);
		if (!layout->text)
			gopclntab_find_text(reader->table, reader->data, relocations, &layout->text,
					    NULL);
		if (!gopclntab_find_function_data(reader->table, reader->data, relocations,
						  &reader->lines.function_data_address, NULL))
			return;
	}
}

/* Inline trees are in read-only data: in one section, all of them. */
static void find_trees(struct go_reader *reader)
{
	static const char *const places[] = { ".rodata", ".data.rel.ro", ".gopclntab",
					      ".data.rel.ro.gopclntab" };
	uint64_t address = reader->lines.function_data_address;
	struct go_section section;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!find_section(reader, places[i], &section))
			continue;
		if (reader->table->layout.version >= GOPCLNTAB_GO_1_18 &&
		    (address < section.address || address - section.address >= section.bytes.len))
			continue;
		reader->lines.data = section.bytes;
		reader->lines.data_address = section.address;
		return;
	}
}

static uint32_t add_function(struct go_reader *reader, struct slice name, struct slice file,
			     uint32_t line)
{
	return symbol_builder_function(
		reader->builder,
		&(struct symbol_function){
			.name = symbol_builder_text(reader->builder, name),
			.file = file.len ? symbol_builder_text(reader->builder, file) : 0,
			.line = line,
		});
}

/* The scope of an inlined call, with those of the calls around it. Damage can make a circle. */
static uint32_t scope_of(struct go_reader *reader, const struct gopclntab_function *function,
			 uint32_t call, uint32_t outermost)
{
	uint32_t path[SYMBOL_CHAIN_MAX], parent = outermost;
	size_t depth = 0;

	for (int32_t at = (int32_t)call; at >= 0 && depth < SYMBOL_CHAIN_MAX;
	     at = function->calls[at].parent) {
		if (reader->scopes[at] != SYMBOL_NONE) {
			parent = reader->scopes[at];
			break;
		}
		path[depth++] = (uint32_t)at;
	}
	while (depth) {
		const struct gopclntab_call *at = &function->calls[path[--depth]];
		struct symbol_scope scope = {
			.parent = parent,
			.function =
				add_function(reader, at->name, SLICE_LITERAL(""), at->start_line),
			.call_file = symbol_builder_text(reader->builder, at->file),
			.call_line = at->line,
		};
		uint32_t id = scope.function == SYMBOL_NONE
				      ? SYMBOL_NONE
				      : symbol_builder_scope(reader->builder, &scope);

		if (id == SYMBOL_NONE)
			return SYMBOL_NONE;
		reader->scopes[path[depth]] = parent = id;
	}
	return parent;
}

static void add_spans(struct go_reader *reader, const struct gopclntab_function *function,
		      uint32_t outermost)
{
	while (reader->scopes_capacity < function->calls_count) {
		reader->scopes_capacity = function->calls_count;
		reader->scopes =
			mem_realloc(reader->scopes, function->calls_count, sizeof(*reader->scopes));
	}
	for (size_t i = 0; i < function->calls_count; i++)
		reader->scopes[i] = SYMBOL_NONE;
	for (size_t i = 0; i < function->spans_count && !reader->builder->over_budget; i++) {
		const struct gopclntab_span *span = &function->spans[i];
		uint32_t scope = scope_of(reader, function, span->call, outermost);

		if (scope != SYMBOL_NONE)
			symbol_builder_range(reader->builder, span->low, span->high, scope);
	}
}

static void add(struct go_reader *reader, const struct gopclntab_function *function)
{
	struct symbol_scope scope = { .parent = SYMBOL_NONE };
	uint32_t id;

	for (size_t i = 0; i < function->rows_count; i++) {
		const struct gopclntab_row *row = &function->rows[i];

		symbol_builder_row(reader->builder,
				   &(struct symbol_line_row){
					   .address = row->address,
					   .file = symbol_builder_text(reader->builder, row->file),
					   .line = row->line,
				   });
	}
	symbol_builder_end_sequence(reader->builder, function->end);
	scope.function = add_function(reader, function->name, function->file, function->start_line);
	if (scope.function == SYMBOL_NONE)
		return;
	id = symbol_builder_scope(reader->builder, &scope);
	if (id == SYMBOL_NONE)
		return;
	symbol_builder_range(reader->builder, function->start, function->end, id);
	add_spans(reader, function, id);
}

static int check_limits(const struct go_reader *reader, uint64_t index, struct err *err)
{
	if (reader->builder->over_budget)
		return err_set(err, ERR_LIMIT,
			       "read Go's functions of \"%s\": over the memory "
			       "budget",
			       reader->name);
	if (index % CHECK_FUNCTIONS)
		return 0;
	if (clock_thread_cpu_ns() > reader->limits->deadline_ns)
		return err_set(err, ERR_DEADLINE,
			       "read Go's functions of \"%s\": out of time after %" PRIu64,
			       reader->name, index);
	return 0;
}

static int read_functions(struct go_reader *reader, struct err *err)
{
	struct gopclntab_function function = { .start = 0 };
	int status = 0;

	reader->lines.layout = reader->table->layout;
	for (uint64_t i = 0; !status && i < reader->lines.layout.functions_count; i++) {
		if (!gopclntab_lines_read(&reader->lines, i, &function, NULL))
			add(reader, &function);
		symbol_builder_unit_done(reader->builder);
		status = check_limits(reader, i, err);
	}
	gopclntab_function_free(&function);
	return status;
}

int go_symbols_read(Elf *elf, uint16_t machine, const char *name, const struct go_limits *limits,
		    struct symbol_builder *builder, bool *ret_found, struct err *err)
{
	struct go_reader reader = {
		.elf = elf,
		.name = name,
		.limits = limits,
		.builder = builder,
		.table = mem_new(struct gopclntab),
		.data = mem_new(struct section_reader),
		.relocations = mem_new(struct section_reader),
	};
	int status = 0;

	if (find_table(&reader, machine)) {
		find_addresses(&reader);
		find_trees(&reader);
		status = read_functions(&reader, err);
		*ret_found = true;
	}
	free(reader.table);
	free(reader.data);
	free(reader.relocations);
	free(reader.scopes);
	return status;
}
