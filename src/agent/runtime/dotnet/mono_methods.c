/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/mono_methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CODE_BYTES_MAX (4u << 20)
#define TRAMPOLINE_BYTES_MAX 16384u /* more are the calls of a file of machine code */
#define ATTEMPTS 3

/* A MonoDomain has its table of methods somewhere in here. */
#define DOMAIN_BYTES 0x400u
#define DOMAINS_MAX 64u

/* A table: its domain, the number of chunks, the chunks. */
#define TABLE_COUNT 8u
#define TABLE_CHUNKS 16u
#define CHUNKS_MAX 4096u

/* A chunk: uses, entries, two addresses, the entries. */
#define CHUNK_COUNT 4u
#define CHUNK_ENTRIES 24u
#define CHUNK_ENTRIES_MAX 64u

/* Bits of a MonoJitInfo, from the one that says that it is being loaded. */
#define HAS_GENERICS (-9)
#define HAS_HOLES (-8)
#define HAS_EPILOGUE (-7)
#define HAS_UNWIND (-5) /* in itself, in another form */
#define IS_FROM_FILE (-4)
#define IS_TRAMPOLINE 3
#define IS_INTERPRETED 4
#define CLAUSES_MASK 0x7fffu

/* What follows the bits, in this order, each if there is any. */
#define INFO_CLAUSES 24u /* behind the bits */
#define CLAUSE_BYTES 64u
#define GENERICS_BYTES 32u
#define HOLES_HEAD_BYTES 4u
#define HOLE_BYTES 8u
#define EPILOGUE_SIZE 4u /* behind the stack's size */

/* Unwind information: its length, and the program, which all begin in one way. */
#define UNWINDS_SURE 4u
#define UNWIND_NUMBER_MAX (1u << 20)
#define UNWIND_HEAD_BYTES 4u
#define UNWIND_LEAST_BYTES 5u
#define INSTRUCTION_RET 0xc3

#define OUTER_MAX 8

static bool has(const struct mono_symbols *symbols, uint32_t bits, int which)
{
	int bit = symbols->is_loading + which;

	return bit >= 0 && bit < 32 && bits >> bit & 1;
}

/* ---- the table ---- */

static uint64_t find_table(struct code_memory *memory, uint64_t domain)
{
	for (uint64_t at = 8; at < DOMAIN_BYTES; at += 8) {
		uint64_t table = code_memory_u64(memory, domain + at);
		uint32_t count;

		if (!table || table % 8 || table == domain ||
		    code_memory_u64(memory, table) != domain)
			continue;
		count = code_memory_u32(memory, table + TABLE_COUNT);
		if (count && count <= CHUNKS_MAX)
			return table;
	}
	return 0;
}

static void take_info(struct code_memory *memory, const struct mono_symbols *symbols, uint64_t info,
		      struct mono_methods *ret)
{
	struct mono_method method = {
		.info = info,
		.method = code_memory_u64(memory, info + symbols->info_method),
		.start = code_memory_u64(memory, info + symbols->info_start),
		.unwind = code_memory_u32(memory, info + symbols->info_size - 4),
		.bits = code_memory_u32(memory, info + symbols->info_bits),
	};
	uint32_t bytes = code_memory_u32(memory, info + symbols->info_size);

	/* One that is gone has no method. */
	if (!method.method || !method.start || !bytes || bytes > CODE_BYTES_MAX ||
	    method.start + bytes < method.start || has(symbols, method.bits, 0) ||
	    has(symbols, method.bits, IS_FROM_FILE) || has(symbols, method.bits, IS_INTERPRETED))
		return;
	method.end = method.start + bytes;
	method.is_trampoline = has(symbols, method.bits, IS_TRAMPOLINE);
	if (method.is_trampoline && bytes > TRAMPOLINE_BYTES_MAX)
		return;
	mem_grow(ret->items, ret->count, ret->capacity);
	ret->items[ret->count++] = method;
}

static bool take_chunk(struct code_memory *memory, const struct mono_symbols *symbols,
		       uint64_t chunk, struct mono_methods *ret)
{
	uint32_t count = code_memory_u32(memory, chunk + CHUNK_COUNT);

	if (count > CHUNK_ENTRIES_MAX)
		return false;
	for (uint32_t i = 0; i < count && ret->count < MONO_METHODS_MAX; i++) {
		uint64_t info = code_memory_u64(memory, chunk + CHUNK_ENTRIES + 8ull * i);

		if (info)
			take_info(memory, symbols, info, ret);
	}
	return true;
}

struct domains {
	struct {
		uint64_t domain, table;
	} items[DOMAINS_MAX];
	size_t count;
};

static void add_domain(struct code_memory *memory, uint64_t domain, struct domains *domains)
{
	uint64_t table = domain ? find_table(memory, domain) : 0;

	for (size_t i = 0; i < domains->count; i++)
		if (domains->items[i].domain == domain)
			return;
	if (!table || domains->count == DOMAINS_MAX)
		return;
	domains->items[domains->count].domain = domain;
	domains->items[domains->count++].table = table;
}

/* The root's is the first; the list has it, too. */
static void read_domains(struct code_memory *memory, const struct mono_symbols *symbols,
			 uint64_t bias, struct domains *ret)
{
	uint64_t list = 0, count = 0;

	ret->count = 0;
	add_domain(memory, code_memory_u64(memory, symbols->root_domain + bias), ret);
	if (!ret->count || !symbols->domains)
		return;
	list = code_memory_u64(memory, symbols->domains + bias);
	count = code_memory_u16(memory, symbols->domains_count + bias);
	for (uint64_t i = 0; i < count && i < DOMAINS_MAX; i++)
		add_domain(memory, code_memory_u64(memory, list + 8 * i), ret);
}

static bool take_table(struct code_memory *memory, const struct mono_symbols *symbols,
		       uint64_t table, struct mono_methods *ret)
{
	uint32_t count = code_memory_u32(memory, table + TABLE_COUNT);

	for (uint32_t i = 0; i < count && i < CHUNKS_MAX; i++) {
		uint64_t chunk = code_memory_u64(memory, table + TABLE_CHUNKS + 8ull * i);

		if (code_memory_is_spent(memory))
			break;
		if (!take_chunk(memory, symbols, chunk, ret))
			return false;
	}
	return true;
}

static bool is_same(const struct domains *a, const struct domains *b)
{
	return a->count == b->count && !memcmp(a->items, b->items, a->count * sizeof(*a->items));
}

/* What was read before may have changed since. */
static void forget_pages(struct code_memory *memory)
{
	uint32_t reads_left = memory->reads_left;

	code_memory_begin(memory, memory->memory);
	memory->reads_left = reads_left;
}

static enum dotnet_answer read_once(struct code_memory *memory, const struct mono_symbols *symbols,
				    uint64_t bias, struct mono_methods *ret)
{
	struct domains domains, after;

	ret->count = 0;
	forget_pages(memory);
	read_domains(memory, symbols, bias, &domains);
	if (!domains.count)
		return DOTNET_NOT_YET;
	for (size_t i = 0; i < domains.count; i++)
		if (!take_table(memory, symbols, domains.items[i].table, ret))
			return DOTNET_UNKNOWN;
	forget_pages(memory);
	read_domains(memory, symbols, bias, &after);
	ret->is_whole = is_same(&domains, &after);
	return DOTNET_ANSWERED;
}

enum dotnet_answer mono_methods_read(struct code_memory *memory, const struct mono_symbols *symbols,
				     uint64_t bias, struct mono_methods *ret)
{
	enum dotnet_answer answer = DOTNET_NOT_YET;

	ret->is_whole = false;
	for (int i = 0; i < ATTEMPTS && !ret->is_whole; i++) {
		answer = read_once(memory, symbols, bias, ret);
		if (answer == DOTNET_NOT_YET)
			break;
	}
	return answer;
}

void mono_methods_fini(struct mono_methods *methods)
{
	free(methods->items);
	*methods = (struct mono_methods){ 0 };
}

/* ---- names ---- */

/* Before what is there already. */
static bool put_before(char *name, const char *text, char separator)
{
	size_t len = strlen(text), have = strlen(name), gap = separator ? 1 : 0;

	if (len + gap + have >= MONO_NAME_MAX)
		return false;
	memmove(name + len + gap, name, have + 1);
	memcpy(name, text, len);
	if (separator)
		name[len] = separator;
	return true;
}

bool mono_method_name(struct code_memory *memory, const struct mono_symbols *symbols,
		      const struct mono_method *method, char ret[MONO_NAME_MAX])
{
	uint64_t class = code_memory_u64(memory, method->method + symbols->method_class);
	char separator = '.', text[CODE_TEXT_MAX];

	*ret = '\0';
	if (!class ||
	    !code_memory_text(
		    memory, code_memory_u64(memory, method->method + symbols->method_name), text) ||
	    !put_before(ret, text, '\0'))
		return false;
	for (int i = 0; i < OUTER_MAX; i++) {
		uint64_t outer = code_memory_u64(memory, class + symbols->class_outer);

		if (!code_memory_text(memory, code_memory_u64(memory, class + symbols->class_name),
				      text) ||
		    !put_before(ret, text, separator))
			return false;
		separator = '+';
		if (outer) {
			class = outer;
			continue;
		}
		if (code_memory_text(memory,
				     code_memory_u64(memory, class + symbols->class_namespace),
				     text))
			return put_before(ret, text, '.');
		return true;
	}
	return false;
}

/* ---- unwind information ---- */

/* How long a program is at the address; 0 = there is none. */
static uint32_t program_at(struct code_memory *memory, uint64_t address)
{
	static const uint8_t begin[] = { 0x0c, 7 }; /* DW_CFA_def_cfa: rsp + ... */
	uint32_t len = code_memory_u32(memory, address);
	uint8_t found[sizeof(begin)];

	if (len < UNWIND_LEAST_BYTES || len > MONO_PROGRAM_BYTES_MAX ||
	    !code_memory_read(memory, address + UNWIND_HEAD_BYTES, found, sizeof(found)) ||
	    memcmp(found, begin, sizeof(begin)) != 0)
		return 0;
	return len;
}

static bool are_unwinds(struct code_memory *memory, uint64_t table)
{
	for (uint32_t i = 0; i < UNWINDS_SURE; i++) {
		uint64_t info = code_memory_u64(memory, table + 8ull * i);

		if (!info || !program_at(memory, info))
			return false;
	}
	return true;
}

bool mono_unwinds_find(struct code_memory *memory, const struct mono_symbols *symbols,
		       uint64_t bias, uint64_t *ret)
{
	uint64_t end = symbols->data + symbols->data_bytes;

	for (uint64_t at = 0; at + 8 <= symbols->data_bytes; at += 8) {
		uint64_t table = code_memory_u64(memory, symbols->data + bias + at);

		if (code_memory_is_spent(memory))
			return false;
		/* The table is in none of the binary's own segments. */
		if (table % 8 || table - bias < end || !are_unwinds(memory, table))
			continue;
		*ret = symbols->data + bias + at;
		return true;
	}
	return false;
}

/* Where the epilogue begins, in the code; 0 = it does not say. */
static uint32_t find_end(struct code_memory *memory, const struct mono_symbols *symbols,
			 const struct mono_method *method)
{
	uint64_t at = method->info + symbols->info_bits + INFO_CLAUSES;
	uint32_t code_bytes = (uint32_t)(method->end - method->start), bytes;

	if (method->is_trampoline || !has(symbols, method->bits, HAS_EPILOGUE))
		return 0;
	at += (uint64_t)CLAUSE_BYTES * (method->bits & CLAUSES_MASK);
	if (has(symbols, method->bits, HAS_GENERICS))
		at += GENERICS_BYTES;
	if (has(symbols, method->bits, HAS_HOLES))
		at += HOLES_HEAD_BYTES + HOLE_BYTES * (uint64_t)code_memory_u16(memory, at);
	bytes = code_memory_u32(memory, at + EPILOGUE_SIZE);
	return bytes && bytes < code_bytes ? code_bytes - bytes : 0;
}

bool mono_method_rows(struct code_memory *memory, const struct mono_symbols *symbols,
		      uint64_t unwinds, const struct mono_method *method, struct mono_rows *ret)
{
	uint8_t program[MONO_PROGRAM_BYTES_MAX];
	struct mono_frame frame = {
		.program = program,
		.code_bytes = (uint32_t)(method->end - method->start),
		.end = find_end(memory, symbols, method),
	};
	uint64_t info;

	if (method->unwind > UNWIND_NUMBER_MAX || has(symbols, method->bits, HAS_UNWIND))
		return false;
	info = code_memory_u64(memory, code_memory_u64(memory, unwinds) + 8ull * method->unwind);
	frame.program_len = info ? program_at(memory, info) : 0;
	if (!frame.program_len ||
	    !code_memory_read(memory, info + UNWIND_HEAD_BYTES, program, frame.program_len) ||
	    !mono_rows_make(&frame, ret))
		return false;
	/* A method's sizes were read right if its epilogue ends as it has to. */
	return !frame.end ||
	       (ret->return_at &&
		code_memory_u8(memory, method->start + ret->return_at) == INSTRUCTION_RET);
}
