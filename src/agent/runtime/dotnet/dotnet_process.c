/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/dotnet/code_lines.h"
#include "agent/runtime/dotnet/dotnet_image.h"
#include "agent/runtime/dotnet/dotnet_sections.h"
#include "agent/runtime/dotnet/metadata.h"
#include "agent/runtime/dotnet/mono_methods.h"
#include "agent/runtime/dotnet/unwind_info.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"

#define FUNCTION_BYTES_MAX (4u << 20)
#define CODE_READ_BYTES_MAX (1u << 18) /* of a function, to find its epilogues */
#define UNWINDS_MAX 1024u	       /* functions of a method: it and its funclets */
#define HEAP_BYTES_MAX ((uint64_t)256 << 20)
#define MODULES_MAX 4096u
#define IMAGES_MAX 2048u
#define NOTHING_MAX 4096u
#define MONO_METHODS_FEW 16u /* of a runtime that starts */

#define BUCKET_BYTES 32u /* of code, for each nibble of the map */
#define NIBBLES 8u
#define NIBBLE_UNIT 4u
#define HEADER_STUB_LAST 15u /* in place of a header: a kind of stub */

#define GONE_MAX 4096u

#define METHOD_KIND_MASK 7u
#define METHOD_DYNAMIC 7u
#define TOKEN_BITS 24u

struct module {
	uint64_t address;
	bool has_metadata;
	struct metadata metadata;
};

struct functions {
	struct dotnet_function *items;
	size_t count, capacity;
};

struct dotnet_process {
	struct dotnet_symbols symbols;
	uint64_t bias;
	uint32_t number;
	bool is_known;
	struct dotnet_layout layout;
	uint64_t map;
	uint64_t unwinds; /* of Mono, a variable */
	struct dotnet_sections sections;
	struct functions functions; /* by start */
	struct functions gone;	    /* since dotnet_process_forget, without rows */
	uint64_t code_bytes;
	struct module *modules;
	size_t modules_count, modules_capacity;
	struct dotnet_image *images;
	size_t images_count, images_capacity;
	uint64_t nothing[NOTHING_MAX]; /* ascending */
	size_t nothing_count;
	struct code_lines lines;
};

/* One look. */
struct look {
	struct dotnet_process *process;
	struct code_memory *memory;
	struct functions found; /* new ones */
	struct code_row rows[UNWIND_INFO_ROWS_MAX];
	uint8_t *code; /* CODE_READ_BYTES_MAX */
	struct mono_rows *mono_rows;
};

struct dotnet_process *dotnet_process_new(const struct dotnet_symbols *symbols, uint64_t bias,
					  uint32_t number)
{
	struct dotnet_process *process = mem_new(struct dotnet_process);

	process->symbols = *symbols;
	process->bias = bias;
	process->number = number;
	return process;
}

static void function_fini(struct dotnet_function *function)
{
	free(function->name);
	free(function->rows);
}

void dotnet_process_free(struct dotnet_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->functions.count; i++)
		function_fini(&process->functions.items[i]);
	for (size_t i = 0; i < process->images_count; i++)
		dotnet_image_fini(&process->images[i]);
	dotnet_process_forget(process);
	free(process->functions.items);
	free(process->gone.items);
	free(process->images);
	free(process->modules);
	dotnet_sections_fini(&process->sections);
	code_lines_fini(&process->lines);
	free(process);
}

uint32_t dotnet_process_number(const struct dotnet_process *process)
{
	return process->number;
}

static struct dotnet_function *find(const struct functions *functions, uint64_t address)
{
	size_t low = bisect(0, functions->count, i, functions->items[i].start <= address);

	if (!low || address >= functions->items[low - 1].end)
		return NULL;
	return &functions->items[low - 1];
}

const struct dotnet_function *dotnet_process_find(const struct dotnet_process *process,
						  uint64_t address)
{
	return find(&process->functions, address);
}

bool dotnet_process_has(const struct dotnet_process *process, uint64_t address)
{
	return dotnet_sections_find(&process->sections, address) ||
	       find(&process->functions, address);
}

bool dotnet_process_has_stub(const struct dotnet_process *process, uint64_t address)
{
	const struct dotnet_section *section = dotnet_sections_find(&process->sections, address);

	/* Where methods are compiled to, there may have been one that is gone. */
	return section && section->kind != DOTNET_HEAP && !find(&process->functions, address);
}

static size_t place_among_nothing(const struct dotnet_process *process, uint64_t address)
{
	return bisect(0, process->nothing_count, i, process->nothing[i] < address);
}

bool dotnet_process_is_nothing(const struct dotnet_process *process, uint64_t address)
{
	size_t at = place_among_nothing(process, address);

	return at < process->nothing_count && process->nothing[at] == address;
}

const struct dotnet_function *dotnet_process_find_gone(const struct dotnet_process *process,
						       uint64_t address)
{
	for (size_t i = process->gone.count; i-- > 0;)
		if (address - process->gone.items[i].start <
		    process->gone.items[i].end - process->gone.items[i].start)
			return &process->gone.items[i];
	return NULL;
}

void dotnet_process_forget(struct dotnet_process *process)
{
	process->nothing_count = 0;
	for (size_t i = 0; i < process->gone.count; i++)
		function_fini(&process->gone.items[i]);
	process->gone.count = 0;
}

/* ---- names ---- */

static const struct module *module_at(struct look *look, uint64_t address)
{
	struct dotnet_process *process = look->process;
	struct module *module;

	for (size_t i = 0; i < process->modules_count; i++)
		if (process->modules[i].address == address)
			return &process->modules[i];
	if (process->modules_count == MODULES_MAX)
		return NULL;
	mem_grow(process->modules, process->modules_count, process->modules_capacity);
	module = &process->modules[process->modules_count++];
	*module = (struct module){ .address = address };
	module->has_metadata = metadata_find(
		look->memory, code_memory_u64(look->memory, address + process->layout.module_name),
		&module->metadata);
	return module;
}

static char *name_of_row(struct look *look, uint64_t module_address, uint32_t row)
{
	const struct module *module = module_at(look, module_address);
	char name[METADATA_NAME_MAX];

	if (!module || !module->has_metadata ||
	    !metadata_method_name(look->memory, &module->metadata, row, name))
		return NULL;
	return mem_strndup(name, strlen(name));
}

/* The name of code that was generated at run time, which has no row in any metadata. */
static char *dynamic_name(struct look *look, uint64_t method)
{
	uint16_t at = look->process->layout.dynamic_name;
	char name[CODE_TEXT_MAX], text[CODE_TEXT_MAX + 16];

	if (!at ||
	    !code_memory_text(look->memory, code_memory_u64(look->memory, method + at), name))
		snprintf(text, sizeof(text), "[dynamic method]");
	else
		snprintf(text, sizeof(text), "dynamicClass.%s", name);
	return mem_strndup(text, strlen(text));
}

/* By a MethodDesc, which lies in a chunk of them; each has a part of its token. */
static char *name_of_method(struct look *look, uint64_t method)
{
	const struct dotnet_layout *layout = &look->process->layout;
	struct code_memory *memory = look->memory;
	uint16_t flags = code_memory_u16(memory, method + layout->method_flags);
	uint64_t chunk, table;
	uint32_t token;

	if ((flags & METHOD_KIND_MASK) == METHOD_DYNAMIC)
		return dynamic_name(look, method);
	chunk = method - layout->chunk_bytes -
		(uint64_t)layout->method_alignment *
			code_memory_u8(memory, method + layout->method_chunk_index);
	table = code_memory_u64(memory, chunk + layout->chunk_table);
	token = code_memory_u16(memory, chunk + layout->chunk_token) &
		((1u << (TOKEN_BITS - layout->remainder_bits)) - 1);
	token = token << layout->remainder_bits |
		(code_memory_u16(memory, method + layout->method_token) &
		 ((1u << layout->remainder_bits) - 1));
	return name_of_row(look, code_memory_u64(memory, table + layout->table_module), token);
}

/* ---- functions ---- */

static bool has_room(const struct look *look, uint64_t bytes)
{
	const struct dotnet_process *process = look->process;

	return process->functions.count + look->found.count < DOTNET_FUNCTIONS_MAX &&
	       process->code_bytes + bytes <= DOTNET_CODE_BYTES_MAX;
}

static struct dotnet_function *add_function(struct look *look, uint64_t start, uint64_t end,
					    uint64_t owner)
{
	struct dotnet_function *function;

	mem_grow(look->found.items, look->found.count, look->found.capacity);
	function = &look->found.items[look->found.count++];
	*function = (struct dotnet_function){
		.start = start, .end = end, .owner = owner, .is_seen = true
	};
	look->process->code_bytes += end - start;
	return function;
}

static void keep_rows(struct dotnet_function *function, const struct code_row *rows, size_t count)
{
	function->rows = mem_new_array(struct code_row, count);
	memcpy(function->rows, rows, count * sizeof(*function->rows));
	function->rows_count = (uint32_t)count;
}

static void read_rows(struct look *look, struct dotnet_function *function, uint64_t info_at)
{
	uint8_t info[UNWIND_INFO_BYTES_MAX];
	size_t code_len = function->end - function->start;
	size_t count;

	if (!code_memory_read(look->memory, info_at, info, UNWIND_INFO_HEADER_BYTES) ||
	    !code_memory_read(look->memory, info_at, info, unwind_info_bytes(info)))
		return;
	/* Without the code there are no rows: those of its ends would be wrong. */
	if (code_len > CODE_READ_BYTES_MAX ||
	    !code_memory_read(look->memory, function->start, look->code, code_len))
		return;
	count = unwind_info_rows(info, unwind_info_bytes(info), look->code, code_len, look->rows);
	if (count)
		keep_rows(function, look->rows, count);
}

/* A method and its funclets, by what it says of them: relative to where the section begins. */
static void take_method(struct look *look, const struct dotnet_section *heap, uint64_t start,
			uint64_t header)
{
	uint64_t base = heap->start;
	const struct dotnet_layout *layout = &look->process->layout;
	struct code_memory *memory = look->memory;
	uint32_t count = code_memory_u32(memory, header + layout->header_unwinds_count);
	uint64_t method = code_memory_u64(memory, header + layout->header_method);
	char *name = name_of_method(look, method);

	for (uint32_t i = 0; i < count && i < UNWINDS_MAX; i++) {
		struct dotnet_runtime_function part = { 0 };
		struct dotnet_function *function;

		code_memory_read(memory, header + layout->header_unwinds + sizeof(part) * i, &part,
				 sizeof(part));
		if (part.begin >= part.end || part.end - part.begin > FUNCTION_BYTES_MAX ||
		    base + part.begin < start || base + part.end > heap->end ||
		    !has_room(look, part.end - part.begin))
			break;
		function = add_function(look, base + part.begin, base + part.end, header);
		function->name = name ? mem_strndup(name, strlen(name)) : NULL;
		read_rows(look, function, base + part.unwind);
	}
	free(name);
}

/* What is known of the method at `start` still holds. */
static bool keep_known(struct look *look, uint64_t start, uint64_t header)
{
	struct functions *functions = &look->process->functions;
	struct dotnet_function *known = find(functions, start);

	if (!known || known->start != start || known->owner != header)
		return false;
	while (known < functions->items + functions->count && known->owner == header)
		known++->is_seen = true;
	return true;
}

static void take_start(struct look *look, const struct dotnet_section *heap, uint64_t start)
{
	uint64_t header = code_memory_u64(look->memory, start - 8);

	if (header > HEADER_STUB_LAST && !keep_known(look, start, header))
		take_method(look, heap, start, header);
}

/*
 * A nibble for each 32 bytes of code says whether a method begins there, and where in them; the
 * first one is the highest of its word. As of .NET 10 a word may lead back to a method's start
 * instead, which its lowest nibble tells: no method begins there.
 */
static void take_heap(struct look *look, const struct dotnet_section *section)
{
	const struct dotnet_layout *layout = &look->process->layout;
	struct code_memory *memory = look->memory;
	uint64_t heap = section->object;
	uint64_t base = code_memory_u64(memory, heap + layout->heap_base);
	uint64_t end = code_memory_u64(memory, heap + layout->heap_end);
	uint64_t map = code_memory_u64(memory, heap + layout->heap_map);

	if (base > section->start || section->start - base > HEAP_BYTES_MAX || end > section->end ||
	    end < base || !map || end - base > HEAP_BYTES_MAX)
		return;
	for (uint64_t at = base; at < end; at += BUCKET_BYTES * NIBBLES, map += 4) {
		uint32_t word = code_memory_u32(memory, map);

		if (code_memory_is_spent(memory))
			return;
		if (!word || (word & 15) > BUCKET_BYTES / NIBBLE_UNIT)
			continue;
		for (uint32_t i = 0; i < NIBBLES; i++) {
			uint32_t nibble = word >> (28 - 4 * i) & 15;

			if (nibble && nibble <= BUCKET_BYTES / NIBBLE_UNIT)
				take_start(look, section,
					   at + BUCKET_BYTES * i + NIBBLE_UNIT * (nibble - 1));
		}
	}
}

static struct dotnet_image *image_of(struct look *look, const struct dotnet_section *section)
{
	struct dotnet_process *process = look->process;
	struct dotnet_image *image;

	for (size_t i = 0; i < process->images_count; i++)
		if (process->images[i].section == section->start)
			return &process->images[i];
	if (process->images_count == IMAGES_MAX)
		return NULL;
	mem_grow(process->images, process->images_count, process->images_capacity);
	image = &process->images[process->images_count++];
	*image = (struct dotnet_image){ .section = section->start };
	dotnet_image_read(look->memory, section->start, image);
	return image;
}

static void take_image_function(struct look *look, const struct dotnet_section *section,
				uint64_t address)
{
	struct dotnet_image *image = image_of(look, section);
	struct dotnet_runtime_function part;
	struct dotnet_function *function;
	uint32_t number;

	if (!image || !dotnet_image_find(look->memory, image, address, &part, &number) ||
	    part.end - part.begin > FUNCTION_BYTES_MAX || part.begin >= part.end ||
	    !has_room(look, part.end - part.begin))
		return;
	function = add_function(look, image->base + part.begin, image->base + part.end,
				section->object);
	if (image->methods && image->methods[number])
		function->name = name_of_row(look, section->object, image->methods[number]);
	read_rows(look, function, image->base + part.unwind);
}

static void take_wanted(struct look *look, uint64_t address)
{
	struct dotnet_process *process = look->process;
	const struct dotnet_section *section = dotnet_sections_find(&process->sections, address);

	if (find(&process->functions, address))
		return;
	for (size_t i = 0; i < look->found.count; i++)
		if (address - look->found.items[i].start <
		    look->found.items[i].end - look->found.items[i].start)
			return;
	if (section && section->kind == DOTNET_IMAGE)
		take_image_function(look, section, address);
}

/* ---- Mono ---- */

static bool is_mono(const struct dotnet_process *process)
{
	return process->symbols.mono.root_domain;
}

static uint64_t owner_of(const struct mono_method *method)
{
	return hash_mix(hash_mix(method->info, method->method), method->end);
}

static char *name_of_mono(struct look *look, const struct mono_method *method)
{
	char name[MONO_NAME_MAX];

	if (method->is_trampoline)
		return mem_strndup("[stub]", strlen("[stub]"));
	if (!mono_method_name(look->memory, &look->process->symbols.mono, method, name))
		return NULL;
	return mem_strndup(name, strlen(name));
}

static void take_mono_method(struct look *look, const struct mono_method *method)
{
	struct dotnet_process *process = look->process;
	struct dotnet_function *function;

	if (keep_known(look, method->start, owner_of(method)) ||
	    !has_room(look, method->end - method->start))
		return;
	function = add_function(look, method->start, method->end, owner_of(method));
	function->name = name_of_mono(look, method);
	if (mono_method_rows(look->memory, &process->symbols.mono, process->unwinds, method,
			     look->mono_rows))
		keep_rows(function, look->mono_rows->rows, look->mono_rows->count);
}

/* If its table changed meanwhile, what was not seen may still be there. */
static enum dotnet_answer take_mono(struct look *look)
{
	struct dotnet_process *process = look->process;
	const struct mono_symbols *symbols = &process->symbols.mono;
	struct mono_methods methods = { 0 };
	enum dotnet_answer answer =
		mono_methods_read(look->memory, symbols, process->bias, &methods);

	if (answer == DOTNET_ANSWERED && !process->unwinds &&
	    !mono_unwinds_find(look->memory, symbols, process->bias, &process->unwinds))
		answer = methods.count < MONO_METHODS_FEW ? DOTNET_NOT_YET : DOTNET_UNKNOWN;
	for (size_t i = 0; i < methods.count && answer == DOTNET_ANSWERED; i++)
		take_mono_method(look, &methods.items[i]);
	for (size_t i = 0; i < process->functions.count && !methods.is_whole; i++)
		process->functions.items[i].is_seen = true;
	mono_methods_fini(&methods);
	return answer;
}

/* ---- a look ---- */

static enum dotnet_answer know(struct look *look)
{
	struct dotnet_process *process = look->process;
	const struct dotnet_symbols *symbols = &process->symbols;
	enum dotnet_answer answer = DOTNET_ANSWERED;

	if (process->is_known)
		return answer;
	if (is_mono(process)) {
		process->map = symbols->mono.root_domain + process->bias;
	} else if (symbols->contract && symbols->major >= 10) {
		answer = dotnet_contract_read(look->memory, symbols->contract + process->bias,
					      &process->layout, &process->map);
	} else {
		if (!dotnet_layout_of(symbols->major, &process->layout))
			return DOTNET_UNKNOWN;
		process->map = code_memory_u64(look->memory, symbols->dac + process->bias);
		answer = process->map ? DOTNET_ANSWERED : DOTNET_NOT_YET;
	}
	process->is_known = answer == DOTNET_ANSWERED;
	return answer;
}

/* Functions of heaps that were not seen are gone; those of images are there as their section is. */
static void see_images(struct dotnet_process *process)
{
	for (size_t i = 0; i < process->functions.count; i++) {
		struct dotnet_function *function = &process->functions.items[i];
		const struct dotnet_section *section =
			dotnet_sections_find(&process->sections, function->start);

		if (section && section->kind == DOTNET_IMAGE && section->object == function->owner)
			function->is_seen = true;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct dotnet_function *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

static void note_lines(struct dotnet_process *process, const struct dotnet_function *function)
{
	for (uint64_t line = function->start >> CODE_LINE_SHIFT;
	     line <= (function->end - 1) >> CODE_LINE_SHIFT; line++)
		code_lines_note(&process->lines, line);
}

/* What ran in it has samples that are not named yet. */
static void keep_name(struct functions *gone, struct dotnet_function *function)
{
	free(function->rows);
	function->rows = NULL;
	function->rows_count = 0;
	if (gone->count == GONE_MAX || !function->name) {
		function_fini(function);
		return;
	}
	mem_grow(gone->items, gone->count, gone->capacity);
	gone->items[gone->count++] = *function;
}

static void remove_gone(struct dotnet_process *process)
{
	size_t count = 0;

	for (size_t i = 0; i < process->functions.count; i++) {
		struct dotnet_function *function = &process->functions.items[i];

		if (function->is_seen) {
			function->is_seen = false;
			process->functions.items[count++] = *function;
			continue;
		}
		note_lines(process, function);
		process->code_bytes -= function->end - function->start;
		keep_name(&process->gone, function);
	}
	process->functions.count = count;
}

/* Puts the new functions among the others, unless they would lie over one. */
static void add_found(struct look *look)
{
	struct dotnet_process *process = look->process;
	struct functions *functions = &process->functions;
	size_t count = 0;

	for (size_t i = 0; i < look->found.count; i++) {
		mem_grow(functions->items, functions->count, functions->capacity);
		functions->items[functions->count] = look->found.items[i];
		functions->items[functions->count++].is_seen = false;
		note_lines(process, &look->found.items[i]);
	}
	if (functions->count)
		qsort(functions->items, functions->count, sizeof(*functions->items), by_start);
	for (size_t i = 0; i < functions->count; i++) {
		struct dotnet_function *function = &functions->items[i];

		if (count && function->start < functions->items[count - 1].end) {
			process->code_bytes -= function->end - function->start;
			function_fini(function);
			continue;
		}
		functions->items[count++] = *function;
	}
	functions->count = count;
}

static void note_nothing(struct dotnet_process *process, const uint64_t *wanted, size_t count)
{
	for (size_t i = 0; i < count && process->nothing_count < NOTHING_MAX; i++) {
		size_t at = place_among_nothing(process, wanted[i]);

		if (find(&process->functions, wanted[i]) ||
		    dotnet_process_is_nothing(process, wanted[i]))
			continue;
		memmove(process->nothing + at + 1, process->nothing + at,
			(process->nothing_count - at) * sizeof(*process->nothing));
		process->nothing[at] = wanted[i];
		process->nothing_count++;
	}
}

/* The process is still there: what was not found has gone, and did not only become unreadable. */
static bool is_alive(const struct look *look)
{
	uint64_t word;

	return !code_memory_is_spent(look->memory) &&
	       memory_read(look->memory->memory, look->process->map, &word, sizeof(word));
}

/* It has ended, or says too much: what was known of it stays. */
static void give_up(struct look *look)
{
	struct dotnet_process *process = look->process;

	for (size_t i = 0; i < look->found.count; i++) {
		process->code_bytes -= look->found.items[i].end - look->found.items[i].start;
		function_fini(&look->found.items[i]);
	}
	for (size_t i = 0; i < process->functions.count; i++)
		process->functions.items[i].is_seen = false;
}

static enum dotnet_answer look_at_mono(struct look *look, const uint64_t *wanted, size_t count)
{
	struct dotnet_process *process = look->process;
	enum dotnet_answer answer = take_mono(look);

	if (answer != DOTNET_ANSWERED || !is_alive(look)) {
		give_up(look);
		return answer;
	}
	remove_gone(process);
	add_found(look);
	note_nothing(process, wanted, count);
	return answer;
}

static void look_at_all(struct look *look, const uint64_t *wanted, size_t count)
{
	struct dotnet_process *process = look->process;
	struct dotnet_sections sections = { 0 };

	dotnet_sections_read(look->memory, &process->layout, process->map, &sections);
	for (size_t i = 0; i < sections.count; i++)
		if (sections.items[i].kind == DOTNET_HEAP)
			take_heap(look, &sections.items[i]);
	if (!is_alive(look)) {
		dotnet_sections_fini(&sections);
		give_up(look);
		return;
	}
	dotnet_sections_fini(&process->sections);
	process->sections = sections;
	see_images(process);
	remove_gone(process);
	for (size_t i = 0; i < count; i++)
		take_wanted(look, wanted[i]);
	add_found(look);
	note_nothing(process, wanted, count);
}

enum dotnet_answer dotnet_process_read(struct dotnet_process *process,
				       const struct memory_reader *memory, const uint64_t *wanted,
				       size_t count)
{
	struct look look = { .process = process };
	enum dotnet_answer answer;

	code_lines_clear(&process->lines);
	look.memory = code_memory_new(memory);
	look.code = mem_calloc(CODE_READ_BYTES_MAX, 1);
	look.mono_rows = mem_new(struct mono_rows);
	answer = know(&look);
	if (answer == DOTNET_ANSWERED && is_mono(process))
		answer = look_at_mono(&look, wanted, count);
	else if (answer == DOTNET_ANSWERED)
		look_at_all(&look, wanted, count);
	code_lines_make(&process->lines, process->functions.items, process->functions.count);
	free(look.found.items);
	free(look.code);
	free(look.mono_rows);
	free(look.memory);
	return answer;
}

size_t dotnet_process_lines(const struct dotnet_process *process, const struct dotnet_line **ret)
{
	*ret = process->lines.items;
	return process->lines.count;
}

void dotnet_process_give_up_lines(struct dotnet_process *process)
{
	code_lines_clear(&process->lines);
	for (size_t i = 0; i < process->functions.count; i++)
		note_lines(process, &process->functions.items[i]);
	code_lines_make(&process->lines, NULL, 0);
}

static size_t functions_bytes(const struct functions *functions)
{
	size_t bytes = 0;

	for (size_t i = 0; i < functions->count; i++) {
		const struct dotnet_function *function = &functions->items[i];

		bytes += sizeof(*function) + function->rows_count * sizeof(*function->rows) +
			 (function->name ? strlen(function->name) : 0);
	}
	return bytes;
}

size_t dotnet_process_bytes(const struct dotnet_process *process)
{
	size_t bytes = sizeof(*process) + functions_bytes(&process->functions) +
		       functions_bytes(&process->gone);

	for (size_t i = 0; i < process->images_count; i++)
		bytes += process->images[i].methods
				 ? (size_t)process->images[i].functions_count * sizeof(uint32_t)
				 : 0;
	return bytes;
}
