/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/dwarf_reader.h"

#include <dwarf.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "codec/elf/section_reader.h"
#include "server/resolve/read/range_list.h"

#define DEPTH_MAX 512	    /* of entries below a unit */
#define ORIGIN_STEPS_MAX 16 /* abstract origins and specifications followed for one name */
#define RANGES_PER_ENTRY_MAX 65536
#define DEADLINE_CHECK_ENTRIES 4096
#define DEADLINE_CHECK_ROWS 65536
#define KNOWN_FUNCTIONS_MAX ((size_t)1 << 18)
#define DROP_BYTES ((uint64_t)32 << 20) /* of .debug_info between two times */
#define GENERATION_SHIFT 42		/* above twice an offset in a section */

/* The files of one line table, as text ids. */
struct file_table {
	uint64_t offset; /* in .debug_line */
	uint32_t first, count;
};

/* The entry that names a function, and the builder's id of it. */
struct known_function {
	uint64_t key;
	uint32_t function;
};

/* An open entry of the walk: its children belong to `scope`. */
struct walk_level {
	Dwarf_Die die;
	uint32_t scope;
};

struct dwarf_reader {
	Dwarf *dwarf;
	const struct dwarf_sections *sections;
	const struct dwarf_limits *limits;
	struct symbol_builder *builder;
	struct err *err;
	uint64_t entries, damaged;
	struct walk_level *levels; /* DEPTH_MAX */
	struct strbuf path;	   /* scratch */

	struct file_table *tables;
	size_t tables_count, tables_capacity;
	struct idmap table_map; /* offset -> tables */
	uint32_t *files;
	size_t files_count, files_capacity;

	struct known_function *functions; /* of the open unit */
	size_t functions_count, functions_capacity;
	struct idmap function_map; /* key -> functions */

	/* The split unit that is being read, when its dwarf is not NULL. */
	struct split_unit split;
	struct split_skeleton skeleton;
	uint64_t split_base, split_ranges_base; /* of offsets in range lists, of lists */
	uint64_t generation;			/* of split units: their offsets repeat */

	uint32_t unit_files; /* index into tables, or SYMBOL_NONE */
	bool unit_is_c;	     /* types hold no functions */
};

/* The attributes of an entry that matter, from one pass over it. */
struct entry {
	Dwarf_Attribute name, linkage_name, origin, specification, low, high, ranges;
	Dwarf_Attribute decl_file, decl_line, call_file, call_line;
};

static int note_attribute(Dwarf_Attribute *attribute, void *context)
{
	struct entry *entry = context;

	switch (attribute->code) {
	case DW_AT_name:
		entry->name = *attribute;
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		entry->linkage_name = *attribute;
		break;
	case DW_AT_abstract_origin:
		entry->origin = *attribute;
		break;
	case DW_AT_specification:
		entry->specification = *attribute;
		break;
	case DW_AT_low_pc:
		entry->low = *attribute;
		break;
	case DW_AT_high_pc:
		entry->high = *attribute;
		break;
	case DW_AT_ranges:
		entry->ranges = *attribute;
		break;
	case DW_AT_decl_file:
		entry->decl_file = *attribute;
		break;
	case DW_AT_decl_line:
		entry->decl_line = *attribute;
		break;
	case DW_AT_call_file:
		entry->call_file = *attribute;
		break;
	case DW_AT_call_line:
		entry->call_line = *attribute;
		break;
	}
	return DWARF_CB_OK;
}

static bool read_entry(Dwarf_Die *die, struct entry *ret)
{
	*ret = (struct entry){ 0 };
	return dwarf_getattrs(die, note_attribute, ret, 0) != -1;
}

/* A missing attribute has form 0, as no attribute has in a file. */
static uint64_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word value;

	if (!attribute->form || dwarf_formudata(attribute, &value))
		return 0;
	return value;
}

static uint32_t number32_of(Dwarf_Attribute *attribute)
{
	uint64_t value = number_of(attribute);

	return value < UINT32_MAX ? (uint32_t)value : 0;
}

/*
 * libdw hands out pointers into sections without looking for the end of the text: the last one of
 * a damaged section has none.
 */
static struct slice formed_text(const struct dwarf_reader *reader, Dwarf_Attribute *attribute)
{
	const char *text = attribute->form ? dwarf_formstring(attribute) : NULL;

	for (size_t i = 0; text && i < DWARF_TEXTS + 2; i++) {
		struct slice section = i == DWARF_TEXTS	      ? reader->split.info
				       : i == DWARF_TEXTS + 1 ? reader->split.str
							      : reader->sections->texts[i];
		uintptr_t at = (uintptr_t)text - (uintptr_t)section.data;
		size_t len;

		if ((uintptr_t)text < (uintptr_t)section.data || at >= section.len)
			continue;
		len = slice_find_byte(slice_tail(section, at), 0);
		if (len != SIZE_MAX)
			return slice_from(text, len);
	}
	return (struct slice){ "", 0 };
}

static uint32_t text_of(struct dwarf_reader *reader, Dwarf_Attribute *attribute)
{
	return symbol_builder_text(reader->builder, formed_text(reader, attribute));
}

static bool is_absolute(struct slice path)
{
	return path.len && path.data[0] == '/';
}

static void add_path_part(struct strbuf *path, struct slice part)
{
	if (path->len && path->data[path->len - 1] != '/')
		strbuf_add_byte(path, '/');
	strbuf_add_slice(path, part);
}

/* Joins compilation directory, directory and name, as far as the later parts are relative. */
static uint32_t file_text(struct dwarf_reader *reader, const struct line_program *program,
			  const struct line_file *file, struct slice unit_directory)
{
	struct slice directory = { "", 0 };

	if (!file->name.len)
		return 0;
	if (file->directory < program->directories_count)
		directory = program->directories[file->directory];
	strbuf_clear(&reader->path);
	if (!is_absolute(file->name)) {
		if (!is_absolute(directory))
			add_path_part(&reader->path, unit_directory);
		if (directory.len)
			add_path_part(&reader->path, directory);
	}
	add_path_part(&reader->path, file->name);
	return symbol_builder_text(reader->builder, strbuf_slice(&reader->path));
}

/* Gives the files that the program has named so far their texts. */
static void add_files(struct dwarf_reader *reader, struct file_table *table,
		      const struct line_program *program, struct slice unit_directory)
{
	while (table->count < program->files_count) {
		mem_grow(reader->files, reader->files_count, reader->files_capacity);
		reader->files[reader->files_count++] =
			file_text(reader, program, &program->files[table->count], unit_directory);
		table->count++;
	}
}

static uint32_t file_at(const struct dwarf_reader *reader, uint32_t table, uint64_t file)
{
	if (table == SYMBOL_NONE || file >= reader->tables[table].count)
		return 0;
	return reader->files[reader->tables[table].first + file];
}

/* Hands all rows of a table on; files may be defined among them. */
static void add_rows(struct dwarf_reader *reader, struct file_table *table,
		     struct line_program *program, struct slice unit_directory)
{
	struct line_row row;
	uint64_t rows = 0;

	while (!reader->builder->over_budget && line_program_next(program, &row)) {
		struct symbol_line_row out = { row.address, 0, row.line };

		if (row.end_sequence) {
			symbol_builder_end_sequence(reader->builder, row.address);
			continue;
		}
		if (table->count < program->files_count)
			add_files(reader, table, program, unit_directory);
		if (row.file < table->count)
			out.file = reader->files[table->first + row.file];
		symbol_builder_row(reader->builder, &out);
		if (++rows % DEADLINE_CHECK_ROWS == 0 &&
		    clock_thread_cpu_ns() > reader->limits->deadline_ns)
			break;
	}
	symbol_builder_end_sequence(reader->builder, 0);
}

static bool table_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct file_table *)context)[id].offset == *(const uint64_t *)key;
}

static struct slice unit_directory_of(const struct dwarf_reader *reader, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute = { 0 };

	dwarf_attr(unit, DW_AT_comp_dir, &attribute);
	return formed_text(reader, &attribute);
}

/* Reads a line table the first time a unit names it; units may share one. */
static uint32_t read_line_table(struct dwarf_reader *reader, Dwarf_Die *unit, uint8_t address_bytes)
{
	struct file_table table = { .first = (uint32_t)reader->files_count };
	struct slice unit_directory = unit_directory_of(reader, unit);
	struct line_program program;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	uint64_t hash;
	uint32_t known;

	if (!dwarf_attr(unit, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &offset))
		return SYMBOL_NONE;
	table.offset = offset;
	hash = hash_bytes(&table.offset, sizeof(table.offset));
	known = idmap_find(&reader->table_map, hash, table_equal, reader->tables, &table.offset);
	if (known != IDMAP_NONE)
		return known;
	if (line_program_open(&program, &reader->sections->lines, offset, address_bytes, NULL)) {
		reader->damaged++;
	} else {
		add_files(reader, &table, &program, unit_directory);
		add_rows(reader, &table, &program, unit_directory);
	}
	line_program_close(&program);
	mem_grow(reader->tables, reader->tables_count, reader->tables_capacity);
	reader->tables[reader->tables_count] = table;
	idmap_add(&reader->table_map, hash, (uint32_t)reader->tables_count);
	return (uint32_t)reader->tables_count++;
}

/* The line table of the unit that an entry is in; an entry of another file (dwz) has none here. */
static uint32_t files_of(struct dwarf_reader *reader, Dwarf_Die *die, Dwarf_Die *ret_unit)
{
	uint8_t address_bytes;

	if (dwarf_cu_getdwarf(die->cu) != reader->dwarf ||
	    !dwarf_diecu(die, ret_unit, &address_bytes, NULL))
		return SYMBOL_NONE;
	if (reader->split.dwarf) /* the table is the skeleton's; types have one of their own */
		return dwarf_tag(ret_unit) == DW_TAG_compile_unit ? reader->unit_files
								  : SYMBOL_NONE;
	return read_line_table(reader, ret_unit, address_bytes);
}

/* The entry that an abstract origin or a specification refers to. */
static bool follow(struct entry *entry, Dwarf_Die *ret)
{
	Dwarf_Attribute *attribute = entry->origin.form ? &entry->origin : &entry->specification;

	return attribute->form && dwarf_formref_die(attribute, ret);
}

/* Collects a function's name and place from an entry and those that it refers to. */
static struct symbol_function describe(struct dwarf_reader *reader, Dwarf_Die die)
{
	struct symbol_function function = { 0 };
	bool has_file = false;
	struct entry entry;
	Dwarf_Die unit, next;

	for (int step = 0; step < ORIGIN_STEPS_MAX && read_entry(&die, &entry); step++) {
		if (!function.name)
			function.name = text_of(reader, &entry.name);
		if (!function.linkage_name)
			function.linkage_name = text_of(reader, &entry.linkage_name);
		if (!function.line)
			function.line = number32_of(&entry.decl_line);
		if (!has_file && entry.decl_file.form) {
			function.file = file_at(reader, files_of(reader, &die, &unit),
						number_of(&entry.decl_file));
			has_file = true;
		}
		if (!follow(&entry, &next))
			break;
		die = next;
	}
	return function;
}

static bool key_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct known_function *)context)[id].key == *(const uint64_t *)key;
}

/* Concrete instances and inlined calls share the function that their origin describes. */
static uint32_t function_of(struct dwarf_reader *reader, Dwarf_Die *die, struct entry *entry)
{
	struct symbol_function function;
	Dwarf_Die named = *die;
	uint64_t key, hash;
	uint32_t id;

	if (entry->origin.form)
		follow(entry, &named);
	key = reader->generation << GENERATION_SHIFT | dwarf_dieoffset(&named) << 1 |
	      (dwarf_cu_getdwarf(named.cu) != reader->dwarf);
	hash = hash_bytes(&key, sizeof(key));
	id = idmap_find(&reader->function_map, hash, key_equal, reader->functions, &key);
	if (id != IDMAP_NONE)
		return reader->functions[id].function;
	function = describe(reader, named);
	id = symbol_builder_function(reader->builder, &function);
	if (id == SYMBOL_NONE)
		return SYMBOL_NONE;
	mem_grow(reader->functions, reader->functions_count, reader->functions_capacity);
	idmap_add(&reader->function_map, hash, (uint32_t)reader->functions_count);
	reader->functions[reader->functions_count++] = (struct known_function){ key, id };
	return id;
}

/* DWARF 4, 2.17.2: a constant high pc counts from the low pc. */
static bool contiguous_range(struct entry *entry, uint64_t *ret_low, uint64_t *ret_high)
{
	Dwarf_Addr low, high;
	Dwarf_Word len;

	if (!entry->low.form || !entry->high.form || dwarf_formaddr(&entry->low, &low))
		return false;
	if (dwarf_formaddr(&entry->high, &high)) {
		if (dwarf_formudata(&entry->high, &len) || __builtin_add_overflow(low, len, &high))
			return false;
	}
	*ret_low = low;
	*ret_high = high;
	return true;
}

/*
 * The number of a list, or its offset: libdw reads neither without having the section that it is
 * in.
 */
static bool list_number(const struct dwarf_reader *reader, const Dwarf_Attribute *attribute,
			uint64_t *ret)
{
	struct slice info = reader->split.info;
	size_t at = (size_t)((uintptr_t)attribute->valp - (uintptr_t)info.data);
	uint64_t value = 0;

	if (at >= info.len)
		return false;
	if (attribute->form == DW_FORM_sec_offset || attribute->form == DW_FORM_data4) {
		if (info.len - at < 4)
			return false;
		*ret = section_u32((const uint8_t *)info.data + at);
		return true;
	}
	if (attribute->form != DW_FORM_rnglistx)
		return false;
	for (unsigned shift = 0; shift < 63 && at < info.len; shift += 7, at++) {
		uint8_t byte = (uint8_t)info.data[at];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool find_split_list(const struct dwarf_reader *reader, const Dwarf_Attribute *attribute,
			    struct range_list *list)
{
	uint64_t value;

	if (!list_number(reader, attribute, &value))
		return false;
	list->bytes = list->is_dwarf_5 ? reader->split.ranges : reader->sections->ranges;
	if (attribute->form == DW_FORM_rnglistx)
		return range_list_find(list->bytes, value, &list->at);
	list->at = (size_t)(value + (list->is_dwarf_5 ? 0 : reader->split_ranges_base));
	return true;
}

static void add_split_ranges(struct dwarf_reader *reader, struct entry *entry, uint32_t scope)
{
	struct range_list list = {
		.addresses = reader->skeleton.addresses,
		.base = reader->split_base,
		.address_bytes = 8,
		.is_dwarf_5 = reader->skeleton.is_dwarf_5,
	};
	uint64_t low, high;

	if (!find_split_list(reader, &entry->ranges, &list))
		return;
	for (int i = 0; i < RANGES_PER_ENTRY_MAX && !reader->builder->over_budget &&
			range_list_next(&list, &low, &high);
	     i++)
		symbol_builder_range(reader->builder, low, high, scope);
}

static void add_ranges(struct dwarf_reader *reader, Dwarf_Die *die, struct entry *entry,
		       uint32_t scope)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	if (!entry->ranges.form) {
		if (contiguous_range(entry, &low, &high))
			symbol_builder_range(reader->builder, low, high, scope);
		return;
	}
	if (reader->split.dwarf) {
		add_split_ranges(reader, entry, scope);
		return;
	}
	for (int i = 0; i < RANGES_PER_ENTRY_MAX && !reader->builder->over_budget; i++) {
		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			break;
		symbol_builder_range(reader->builder, low, high, scope);
	}
}

/* Makes a scope of a function or inlined call that has code; returns what its children are in. */
static uint32_t add_scope(struct dwarf_reader *reader, Dwarf_Die *die, int tag, uint32_t parent)
{
	struct symbol_scope scope = { .parent = SYMBOL_NONE };
	struct entry entry;
	uint32_t id;

	if (!read_entry(die, &entry) || (!entry.low.form && !entry.ranges.form))
		return parent;
	scope.function = function_of(reader, die, &entry);
	if (scope.function == SYMBOL_NONE)
		return parent;
	if (tag == DW_TAG_inlined_subroutine) {
		scope.parent = parent;
		scope.call_file = file_at(reader, reader->unit_files, number_of(&entry.call_file));
		scope.call_line = number32_of(&entry.call_line);
	}
	id = symbol_builder_scope(reader->builder, &scope);
	if (id == SYMBOL_NONE)
		return parent;
	add_ranges(reader, die, &entry, id);
	return id;
}

/* True if code can be below an entry, and in which scope. */
static bool enter(struct dwarf_reader *reader, Dwarf_Die *die, uint32_t parent, uint32_t *ret_scope)
{
	int tag = dwarf_tag(die);

	*ret_scope = parent;
	switch (tag) {
	case DW_TAG_subprogram:
		*ret_scope = add_scope(reader, die, tag, SYMBOL_NONE);
		/* A lambda's code can be below an inlined function that has no code itself. */
		return *ret_scope != SYMBOL_NONE || !reader->unit_is_c;
	case DW_TAG_inlined_subroutine:
		*ret_scope = add_scope(reader, die, tag, parent);
		return true;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return !reader->unit_is_c;
	default:
		return false;
	}
}

static int check_limits(struct dwarf_reader *reader)
{
	if (reader->builder->over_budget)
		return err_set(reader->err, ERR_LIMIT, "read DWARF: over the memory budget");
	if (++reader->entries > reader->limits->entries)
		return err_set(reader->err, ERR_LIMIT, "read DWARF: more than %" PRIu64 " entries",
			       reader->limits->entries);
	if (reader->entries % DEADLINE_CHECK_ENTRIES)
		return 0;
	if (clock_thread_cpu_ns() > reader->limits->deadline_ns)
		return err_set(reader->err, ERR_DEADLINE,
			       "read DWARF: out of time after %" PRIu64 " entries",
			       reader->entries);
	return 0;
}

/* Goes to the next entry after `level`; entries only ever lie further on, or it is damage. */
static bool next_sibling(struct dwarf_reader *reader, struct walk_level *level)
{
	Dwarf_Off from = dwarf_dieoffset(&level->die);
	int status = dwarf_siblingof(&level->die, &level->die);

	if (status == 0 && dwarf_dieoffset(&level->die) > from)
		return true;
	reader->damaged += status != 1;
	return false;
}

static bool first_child(struct dwarf_reader *reader, Dwarf_Die *parent, Dwarf_Die *ret)
{
	int status = dwarf_child(parent, ret);

	reader->damaged += status < 0;
	return status == 0;
}

static int walk_unit(struct dwarf_reader *reader, Dwarf_Die *unit)
{
	struct walk_level *levels = reader->levels;
	size_t depth = 0;

	if (!first_child(reader, unit, &levels[0].die))
		return 0;
	levels[0].scope = SYMBOL_NONE;
	for (;;) {
		int status = check_limits(reader);
		uint32_t scope;

		if (status)
			return status;
		if (enter(reader, &levels[depth].die, levels[depth].scope, &scope) &&
		    depth + 1 < DEPTH_MAX &&
		    first_child(reader, &levels[depth].die, &levels[depth + 1].die)) {
			levels[++depth].scope = scope;
			continue;
		}
		while (!next_sibling(reader, &levels[depth]))
			if (depth-- == 0)
				return 0;
	}
}

static bool is_c(Dwarf_Die *unit)
{
	int language = dwarf_srclang(unit);

	return language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 ||
	       language == DW_LANG_C11;
}

static uint64_t unit_number(Dwarf_Die *unit, unsigned name, unsigned old_name)
{
	Dwarf_Attribute attribute = { 0 };

	if (!dwarf_attr(unit, name, &attribute))
		dwarf_attr(unit, old_name, &attribute);
	return number_of(&attribute);
}

static bool read_skeleton(struct dwarf_reader *reader, Dwarf_Die *unit, uint8_t address_bytes)
{
	struct split_skeleton *skeleton = &reader->skeleton;
	Dwarf_Attribute name = { 0 };
	Dwarf_Half version;
	Dwarf_Addr low;
	uint8_t type;

	if (!dwarf_attr(unit, DW_AT_dwo_name, &name) &&
	    !dwarf_attr(unit, DW_AT_GNU_dwo_name, &name))
		return false;
	*skeleton = (struct split_skeleton){ .name = formed_text(reader, &name),
					     .directory = unit_directory_of(reader, unit) };
	if (dwarf_cu_info(unit->cu, &version, &type, NULL, NULL, &skeleton->id, NULL, NULL) ||
	    address_bytes != 8 || reader->sections->lines.big_endian)
		return false;
	skeleton->is_dwarf_5 = version >= 5;
	if (!skeleton->is_dwarf_5)
		skeleton->id = unit_number(unit, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id);
	skeleton->addresses =
		slice_tail(reader->sections->addresses,
			   (size_t)unit_number(unit, DW_AT_addr_base, DW_AT_GNU_addr_base));
	reader->split_ranges_base = unit_number(unit, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base);
	reader->split_base = dwarf_lowpc(unit, &low) ? 0 : low;
	return true;
}

/* Walks what was left in a .dwo; *ret_found stays false when it is not to be had. */
static int walk_split(struct dwarf_reader *reader, Dwarf_Die *unit, uint8_t address_bytes,
		      bool *ret_found)
{
	Dwarf *whole = reader->dwarf;
	int status;

	if ((!reader->sections->split.directory && !reader->sections->split.package) ||
	    !read_skeleton(reader, unit, address_bytes) ||
	    split_unit_open(&reader->split, &reader->sections->split, &reader->skeleton, NULL))
		return 0;
	reader->dwarf = reader->split.dwarf;
	reader->unit_is_c = is_c(&reader->split.die);
	reader->generation++;
	status = walk_unit(reader, &reader->split.die);
	reader->dwarf = whole;
	split_unit_close(&reader->split);
	*ret_found = true;
	if (!status && clock_thread_cpu_ns() > reader->limits->deadline_ns)
		status = err_set(reader->err, ERR_DEADLINE, "read DWARF: out of time");
	return status;
}

/* Functions are looked up again and again in one unit, and seldom from another. */
static void forget_functions(struct dwarf_reader *reader)
{
	if (reader->functions_count < KNOWN_FUNCTIONS_MAX)
		return;
	reader->functions_count = 0;
	idmap_clear(&reader->function_map);
}

/* By the ranges that the unit says it has; one that says none may have any. */
static bool may_have_answers(const struct dwarf_reader *reader, Dwarf_Die *unit)
{
	Dwarf_Addr base, low, high;
	bool has_some = false;
	ptrdiff_t at = 0;

	if (!reader->builder->asked)
		return true;
	while ((at = dwarf_ranges(unit, at, &base, &low, &high)) > 0) {
		if (symbol_builder_is_asked(reader->builder, low, high))
			return true;
		has_some = true;
	}
	return !has_some || at < 0;
}

static int read_unit(struct dwarf_reader *reader, Dwarf_Off offset, uint8_t address_bytes)
{
	bool is_split = false;
	Dwarf_Die unit;
	int status;

	if (!dwarf_offdie(reader->dwarf, offset, &unit)) {
		reader->damaged++;
		return 0;
	}
	if (dwarf_tag(&unit) != DW_TAG_compile_unit && dwarf_tag(&unit) != DW_TAG_skeleton_unit)
		return 0;
	if (!may_have_answers(reader, &unit)) {
		reader->builder->has_lines = true; /* some, of which no address is asked for */
		return 0;
	}
	reader->unit_files = read_line_table(reader, &unit, address_bytes);
	reader->unit_is_c = is_c(&unit);
	status = walk_split(reader, &unit, address_bytes, &is_split);
	if (!status && !is_split)
		status = walk_unit(reader, &unit);
	symbol_builder_unit_done(reader->builder);
	forget_functions(reader);
	return status;
}

/* What was read lies in the page cache, and need not also count as this process's memory. */
static void drop_pages(const struct dwarf_reader *reader)
{
	struct slice image = reader->sections->image;

	if (image.len)
		madvise((void *)(uintptr_t)image.data, image.len, MADV_DONTNEED);
}

static int read_units(struct dwarf_reader *reader)
{
	Dwarf_Off offset = 0, dropped = 0, next;
	size_t header_bytes;
	uint8_t address_bytes;
	int found, status = 0;

	while (!status && (found = dwarf_nextcu(reader->dwarf, offset, &next, &header_bytes, NULL,
						&address_bytes, NULL)) == 0) {
		if (next <= offset)
			break;
		status = read_unit(reader, offset + header_bytes, address_bytes);
		offset = next;
		if (offset - dropped >= DROP_BYTES) {
			drop_pages(reader);
			dropped = offset;
		}
	}
	if (!status && found != 1)
		reader->damaged++;
	if (!status && reader->builder->over_budget)
		status = err_set(reader->err, ERR_LIMIT, "read DWARF: over the memory budget");
	return status;
}

/* All tables one after the other: nothing says which unit they are of. */
static int read_lines_alone(struct dwarf_reader *reader)
{
	struct slice section = reader->sections->lines.line;
	uint64_t offset = 0;
	int status = 0;

	while (!status && offset < section.len) {
		struct file_table table = { .first = (uint32_t)reader->files_count };
		struct line_program program;
		uint64_t next = line_program_end(&reader->sections->lines, offset);

		if (next <= offset) {
			reader->damaged++;
			break;
		}
		if (line_program_open(&program, &reader->sections->lines, offset, 8, NULL)) {
			reader->damaged++;
		} else {
			add_files(reader, &table, &program, (struct slice){ "", 0 });
			add_rows(reader, &table, &program, (struct slice){ "", 0 });
		}
		line_program_close(&program);
		reader->files_count = 0;
		offset = next;
		status = check_limits(reader);
	}
	return status;
}

int dwarf_reader_run(Dwarf *dwarf, const struct dwarf_sections *sections,
		     const struct dwarf_limits *limits, struct symbol_builder *builder,
		     uint64_t *ret_damaged, struct err *err)
{
	struct dwarf_reader reader = {
		.dwarf = dwarf,
		.sections = sections,
		.limits = limits,
		.builder = builder,
		.err = err,
		.split = { .fd = -1 },
		.levels = mem_new_array(struct walk_level, DEPTH_MAX),
	};
	int status = dwarf ? read_units(&reader) : 0;

	if (!status && !symbol_builder_has_scopes(builder) && !symbol_builder_has_lines(builder))
		status = read_lines_alone(&reader);
	*ret_damaged = reader.damaged;
	free(reader.levels);
	strbuf_free(&reader.path);
	free(reader.tables);
	idmap_free(&reader.table_map);
	free(reader.files);
	free(reader.functions);
	idmap_free(&reader.function_map);
	return status;
}
