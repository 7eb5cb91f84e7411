/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/gopclntab.h"

#include <elf.h>
#include <inttypes.h>

#include "codec/elf/gopclntab_rule.h"

#define MAGIC_GO_1_2 0xfffffffbu
#define MAGIC_GO_1_16 0xfffffffau
#define MAGIC_GO_1_18 0xfffffff0u
#define MAGIC_GO_1_20 0xfffffff1u
#define HEADER_BYTES_MAX 72u
#define RECORD_BYTES_MAX 48u
#define VALUE_PAIR_BYTES_MAX 10u   /* two numbers of 32 bits */
#define VALUES_MAX 65536u	   /* of one function */
#define SPECIAL_NAME_BYTES_MAX 64u /* longer names are of ordinary functions */
#define CANDIDATES_MAX 256u	   /* looked at closely by gopclntab_find */

/* Words of the module's description (runtime.moduledata), Go 1.18 and later. */
#define MODULE_WORDS 41u
#define MODULE_WORD_FUNCTIONS 17u
#define MODULE_WORD_TEXT 22u
#define MODULE_WORD_FUNCTION_DATA_1_18 38u /* runtime.moduledata.gofunc */
#define MODULE_WORD_FUNCTION_DATA_1_20 40u

struct function {
	uint64_t start;
	uint32_t name_at, values_at;
	uint8_t flags;
	enum gopclntab_kind kind;
};

/* A pass over one table of (value, up to which address). */
struct value_walk {
	struct gopclntab *table;
	uint64_t at; /* in the values */
	uint64_t address;
	int64_t value;
	uint32_t count;
};

static uint64_t load_word(const uint8_t *p)
{
	return section_u64(p);
}

static bool has_relative_entries(const struct gopclntab_layout *layout)
{
	return layout->version >= GOPCLNTAB_GO_1_18;
}

static uint32_t entry_bytes(const struct gopclntab_layout *layout)
{
	return has_relative_entries(layout) ? 8 : 16;
}

/*
 * The header of Go 1.2 is magic, 2 zero bytes, quantum, bytes of a pointer, count of functions,
 * and the table of functions follows; later ones have words: counts of functions and files, since
 * 1.18 the address of the text, then offsets of names, units, files, values, functions.
 */
static int parse_header(const uint8_t *p, size_t len, const char *name,
			struct gopclntab_layout *ret, struct err *err)
{
	const uint8_t *words;

	if (len < 16 || p[4] || p[5] || (p[6] != 1 && p[6] != 4) || p[7] != 8)
		return err_set(err, ERR_INVALID, "parse \"%s\": not a Go function table", name);
	ret->quantum = p[6];
	ret->functions_count = load_word(p + 8);
	switch (section_u32(p)) {
	case MAGIC_GO_1_2:
		ret->version = GOPCLNTAB_GO_1_2;
		ret->functions_at = 16;
		return 0;
	case MAGIC_GO_1_16:
		ret->version = GOPCLNTAB_GO_1_16;
		break;
	case MAGIC_GO_1_18:
		ret->version = GOPCLNTAB_GO_1_18;
		break;
	case MAGIC_GO_1_20:
		ret->version = GOPCLNTAB_GO_1_20;
		break;
	default:
		return err_set(err, ERR_INVALID, "parse \"%s\": unknown version %#x", name,
			       section_u32(p));
	}
	words = p + (has_relative_entries(ret) ? 32 : 24);
	if (len < (size_t)(words + 40 - p))
		return err_set(err, ERR_INVALID, "parse \"%s\": ends in its header", name);
	if (has_relative_entries(ret))
		ret->text = load_word(p + 24);
	ret->names_at = load_word(words);
	ret->units_at = load_word(words + 8);
	ret->files_at = load_word(words + 16);
	ret->values_at = load_word(words + 24);
	ret->functions_at = load_word(words + 32);
	ret->records_at = ret->functions_at;
	return 0;
}

/* The table's first function must lead to a record of the same function. */
static int check_first_record(const struct gopclntab_layout *layout, struct section_reader *reader,
			      uint64_t base, struct err *err)
{
	uint32_t bytes = entry_bytes(layout) / 2;
	uint8_t first[16];
	const uint8_t *p;
	uint64_t record;
	int status =
		section_reader_view(reader, base + layout->functions_at, sizeof(first), &p, err);

	if (status)
		return status;
	memcpy(first, p, sizeof(first));
	record = bytes == 4 ? section_u32(first + 4) : load_word(first + 8);
	if (record > reader->size)
		return err_set(err, ERR_INVALID, "parse \"%s\": first function at %#" PRIx64,
			       reader->name, record);
	status = section_reader_view(reader, base + layout->records_at + record, bytes, &p, err);
	if (status)
		return status;
	if (memcmp(p, first, bytes))
		return err_set(err, ERR_INVALID,
			       "parse \"%s\": the first function's record is of another one",
			       reader->name);
	return 0;
}

/* Before Go 1.18 addresses are whole, and the dynamic linker's work in some PIE files. */
static int check_last_address(const struct gopclntab_layout *layout, struct section_reader *reader,
			      uint64_t base, struct err *err)
{
	const uint8_t *p;
	int status = section_reader_view(
		reader, base + layout->functions_at + layout->functions_count * entry_bytes(layout),
		entry_bytes(layout) / 2, &p, err);

	if (status || has_relative_entries(layout) || load_word(p))
		return status;
	return err_set(err, ERR_UNSUPPORTED, "parse \"%s\": its addresses are not in the file",
		       reader->name);
}

static int read_layout(struct section_reader *reader, uint64_t base, uint16_t machine,
		       struct gopclntab_layout *ret, struct err *err)
{
	struct gopclntab_layout layout = { .machine = machine };
	uint64_t size = reader->size - base;
	const uint8_t *header;
	size_t len;
	int status = section_reader_view_some(reader, base, HEADER_BYTES_MAX, &header, &len, err);

	if (!status)
		status = parse_header(header, len, reader->name, &layout, err);
	if (status)
		return status;
	if ((machine != EM_X86_64 || layout.quantum != 1) &&
	    (machine != EM_AARCH64 || layout.quantum != 4))
		return err_set(err, ERR_UNSUPPORTED,
			       "parse \"%s\": instructions of %u bytes on machine %u", reader->name,
			       layout.quantum, machine);
	if (!layout.functions_count || layout.functions_count > size / entry_bytes(&layout) ||
	    layout.functions_at > size || layout.names_at > size || layout.values_at > size)
		return err_set(err, ERR_INVALID,
			       "parse \"%s\": %" PRIu64 " functions do not fit %" PRIu64 " bytes",
			       reader->name, layout.functions_count, size);
	status = check_first_record(&layout, reader, base, err);
	if (!status)
		status = check_last_address(&layout, reader, base, err);
	if (!status)
		*ret = layout;
	return status;
}

int gopclntab_open(struct gopclntab *ret, const struct section_reader *section, uint16_t machine,
		   struct err *err)
{
	ret->damaged_count = 0;
	section_reader_open_part(&ret->functions, section, 0, section->size);
	section_reader_open_part(&ret->records, section, 0, section->size);
	section_reader_open_part(&ret->values, section, 0, section->size);
	section_reader_open_part(&ret->names, section, 0, section->size);
	return read_layout(&ret->functions, 0, machine, &ret->layout, err);
}

/* True if the 8 bytes may begin a table. */
static bool is_candidate(const uint8_t *p)
{
	uint32_t magic = section_u32(p);

	return (magic == MAGIC_GO_1_2 || magic == MAGIC_GO_1_16 || magic == MAGIC_GO_1_18 ||
		magic == MAGIC_GO_1_20) &&
	       !p[4] && !p[5] && p[7] == 8;
}

int gopclntab_find(struct section_reader *range, uint16_t machine, uint64_t *ret_offset,
		   struct err *err)
{
	unsigned candidates = 0;
	const uint8_t *p;
	size_t len, i;

	/* Linkers align the table to 32; 8 is what its words need. */
	for (uint64_t at = -range->address % 8; at < range->size; at += i) {
		struct gopclntab_layout layout;
		int status = section_reader_view_some(range, at, SECTION_READER_WINDOW_BYTES, &p,
						      &len, err);

		if (status)
			return status;
		for (i = 0; i + 8 <= len && !is_candidate(p + i);)
			i += 8;
		if (i + 8 > len && i)
			continue;
		if (i + 8 > len || candidates++ == CANDIDATES_MAX)
			break;
		status = read_layout(range, at + i, machine, &layout, err);
		if (!status)
			*ret_offset = at + i;
		if (!status || status == -ERR_IO)
			return status;
		i += 8;
	}
	return err_set(err, ERR_NOT_FOUND, "search \"%s\": no Go function table", range->name);
}

/* Slices are pointer, length, capacity; the last two are in the file even when pointers are not. */
static bool is_module(const struct gopclntab *table, const uint8_t *p)
{
	uint64_t pointer = load_word(p);

	if (load_word(p + 8 * MODULE_WORD_FUNCTIONS) != table->layout.functions_count + 1)
		return false;
	if (pointer && pointer != table->functions.address)
		return false;
	for (unsigned word = 2; word <= MODULE_WORD_FUNCTIONS; word += 3) {
		uint64_t len = load_word(p + 8 * word);

		if (!len || len != load_word(p + 8 * (word + 1)))
			return false;
	}
	return true;
}

static int find_relocated(struct section_reader *relocations, uint16_t machine, uint64_t address,
			  uint64_t *ret, struct err *err)
{
	uint32_t relative = machine == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
	const uint8_t *p;
	size_t len;

	for (uint64_t at = 0; at < relocations->size; at += len) {
		int status = section_reader_view_some(relocations, at, 512 * sizeof(Elf64_Rela), &p,
						      &len, err);

		if (status)
			return status;
		len -= len % sizeof(Elf64_Rela);
		if (!len)
			break;
		for (size_t i = 0; i < len; i += sizeof(Elf64_Rela)) {
			if (load_word(p + i) != address || section_u32(p + i + 8) != relative)
				continue;
			*ret = load_word(p + i + 16);
			return 0;
		}
	}
	return err_set(err, ERR_NOT_FOUND, "search \"%s\": nothing relocates %#" PRIx64,
		       relocations->name, address);
}

/* One word of the module's description. */
static int find_module_word(const struct gopclntab *table, unsigned word,
			    struct section_reader *data, struct section_reader *relocations,
			    uint64_t *ret, struct err *err)
{
	const size_t step = SECTION_READER_WINDOW_BYTES - 8 * MODULE_WORDS;
	const uint8_t *p;
	size_t len;

	for (uint64_t at = -data->address % 8; at < data->size; at += step) {
		int status = section_reader_view_some(data, at, SECTION_READER_WINDOW_BYTES, &p,
						      &len, err);

		if (status)
			return status;
		for (size_t i = 0; i + 8 * MODULE_WORDS <= len; i += 8) {
			uint64_t value;

			if (!is_module(table, p + i))
				continue;
			value = load_word(p + i + 8 * word);
			if (!value && relocations)
				return find_relocated(relocations, table->layout.machine,
						      data->address + at + i + 8 * word, ret, err);
			if (!value)
				continue;
			*ret = value;
			return 0;
		}
	}
	return err_set(err, ERR_NOT_FOUND, "search \"%s\": no description of a Go module",
		       data->name);
}

int gopclntab_find_text(const struct gopclntab *table, struct section_reader *data,
			struct section_reader *relocations, uint64_t *ret, struct err *err)
{
	return find_module_word(table, MODULE_WORD_TEXT, data, relocations, ret, err);
}

int gopclntab_find_function_data(const struct gopclntab *table, struct section_reader *data,
				 struct section_reader *relocations, uint64_t *ret, struct err *err)
{
	unsigned word = table->layout.version == GOPCLNTAB_GO_1_18 ? MODULE_WORD_FUNCTION_DATA_1_18
								   : MODULE_WORD_FUNCTION_DATA_1_20;

	if (table->layout.version < GOPCLNTAB_GO_1_18)
		return err_set(err, ERR_UNSUPPORTED,
			       "search \"%s\": Go before 1.18 has whole addresses", data->name);
	return find_module_word(table, word, data, relocations, ret, err);
}

/* Address of a function, and where its record is; the last entry but one has an address alone. */
static int read_entry(struct gopclntab *table, uint64_t index, uint64_t *ret_start,
		      uint64_t *ret_record, struct err *err)
{
	uint32_t bytes = entry_bytes(&table->layout);
	bool is_end = index == table->layout.functions_count;
	const uint8_t *p;
	int status =
		section_reader_view(&table->functions, table->layout.functions_at + index * bytes,
				    is_end ? bytes / 2 : bytes, &p, err);

	if (status)
		return status;
	if (has_relative_entries(&table->layout)) {
		*ret_start = table->layout.text + section_u32(p);
		*ret_record = is_end ? 0 : section_u32(p + 4);
	} else {
		*ret_start = load_word(p);
		*ret_record = is_end ? 0 : load_word(p + 8);
	}
	return 0;
}

static int read_name(struct gopclntab *table, uint32_t name_at, char *ret, size_t size,
		     struct err *err)
{
	const uint8_t *p;
	size_t len;
	int status = section_reader_view_some(&table->names, table->layout.names_at + name_at,
					      size - 1, &p, &len, err);

	if (status)
		return status;
	len = strnlen((const char *)p, len);
	memcpy(ret, p, len);
	ret[len] = 0;
	return 0;
}

/* The record (runtime._func): entry, then numbers of 32 bits, then single bytes. */
static int read_record(struct gopclntab *table, uint64_t start, uint64_t record,
		       struct function *ret, struct err *err)
{
	static const uint8_t flags_at[] = {
		[GOPCLNTAB_GO_1_2] = 0, /* none */
		[GOPCLNTAB_GO_1_16] = 41,
		[GOPCLNTAB_GO_1_18] = 37,
		[GOPCLNTAB_GO_1_20] = 41,
	};
	uint8_t flags = flags_at[table->layout.version];
	uint32_t fields = has_relative_entries(&table->layout) ? 4 : 8;
	char name[SPECIAL_NAME_BYTES_MAX];
	const uint8_t *p;
	size_t len;
	int status;

	if (record > table->records.size)
		return err_set(err, ERR_INVALID, "read \"%s\": function record at %#" PRIx64,
			       table->records.name, record);
	status = section_reader_view_some(&table->records, table->layout.records_at + record,
					  RECORD_BYTES_MAX, &p, &len, err);
	if (status)
		return status;
	if (len < fields + 28u || len <= flags)
		return err_set(err, ERR_INVALID, "read \"%s\": function record at %#" PRIx64,
			       table->records.name, record);
	*ret = (struct function){
		.start = start,
		.name_at = section_u32(p + fields),
		.values_at = section_u32(p + fields + 12),
		.flags = flags ? p[flags] : 0,
	};
	status = read_name(table, ret->name_at, name, sizeof(name), err);
	if (!status)
		ret->kind = gopclntab_kind_of(&table->layout, name, ret->flags);
	return status;
}

/*
 * Callers are looked up by the byte before the address they return to. A handler returns to the
 * very start of the signal trampoline, so that takes the byte before from its neighbour.
 */
static uint64_t first_address(const struct function *function)
{
	return function->start - (function->kind == GOPCLNTAB_SIGNAL_RETURN && function->start);
}

/* A damaged record gives a function without rows that begins where the entry says. */
static int read_function(struct gopclntab *table, uint64_t index, struct function *ret,
			 struct err *err)
{
	uint64_t start, record;
	int status = read_entry(table, index, &start, &record, err);

	if (status)
		return status;
	*ret = (struct function){ .start = start };
	if (index == table->layout.functions_count)
		return 0;
	return read_record(table, start, record, ret, err);
}

int gopclntab_functions(struct gopclntab *table, const struct unwind_function_sink *sink,
			struct err *err)
{
	uint64_t pending_start = 0, pending_index = 0;
	bool is_pending = false;

	table->damaged_count = 0;
	for (uint64_t i = 0; i <= table->layout.functions_count; i++) {
		struct function function = { .start = 0 };
		int status = read_function(table, i, &function, err);
		uint64_t start = first_address(&function);

		if (status == -ERR_IO)
			return status;
		if (status || start < pending_start)
			table->damaged_count++;
		if (start < pending_start)
			continue;
		if (is_pending && start > pending_start) {
			int result =
				sink->function(sink->context, pending_start, start, pending_index);

			if (result)
				return result;
		}
		/* C functions that Go's linker took in have no values: others know their rules. */
		is_pending = function.values_at != 0;
		pending_start = start;
		pending_index = i;
	}
	return 0;
}

/* The next byte of a number in base 128, at most 5 of them. */
static bool parse_varint(const uint8_t *p, size_t len, size_t *at, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= len)
			return false;
		byte = p[(*at)++];
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* 1 and the address up to which walk->value holds, 0 at the end, or a negative code. */
static int next_value(struct value_walk *walk, uint64_t *ret_end, struct err *err)
{
	struct section_reader *values = &walk->table->values;
	uint32_t change, distance;
	const uint8_t *p;
	size_t len, used = 0;
	uint64_t bytes;
	int status =
		section_reader_view_some(values, walk->at, VALUE_PAIR_BYTES_MAX, &p, &len, err);

	if (status)
		return status;
	if (!parse_varint(p, len, &used, &change))
		goto damaged;
	if (!change && walk->count)
		return 0;
	if (!parse_varint(p, len, &used, &distance) || !distance || walk->count == VALUES_MAX)
		goto damaged;
	bytes = (uint64_t)distance * walk->table->layout.quantum;
	if (bytes > UINT64_MAX - walk->address)
		goto damaged;
	walk->count++;
	walk->at += used;
	walk->value += (int32_t)(change & 1 ? ~(change >> 1) : change >> 1);
	walk->address += bytes;
	*ret_end = walk->address;
	return 1;
damaged:
	return err_set(err, ERR_INVALID, "read \"%s\": damaged stack sizes at offset %" PRIu64,
		       values->name, walk->at);
}

static struct value_walk walk_start(struct gopclntab *table, const struct function *function)
{
	return (struct value_walk){
		.table = table,
		.at = table->layout.values_at + function->values_at,
		.address = function->start,
		.value = -1,
	};
}

static int has_frame(struct gopclntab *table, const struct function *function, bool *ret,
		     struct err *err)
{
	struct value_walk walk = walk_start(table, function);
	uint64_t end;
	int status;

	*ret = false;
	while ((status = next_value(&walk, &end, err)) == 1)
		*ret |= walk.value > 0;
	return status;
}

/* Gives a row unless it says what the one before says. */
static int give_row(const struct unwind_row_sink *sink, uint64_t address,
		    const struct unwind_rule *rule, struct unwind_rule *last, bool is_first)
{
	if (!is_first && !memcmp(rule, last, sizeof(*rule)))
		return 0;
	*last = *rule;
	return sink->row(sink->context, address, rule);
}

int gopclntab_rows(struct gopclntab *table, uint64_t cookie, const struct unwind_row_sink *sink,
		   struct err *err)
{
	const struct gopclntab_layout *layout = &table->layout;
	bool is_framed = false, was_framed = false;
	struct unwind_rule rule, last;
	struct function function, next = { .start = 0 };
	struct value_walk walk;
	uint64_t start, end, limit;
	int status;

	if (cookie >= layout->functions_count)
		return err_set(err, ERR_INVALID, "read \"%s\": no function %" PRIu64,
			       table->functions.name, cookie);
	status = read_function(table, cookie + 1, &next, err);
	if (status && status != -ERR_INVALID)
		return status;
	status = read_function(table, cookie, &function, err);
	if (!status && gopclntab_leaves_stack(function.kind))
		status = has_frame(table, &function, &is_framed, err);
	if (status)
		return status;
	start = first_address(&function);
	limit = first_address(&next);
	walk = walk_start(table, &function);
	while (start < limit && (status = next_value(&walk, &end, err)) == 1) {
		int64_t bytes = walk.value;
		bool is_first = walk.count == 1;

		if (end > limit)
			end = limit;
		/*
		 * A prologue saves the frame pointer with the instruction after the one that makes
		 * the frame, and then changes it. Since Go 1.21 on x86-64 a push does the first
		 * two.
		 */
		if (bytes > 0 && !was_framed && end - start > layout->quantum &&
		    (bytes != 8 || layout->version != GOPCLNTAB_GO_1_20 ||
		     gopclntab_leaves_stack(function.kind))) {
			rule = gopclntab_rule(layout, function.kind, bytes, false, is_framed);
			status = give_row(sink, start, &rule, &last, is_first);
			if (status)
				return status;
			start += layout->quantum;
			is_first = false;
		}
		was_framed |= bytes > 0;
		rule = gopclntab_rule(layout, function.kind, bytes, bytes > 0, is_framed);
		status = give_row(sink, start, &rule, &last, is_first);
		if (status)
			return status;
		start = end;
	}
	return status < 0 ? status : 0;
}

int gopclntab_name(struct gopclntab *table, uint64_t address,
		   char ret_name[GOPCLNTAB_NAME_BYTES_MAX], uint64_t *ret_start, struct err *err)
{
	uint64_t low = 0, high = table->layout.functions_count, start, record;
	struct function function = { .start = 0 };
	int status;

	status = read_entry(table, high, &start, &record, err);
	if (!status && address >= start)
		return err_set(err, ERR_NOT_FOUND, "search \"%s\": no function at %#" PRIx64,
			       table->functions.name, address);
	while (!status && low < high) { /* the first function after the address */
		uint64_t middle = low + (high - low) / 2;

		status = read_entry(table, middle, &start, &record, err);
		if (start > address)
			high = middle;
		else
			low = middle + 1;
	}
	if (status)
		return status;
	if (!low)
		return err_set(err, ERR_NOT_FOUND, "search \"%s\": no function at %#" PRIx64,
			       table->functions.name, address);
	status = read_function(table, low - 1, &function, err);
	if (!status)
		status =
			read_name(table, function.name_at, ret_name, GOPCLNTAB_NAME_BYTES_MAX, err);
	if (!status)
		*ret_start = function.start;
	return status;
}
