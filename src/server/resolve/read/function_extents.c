/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/function_extents.h"

#include <gelf.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/elf/cfi.h"
#include "server/resolve/read/padded_functions.h"

#define EXTENTS_MAX ((size_t)1 << 24)
#define CODE_BYTES_MAX ((uint64_t)4 << 30) /* that is searched for jumps */
#define END_OF_LIST 1
#define X86_CFA_AT_ENTRY 8 /* the return address was pushed */
#define PAD_BYTES 4
#define GAP_BYTES_MIN 32 /* less is what fills up to the next function */
#define X86_ENDBR64 0xfa1e0ff3u
#define ARM64_BTI_C 0xd503245fu
#define ARM64_BTI_JC 0xd50324dfu

/* What one piece of unwind information is for. */
struct extent {
	uint64_t low, high;
	uint64_t cookie;
	uint64_t owner;	     /* start of the function that jumps into it, while has_jump */
	bool has_jump;	     /* from one function, */
	bool has_others;     /* or from several */
	bool is_conditional; /* some jump is, */
	bool is_entered;     /* or goes to its start */
	bool is_called;
	bool is_part; /* the frame at its start is not what a call leaves */
};

struct extents {
	struct extent *items; /* sorted, once all are there */
	size_t count, capacity;
	uint16_t machine;
	struct symbol_builder *builder;
	uint64_t gap_bytes,
		gap_starts; /* what nothing is known of, and starts of functions in it */
};

enum branch { BRANCH_CALL, BRANCH_JUMP, BRANCH_CONDITIONAL };

static int add_extent(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	struct extents *extents = context;

	if (end <= start)
		return 0;
	if (extents->count == EXTENTS_MAX)
		return END_OF_LIST;
	mem_grow(extents->items, extents->count, extents->capacity);
	extents->items[extents->count++] =
		(struct extent){ .low = start, .high = end, .cookie = cookie };
	return 0;
}

/* Whether the frame at the first instruction is not what a call leaves. */
static int look_at_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct extent *extent = context;
	bool is_x86 = rule->cfa_register == UNWIND_X86_SP || rule->cfa_register == UNWIND_X86_FP;

	if (address != extent->low || rule->cfa != UNWIND_CFA_REGISTER ||
	    rule->flags & UNWIND_RULE_SIGNAL)
		return END_OF_LIST;
	if (is_x86)
		extent->is_part =
			rule->cfa_register != UNWIND_X86_SP || rule->cfa_offset != X86_CFA_AT_ENTRY;
	else
		extent->is_part = rule->cfa_register != UNWIND_ARM64_SP || rule->cfa_offset ||
				  rule->ra != UNWIND_VALUE_SAME;
	return END_OF_LIST;
}

static int compare_extents(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->high > y->high) - (x->high < y->high);
}

static void sort_out(struct cfi *cfi, struct extents *extents)
{
	for (size_t i = 0; i < extents->count; i++) {
		const struct unwind_row_sink sink = { look_at_row, &extents->items[i] };

		if (cfi_rows(cfi, extents->items[i].cookie, &sink, NULL) < 0)
			extents->items[i].is_part = false;
	}
	if (extents->count)
		qsort(extents->items, extents->count, sizeof(*extents->items), compare_extents);
}

/* The one that holds the address, or NULL. */
static struct extent *extent_at(const struct extents *extents, uint64_t address)
{
	size_t first = bisect(0, extents->count, i, extents->items[i].low <= address);

	if (!first || address >= extents->items[first - 1].high)
		return NULL;
	return &extents->items[first - 1];
}

/* The code of `from` goes on at `target`. */
static void note_branch(const struct extents *extents, const struct extent *from, uint64_t target,
			enum branch branch)
{
	struct extent *into;

	if (target >= from->low && target < from->high)
		return;
	into = extent_at(extents, target);
	if (!into)
		return;
	if (branch == BRANCH_CALL) {
		into->is_called |= target == into->low;
		return;
	}
	if (from->is_part) { /* whose it is is not known yet; it may end with a call of another */
		into->has_others |= !into->is_part;
		return;
	}
	into->has_others |= into->has_jump && into->owner != from->low;
	into->has_jump = true;
	into->owner = from->low;
	into->is_conditional |= branch == BRANCH_CONDITIONAL;
	into->is_entered |= target == into->low;
}

/*
 * Wherever the bytes of "call rel32", "jmp rel32" and "jcc rel32" are: an accident hits a function
 * hardly ever, and then mostly speaks against a part.
 */
static void search_x86(const struct extents *extents, const struct extent *from,
		       const uint8_t *code)
{
	uint64_t len = from->high - from->low;

	for (uint64_t i = 0; i + 5 <= len; i++) {
		enum branch branch = BRANCH_CONDITIONAL;
		uint64_t at;

		if ((code[i] & 0xfe) == 0xe8) {
			branch = code[i] == 0xe8 ? BRANCH_CALL : BRANCH_JUMP;
			at = i + 1;
		} else if (code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80 && i + 6 <= len) {
			at = i + 2;
		} else {
			continue;
		}
		note_branch(extents, from,
			    from->low + at + 4 + (uint64_t)(int64_t)(int32_t)section_u32(code + at),
			    branch);
	}
}

/* The distance of a branch, in instructions; 0: it is none. */
static int64_t arm64_distance(uint32_t word, enum branch *ret)
{
	unsigned bits, shift = 5;

	*ret = BRANCH_CONDITIONAL;
	if ((word & 0x7c000000) == 0x14000000) {
		*ret = word >> 31 ? BRANCH_CALL : BRANCH_JUMP; /* bl, b */
		bits = 26, shift = 0;
	} else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) {
		bits = 19; /* b.cond, cbz, cbnz */
	} else if ((word & 0x7e000000) == 0x36000000) {
		bits = 14; /* tbz, tbnz */
	} else {
		return 0;
	}
	word = word >> shift & ((1u << bits) - 1);
	return word >> (bits - 1) ? (int64_t)word - ((int64_t)1 << bits) : (int64_t)word;
}

static void search_arm64(const struct extents *extents, const struct extent *from,
			 const uint8_t *code)
{
	for (uint64_t i = 0; i + 4 <= from->high - from->low; i += 4) {
		enum branch branch;
		int64_t distance = arm64_distance(section_u32(code + i), &branch);

		if (distance)
			note_branch(extents, from, from->low + i + (uint64_t)(4 * distance),
				    branch);
	}
}

typedef void search_f(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data);

/* Functions of the section begin at their landing pads, where no other has these. */
static void take_in_pads(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data)
{
	for (size_t i = 0; i < extents->count; i++) {
		struct extent *extent = &extents->items[i];
		uint32_t word;

		if (extent->low < header->sh_addr + PAD_BYTES ||
		    extent->low > header->sh_addr + data->d_size ||
		    (i && extents->items[i - 1].high > extent->low - PAD_BYTES))
			continue;
		word = section_u32((const uint8_t *)data->d_buf + (extent->low - header->sh_addr) -
				   PAD_BYTES);
		if (extents->machine == EM_X86_64 ? word == X86_ENDBR64
						  : word == ARM64_BTI_C || word == ARM64_BTI_JC)
			extent->low -= PAD_BYTES;
	}
}

/* Searches the functions of one section, whose bytes are in `data`. */
static void search_section(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data)
{
	for (size_t i = 0; i < extents->count; i++) {
		const struct extent *from = &extents->items[i];
		const uint8_t *code;

		if (from->low < header->sh_addr || from->high > header->sh_addr + data->d_size)
			continue;
		code = (const uint8_t *)data->d_buf + (from->low - header->sh_addr);
		if (extents->machine == EM_X86_64)
			search_x86(extents, from, code);
		else
			search_arm64(extents, from, code);
	}
}

/* Has each section of code searched. */
static void search_code(Elf *elf, struct extents *extents, search_f *search)
{
	uint64_t left = CODE_BYTES_MAX;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		const uint64_t wanted = SHF_ALLOC | SHF_EXECINSTR;
		const Elf_Data *data;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    (header.sh_flags & wanted) != wanted || header.sh_size > left)
			continue;
		left -= header.sh_size;
		data = elf_rawdata(section, NULL);
		if (data && data->d_buf && header.sh_addr <= UINT64_MAX - data->d_size)
			search(extents, &header, data);
	}
}

/*
 * True if it is a part of the function that jumps into it. Where the frame at its start is as after
 * a call, it must be one that nobody calls, and that is reached by a conditional jump: compilers
 * make such jumps within a function only, but for tail calls when code is to be small.
 */
static bool is_part_of_owner(const struct extent *extent)
{
	if (!extent->has_jump || extent->has_others)
		return false;
	return extent->is_part ||
	       (extent->is_conditional && extent->is_entered && !extent->is_called);
}

static void hand_over(const struct extents *extents, struct symbol_builder *builder)
{
	for (size_t i = 0; i < extents->count; i++) {
		const struct extent *extent = &extents->items[i];
		bool is_part = is_part_of_owner(extent);

		symbol_builder_extent(
			builder, &(struct symbol_extent){ extent->low, extent->high,
							  is_part ? extent->owner : extent->low });
	}
}

/* ---- code that no unwind information is for ---- */

typedef void gap_f(struct extents *extents, struct slice code, uint64_t address);

static void each_gap(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data,
		     gap_f *take)
{
	uint64_t low = header->sh_addr, end = header->sh_addr + data->d_size;
	size_t i = bisect(0, extents->count, at, extents->items[at].high <= low);

	for (; low < end; i++) {
		bool is_last = i >= extents->count || extents->items[i].low >= end;
		uint64_t high = is_last ? end : extents->items[i].low;

		if (high > low && high - low >= GAP_BYTES_MIN)
			take(extents,
			     slice_from((const char *)data->d_buf + (low - header->sh_addr),
					high - low),
			     low);
		if (is_last)
			return;
		if (extents->items[i].high > low)
			low = extents->items[i].high;
	}
}

static void count_gap(struct extents *extents, struct slice code, uint64_t address)
{
	extents->gap_bytes += code.len;
	extents->gap_starts += padded_functions_count(code, address);
}

static void read_gap(struct extents *extents, struct slice code, uint64_t address)
{
	padded_functions_read(code, address, extents->builder);
}

static void count_gaps(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data)
{
	each_gap(extents, header, data, count_gap);
}

static void read_gaps(struct extents *extents, const GElf_Shdr *header, const Elf_Data *data)
{
	each_gap(extents, header, data, read_gap);
}

static void fill_gaps(Elf *elf, struct extents *extents)
{
	if (extents->machine != EM_X86_64)
		return;
	search_code(elf, extents, count_gaps);
	if (padded_functions_are(extents->gap_bytes, extents->gap_starts))
		search_code(elf, extents, read_gaps);
}

static void read_section(Elf *elf, enum cfi_kind kind, uint16_t machine, const GElf_Shdr *header,
			 struct slice bytes, struct symbol_builder *builder)
{
	struct section_reader *reader = mem_new(struct section_reader);
	struct cfi *cfi = mem_new(struct cfi);
	struct extents extents = { .machine = machine, .builder = builder };
	const struct unwind_function_sink sink = { add_extent, &extents };

	section_reader_open_memory(reader, bytes, header->sh_addr, "unwind information");
	if (!cfi_open(cfi, kind, machine, reader, NULL)) {
		/* What was read before an error is as good. */
		(void)cfi_list(cfi, false, &sink, NULL);
		sort_out(cfi, &extents);
		search_code(elf, &extents, take_in_pads);
		search_code(elf, &extents, search_section);
		hand_over(&extents, builder);
		fill_gaps(elf, &extents);
	}
	free(extents.items);
	free(cfi);
	free(reader);
}

void function_extents_read(Elf *elf, uint16_t machine, struct symbol_builder *builder)
{
	static const struct {
		const char *name;
		enum cfi_kind kind;
	} kinds[] = { { ".eh_frame", CFI_EH_FRAME }, { ".debug_frame", CFI_DEBUG_FRAME } };
	struct extents none = { .machine = machine, .builder = builder };
	Elf_Scn *section = NULL;
	bool is_read = false;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
		    header.sh_flags & SHF_COMPRESSED)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++) {
			if (strcmp(name, kinds[i].name) != 0)
				continue;
			data = elf_rawdata(section, NULL);
			if (!data || !data->d_buf)
				continue;
			read_section(elf, kinds[i].kind, machine, &header,
				     slice_from(data->d_buf, data->d_size), builder);
			is_read = true;
		}
	}
	if (!is_read)
		fill_gaps(elf, &none);
}
