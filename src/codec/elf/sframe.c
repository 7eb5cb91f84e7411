/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/sframe.h"

#include <elf.h>
#include <inttypes.h>

#define MAGIC 0xdee2u
#define FLAG_STARTS_FROM_FIELD 4u
#define ABI_ARM64_LITTLE 2u
#define ABI_X86_64_LITTLE 3u
#define HEADER_BYTES 28u
#define ATTRIBUTE_BYTES 5u /* of a function, before its rows, in version 3 */
#define WORDS_MAX 15u	   /* of a row: its count has 4 bits */
#define ROW_BYTES_MAX (4u + 1u + WORDS_MAX * 4u)
#define PLT_ENTRY_BYTES 16u

/* A function descriptor entry. */
struct function {
	uint64_t start;
	uint32_t size;
	uint32_t rows_count;
	uint64_t rows_at;	/* offset in the section */
	uint8_t address_bytes;	/* of a row's start */
	uint8_t repeated_bytes; /* not 0: rows are of each block of that size */
	bool is_flexible, is_signal;
};

/* A frame row entry. */
struct row {
	uint32_t start; /* from the function's start, or the block's */
	bool is_sp_based, is_mangled;
	unsigned words_count, word_bytes;
	uint32_t words[WORDS_MAX]; /* as they stand, without sign */
};

static uint64_t function_entry_bytes(const struct sframe *table)
{
	return table->version == 1 ? 17 : table->version == 2 ? 20 : 16;
}

static int check_header(const struct section_reader *section, const uint8_t *p, uint16_t machine,
			struct err *err)
{
	if (section_u16(p) != MAGIC)
		return err_set(err, ERR_INVALID, "parse \"%s\": no SFrame section (magic %#x)",
			       section->name, section_u16(p));
	if (p[2] < 1 || p[2] > 3)
		return err_set(err, ERR_UNSUPPORTED, "parse \"%s\": version %u of SFrame",
			       section->name, p[2]);
	if ((machine != EM_X86_64 || p[4] != ABI_X86_64_LITTLE) &&
	    (machine != EM_AARCH64 || p[4] != ABI_ARM64_LITTLE))
		return err_set(err, ERR_UNSUPPORTED, "parse \"%s\": ABI %u on machine %u",
			       section->name, p[4], machine);
	return 0;
}

int sframe_open(struct sframe *ret, const struct section_reader *section, uint16_t machine,
		struct err *err)
{
	const uint8_t *p;
	uint64_t after_header;
	int status;

	section_reader_open_part(&ret->functions, section, 0, section->size);
	section_reader_open_part(&ret->rows, section, 0, section->size);
	status = section_reader_view(&ret->functions, 0, HEADER_BYTES, &p, err);
	if (!status)
		status = check_header(section, p, machine, err);
	if (status)
		return status;
	after_header = HEADER_BYTES + (uint64_t)p[7];
	ret->machine = machine;
	ret->version = p[2];
	ret->starts_from_field = p[3] & FLAG_STARTS_FROM_FIELD;
	ret->ra_offset = (int8_t)p[6];
	ret->functions_count = section_u32(p + 8);
	ret->damaged_count = 0;
	ret->functions_at = after_header + section_u32(p + 20);
	ret->rows_at = after_header + section_u32(p + 24);
	ret->rows_end = ret->rows_at + section_u32(p + 16);
	if (ret->rows_end > section->size ||
	    ret->functions_at + ret->functions_count * function_entry_bytes(ret) > section->size)
		return err_set(err, ERR_INVALID,
			       "parse \"%s\": %u functions, rows up to %" PRIu64 ", in %" PRIu64
			       " bytes",
			       section->name, ret->functions_count, ret->rows_end, section->size);
	return 0;
}

static int set_info(const struct sframe *table, uint8_t info, struct function *function,
		    struct err *err)
{
	if ((info & 15) > 2)
		return err_set(err, ERR_INVALID, "read \"%s\": rows of type %u", table->rows.name,
			       info & 15);
	function->address_bytes = (uint8_t)(1u << (info & 15));
	if (info & 16 && !function->repeated_bytes)
		return err_set(err, ERR_INVALID, "read \"%s\": blocks of no bytes",
			       table->rows.name);
	if (!(info & 16))
		function->repeated_bytes = 0;
	return 0;
}

/* Since version 3 what belongs to the rows is before them. */
static int read_attributes(struct sframe *table, struct function *function, struct err *err)
{
	const uint8_t *p;
	int status = section_reader_view(&table->rows, function->rows_at, ATTRIBUTE_BYTES, &p, err);

	if (status)
		return status;
	function->rows_at += ATTRIBUTE_BYTES;
	function->rows_count = section_u16(p);
	function->is_signal = p[2] >> 7;
	function->is_flexible = (p[3] & 31) == 1;
	function->repeated_bytes = p[4];
	if ((p[3] & 31) > 1)
		return err_set(err, ERR_INVALID, "read \"%s\": function of type %u",
			       table->rows.name, p[3] & 31);
	return set_info(table, p[2], function, err);
}

static int read_function(struct sframe *table, uint64_t index, struct function *ret,
			 struct err *err)
{
	uint64_t at = table->functions_at + index * function_entry_bytes(table);
	uint64_t base = table->functions.address + (table->starts_from_field ? at : 0);
	struct function function = { 0 };
	const uint8_t *p;
	int status =
		section_reader_view(&table->functions, at, function_entry_bytes(table), &p, err);

	if (status)
		return status;
	if (table->version == 3) {
		function.start = base + section_u64(p);
		p += 8;
	} else {
		function.start = base + (uint64_t)(int64_t)(int32_t)section_u32(p);
		p += 4;
	}
	function.size = section_u32(p);
	function.rows_at = table->rows_at + section_u32(p + 4);
	if (function.start + function.size < function.start)
		return err_set(err, ERR_INVALID, "read \"%s\": function of %u bytes at %#" PRIx64,
			       table->functions.name, function.size, function.start);
	if (table->version == 3) {
		status = read_attributes(table, &function, err);
	} else {
		function.rows_count = section_u32(p + 8);
		function.repeated_bytes = table->version == 2 ? p[13] : PLT_ENTRY_BYTES;
		status = set_info(table, p[12], &function, err);
	}
	if (!status)
		*ret = function;
	return status;
}

int sframe_functions(struct sframe *table, const struct unwind_function_sink *sink, struct err *err)
{
	table->damaged_count = 0;
	for (uint64_t i = 0; i < table->functions_count; i++) {
		struct function function;
		int status = read_function(table, i, &function, err);

		if (status == -ERR_IO)
			return status;
		if (status) {
			table->damaged_count++;
			continue;
		}
		if (!function.size || !function.rows_count)
			continue;
		status = sink->function(sink->context, function.start,
					function.start + function.size, i);
		if (status)
			return status;
	}
	return 0;
}

static uint32_t load(const uint8_t *p, unsigned bytes)
{
	return bytes == 1 ? p[0] : bytes == 2 ? section_u16(p) : section_u32(p);
}

static int32_t offset_at(const struct row *row, unsigned word)
{
	uint32_t value = row->words[word];

	return row->word_bytes == 1   ? (int8_t)value
	       : row->word_bytes == 2 ? (int16_t)value
				      : (int32_t)value;
}

/* Reads the row at *at of the section and moves on; row addresses rise. */
static int read_row(struct sframe *table, const struct function *function, uint64_t *at,
		    struct row *ret, struct err *err)
{
	unsigned address_bytes = function->address_bytes, used;
	const uint8_t *p;
	size_t len = 0;
	int status = section_reader_view_some(&table->rows, *at, ROW_BYTES_MAX, &p, &len, err);

	if (status)
		return status;
	if (*at > table->rows_end)
		len = 0;
	else if (len > table->rows_end - *at)
		len = table->rows_end - *at;
	if (len < address_bytes + 1)
		goto damaged;
	ret->start = load(p, address_bytes);
	ret->is_sp_based = p[address_bytes] & 1;
	ret->is_mangled = p[address_bytes] >> 7;
	ret->words_count = p[address_bytes] >> 1 & 15;
	ret->word_bytes = 1u << (p[address_bytes] >> 5 & 3);
	used = address_bytes + 1;
	if (ret->word_bytes > 4 || len < used + (size_t)ret->words_count * ret->word_bytes)
		goto damaged;
	for (unsigned i = 0; i < ret->words_count; i++, used += ret->word_bytes)
		ret->words[i] = load(p + used, ret->word_bytes);
	*at += used;
	return 0;
damaged:
	return err_set(err, ERR_INVALID, "read \"%s\": damaged row at offset %" PRIu64,
		       table->rows.name, *at);
}

static uint8_t base_register(const struct sframe *table, const struct row *row)
{
	if (table->machine == EM_X86_64)
		return row->is_sp_based ? UNWIND_X86_SP : UNWIND_X86_FP;
	return row->is_sp_based ? UNWIND_ARM64_SP : UNWIND_ARM64_FP;
}

/* Words are offsets: of the CFA, on arm64 of the return address, of the frame pointer. */
static struct unwind_rule plain_rule(const struct sframe *table, const struct row *row)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_register = base_register(table, row),
		.cfa_offset = offset_at(row, 0),
	};
	unsigned next = 1;

	if (table->machine == EM_X86_64) {
		rule.ra = UNWIND_VALUE_AT_CFA;
		rule.ra_offset = table->ra_offset;
	} else if (next < row->words_count) {
		rule.ra = UNWIND_VALUE_AT_CFA;
		rule.ra_offset = offset_at(row, next++);
	}
	if (next < row->words_count) {
		rule.fp = UNWIND_VALUE_AT_CFA;
		rule.fp_offset = offset_at(row, next);
	}
	return rule;
}

/* A control word (register << 3 | dereference << 1 | has register) and an offset. */
struct location {
	bool has_register, is_dereferenced;
	uint32_t number;
	int32_t offset;
};

/* False when there is none: no more words, or a word of padding. */
static bool next_location(const struct row *row, unsigned *next, struct location *ret)
{
	uint32_t control;

	if (*next >= row->words_count)
		return false;
	control = row->words[(*next)++];
	if (!control || *next >= row->words_count)
		return false;
	*ret = (struct location){
		.has_register = control & 1,
		.is_dereferenced = control >> 1 & 1,
		.number = control >> 3,
		.offset = offset_at(row, (*next)++),
	};
	return true;
}

static uint8_t register_of(const struct location *location)
{
	return location->number < UNWIND_REGISTERS ? (uint8_t)location->number : 0;
}

static enum unwind_value value_of(const struct location *location)
{
	if (location->has_register && location->number >= UNWIND_REGISTERS)
		return UNWIND_VALUE_UNSUPPORTED;
	if (location->has_register)
		return location->is_dereferenced ? UNWIND_VALUE_AT_REGISTER
						 : UNWIND_VALUE_IN_REGISTER;
	return location->is_dereferenced ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_CFA;
}

static struct unwind_rule flexible_rule(const struct sframe *table, const struct row *row)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_UNSUPPORTED };
	struct location at;
	unsigned next = 0;

	if (!next_location(row, &next, &at) || !at.has_register || at.number >= UNWIND_REGISTERS)
		return rule;
	rule.cfa = at.is_dereferenced ? UNWIND_CFA_DEREF : UNWIND_CFA_REGISTER;
	rule.cfa_register = register_of(&at);
	rule.cfa_offset = at.offset;
	if (next_location(row, &next, &at)) {
		rule.ra = value_of(&at);
		rule.ra_register = at.has_register ? register_of(&at) : 0;
		rule.ra_offset = at.offset;
	} else if (table->machine == EM_X86_64) {
		rule.ra = UNWIND_VALUE_AT_CFA;
		rule.ra_offset = table->ra_offset;
	}
	if (next_location(row, &next, &at)) {
		rule.fp = value_of(&at);
		rule.fp_register = at.has_register ? register_of(&at) : 0;
		rule.fp_offset = at.offset;
	}
	return rule;
}

static struct unwind_rule rule_of(const struct sframe *table, const struct function *function,
				  const struct row *row)
{
	struct unwind_rule rule;

	if (!row->words_count) /* the return address is undefined */
		return (struct unwind_rule){ .cfa = UNWIND_CFA_END };
	rule = function->is_flexible ? flexible_rule(table, row) : plain_rule(table, row);
	if (function->is_signal)
		rule.flags |= UNWIND_RULE_SIGNAL;
	if (row->is_mangled && table->machine == EM_AARCH64)
		rule.flags |= UNWIND_RULE_PAC;
	return rule;
}

/* The rows once, from `base`; those at or after `limit` are left out. */
static int give_rows(struct sframe *table, const struct function *function, uint64_t base,
		     uint64_t limit, const struct unwind_row_sink *sink, struct err *err)
{
	uint64_t at = function->rows_at, next_start = 0;

	for (uint32_t i = 0; i < function->rows_count; i++) {
		struct unwind_rule rule;
		struct row row;
		int status = read_row(table, function, &at, &row, err);

		if (status)
			return status;
		if (row.start < next_start)
			return err_set(err, ERR_INVALID,
				       "read \"%s\": rows of %#" PRIx64 " are not in order",
				       table->rows.name, function->start);
		if (row.start >= limit - base)
			return 0;
		next_start = (uint64_t)row.start + 1;
		rule = rule_of(table, function, &row);
		status = sink->row(sink->context, base + row.start, &rule);
		if (status)
			return status;
	}
	return 0;
}

/*
 * The usual rows of procedure linkage tables say what one rule can: the CFA is 8 further from some
 * byte of each 16 on. True when they do.
 */
static int find_plt_rule(struct sframe *table, const struct function *function,
			 struct unwind_rule *ret, bool *ret_found, struct err *err)
{
	struct unwind_rule first, second;
	uint64_t at = function->rows_at;
	struct row row;
	int status;

	*ret_found = false;
	if (function->repeated_bytes != PLT_ENTRY_BYTES || function->rows_count != 2 ||
	    function->start % PLT_ENTRY_BYTES)
		return 0;
	status = read_row(table, function, &at, &row, err);
	if (status || row.start)
		return status;
	first = rule_of(table, function, &row);
	status = read_row(table, function, &at, &row, err);
	if (status || !row.start || row.start >= PLT_ENTRY_BYTES ||
	    first.cfa != UNWIND_CFA_REGISTER)
		return status;
	second = rule_of(table, function, &row);
	second.cfa_offset -= second.cfa_offset > INT32_MIN + 8 ? 8 : 0;
	if (memcmp(&first, &second, sizeof(first)) != 0)
		return 0;
	*ret = first;
	ret->cfa = UNWIND_CFA_PLT;
	ret->cfa_extra = (int8_t)row.start;
	*ret_found = true;
	return 0;
}

int sframe_rows(struct sframe *table, uint64_t cookie, const struct unwind_row_sink *sink,
		struct err *err)
{
	struct function function;
	struct unwind_rule plt;
	uint64_t end, blocks = 1;
	bool is_plt = false;
	int status;

	if (cookie >= table->functions_count)
		return err_set(err, ERR_INVALID, "read \"%s\": no function %" PRIu64,
			       table->functions.name, cookie);
	status = read_function(table, cookie, &function, err);
	if (status)
		return status;
	end = function.start + function.size;
	if (function.repeated_bytes) {
		blocks = ((uint64_t)function.size + function.repeated_bytes - 1) /
			 function.repeated_bytes;
		status = find_plt_rule(table, &function, &plt, &is_plt, err);
	}
	if (status)
		return status;
	if (is_plt)
		return sink->row(sink->context, function.start, &plt);
	if (blocks * function.rows_count > SFRAME_ROWS_MAX)
		return err_set(err, ERR_LIMIT,
			       "read \"%s\": function at %#" PRIx64 " has more than %u rows",
			       table->rows.name, function.start, SFRAME_ROWS_MAX);
	if (!function.repeated_bytes)
		return give_rows(table, &function, function.start, end, sink, err);
	for (uint64_t block = function.start; block < end && !status;
	     block += function.repeated_bytes) {
		uint64_t limit = block + function.repeated_bytes;

		status = give_rows(table, &function, block, limit < end ? limit : end, sink, err);
	}
	return status;
}
