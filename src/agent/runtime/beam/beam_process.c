/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: erts/emulator/beam/{beam_ranges.c, beam_code.h, atom.h, index.h}.
 */
#include "agent/runtime/beam/beam_process.h"

#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code_memory.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "base/strbuf.h"

#define CODE_INDEXES 3u
#define TABLE_BYTES 32u /* of modules */
#define TABLE_COUNT_AT 8u

/* ErtsCodeInfo */
#define INFO_MODULE_AT 16u
#define INFO_FUNCTION_AT 24u
#define INFO_ARITY_AT 32u
#define ARITY_MAX 255u

/* BeamCodeLineTab */
#define LINES_FILES_AT 0u
#define LINES_BYTES_AT 8u
#define LINES_PLACES_AT 16u
#define LINES_FUNCTIONS_AT 24u
#define LINES_MAX (1u << 20)
#define LINE_BITS 24

/* Terms, and the table of atoms. */
#define ATOM_TAG_BITS 6
#define ATOM_TAG 0x0bu
#define ATOM_TAG_MASK 0x3fu
#define ATOM_INDEX_MAX (1u << 26)
#define ATOM_SEGMENT_BITS 10
#define ATOM_LENGTH_AT 24u
#define ATOM_TEXT_AT 32u
#define ATOM_BYTES_MAX 1020u /* 255 characters */

#define ELIXIR_PREFIX "Elixir."

struct module {
	uint64_t start, end;
};

struct beam_process {
	struct beam_layout layout;
	uint64_t bias;
	struct beam_walk walk;
	bool is_understood;
	struct module *modules;
	size_t modules_count;
	struct beam_place *places;
	size_t places_count, places_capacity;
	struct idmap map;
	size_t bytes;
};

/* A look under way. */
struct look {
	struct beam_process *process;
	struct code_memory *memory;
};

struct beam_process *beam_process_new(const struct beam_layout *layout, uint64_t bias)
{
	struct beam_process *process = mem_new(struct beam_process);

	process->layout = *layout;
	process->bias = bias;
	return process;
}

static void fini_place(struct beam_place *place)
{
	free(place->function);
	free(place->file);
}

void beam_process_free(struct beam_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->places_count; i++)
		fini_place(&process->places[i]);
	free(process->places);
	free(process->modules);
	idmap_free(&process->map);
	free(process);
}

size_t beam_process_bytes(const struct beam_process *process)
{
	return process->bytes;
}

struct beam_walk beam_process_walk(const struct beam_process *process)
{
	return process->walk;
}

/* ---- places ---- */

static bool same_place(const void *context, uint32_t id, const void *key)
{
	const struct beam_process *process = context;

	return process->places[id].address == *(const uint64_t *)key;
}

const struct beam_place *beam_process_find(const struct beam_process *process, uint64_t address)
{
	uint32_t id =
		idmap_find(&process->map, hash_mix(0, address), same_place, process, &address);

	return id == IDMAP_NONE ? NULL : &process->places[id];
}

static void add_place(struct beam_process *process, const struct beam_place *place)
{
	mem_grow(process->places, process->places_count, process->places_capacity);
	idmap_add(&process->map, hash_mix(0, place->address), (uint32_t)process->places_count);
	process->places[process->places_count++] = *place;
	process->bytes += sizeof(*place) + strlen(place->file) +
			  (place->function ? strlen(place->function) : 0);
}

static const struct module *find_module(const struct beam_process *process, uint64_t address)
{
	size_t low = bisect(0, process->modules_count, i, process->modules[i].start <= address);

	return low && address < process->modules[low - 1].end ? &process->modules[low - 1] : NULL;
}

/* What is in no module is code of the runtime's own, as long as that is so. */
static bool is_as_it_was(const struct beam_process *process, const struct beam_place *place)
{
	const struct module *module = find_module(process, place->address);

	return module ? module->start == place->start && module->end == place->end : !place->start;
}

/* Those that do not hold any more, or all when there are too many. */
static void forget_places(struct beam_process *process)
{
	bool keep = process->places_count < BEAM_PLACES_MAX;
	size_t count = process->places_count;

	idmap_clear(&process->map);
	process->places_count = process->bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct beam_place place = process->places[i];

		if (keep && is_as_it_was(process, &place))
			add_place(process, &place);
		else
			fini_place(&place);
	}
}

/* ---- atoms ---- */

static bool add_atom(struct look *look, uint64_t term, struct strbuf *out)
{
	const struct beam_process *process = look->process;
	uint64_t index = term >> ATOM_TAG_BITS, segments, atom, text;
	char bytes[ATOM_BYTES_MAX];
	uint16_t len;

	if ((term & ATOM_TAG_MASK) != ATOM_TAG || index >= ATOM_INDEX_MAX)
		return false;
	segments = code_memory_u64(look->memory, process->layout.atoms + process->bias +
							 process->layout.segments);
	atom = code_memory_u64(look->memory, segments + 8 * (index >> ATOM_SEGMENT_BITS));
	atom = code_memory_u64(look->memory, atom + 8 * (index & ((1u << ATOM_SEGMENT_BITS) - 1)));
	len = code_memory_u16(look->memory, atom + ATOM_LENGTH_AT);
	text = code_memory_u64(look->memory, atom + ATOM_TEXT_AT);
	if (!len || len > ATOM_BYTES_MAX || !code_memory_read(look->memory, text, bytes, len))
		return false;
	strbuf_add(out, bytes, len);
	return true;
}

/* ---- names ---- */

/* "-map/2-fun-0-" is "map/2"; empty when it is no such name. */
static struct slice function_of_fun(struct slice name)
{
	static const char mark[] = "-fun-";
	const char *at = name.len > 1 && *name.data == '-'
				 ? memmem(name.data, name.len, mark, strlen(mark))
				 : NULL;

	return at && at > name.data + 1 ? slice_from(name.data + 1, (size_t)(at - name.data) - 1)
					: (struct slice){ 0 };
}

/* As Elixir writes it. */
static void add_elixir(struct strbuf *out, struct slice module, struct slice function,
		       uint32_t arity)
{
	struct slice outer = function_of_fun(function);

	if (outer.len)
		strbuf_addf(out, "anonymous fn/%u in %.*s.%.*s", arity, SLICE_FMT(module),
			    SLICE_FMT(outer));
	else
		strbuf_addf(out, "%.*s.%.*s/%u", SLICE_FMT(module), SLICE_FMT(function), arity);
}

static void add_name(struct strbuf *out, struct slice module, struct slice function, uint32_t arity)
{
	size_t prefix = strlen(ELIXIR_PREFIX);

	if (slice_starts_with(module, slice_of(ELIXIR_PREFIX)))
		add_elixir(out, slice_from(module.data + prefix, module.len - prefix), function,
			   arity);
	else
		strbuf_addf(out, "%.*s:%.*s/%u", SLICE_FMT(module), SLICE_FMT(function), arity);
}

static char *take_text(struct strbuf *text)
{
	char *taken = mem_strndup(text->len ? text->data : "", text->len);

	strbuf_free(text);
	return taken;
}

/* The name of the function whose ErtsCodeInfo is at `info`, and its module's. */
static bool read_name(struct look *look, uint64_t info, char **ret_name, char **ret_module)
{
	uint64_t arity = code_memory_u64(look->memory, info + INFO_ARITY_AT);
	struct strbuf module = { 0 }, function = { 0 }, name = { 0 };
	bool known =
		arity <= ARITY_MAX &&
		add_atom(look, code_memory_u64(look->memory, info + INFO_MODULE_AT), &module) &&
		add_atom(look, code_memory_u64(look->memory, info + INFO_FUNCTION_AT), &function);

	if (known) {
		add_name(&name, slice_from(module.data, module.len),
			 slice_from(function.data, function.len), (uint32_t)arity);
		*ret_name = take_text(&name);
		*ret_module = mem_strndup(module.data, module.len);
	}
	strbuf_free(&module);
	strbuf_free(&function);
	return known;
}

/* ---- functions and lines ---- */

/* The last of the words in [at, at + 8 * count) that is not behind the address; `count`: none. */
static uint64_t find_word(struct look *look, uint64_t at, uint64_t count, uint64_t address)
{
	uint64_t low = bisect(0, count, i, code_memory_u64(look->memory, at + 8 * i) <= address);

	return low ? low - 1 : count;
}

/* The file's number, and the line; 0 = not known. */
static uint32_t find_line(struct look *look, uint64_t lines, uint64_t function, uint64_t address)
{
	uint64_t all = code_memory_u64(look->memory, lines + LINES_FUNCTIONS_AT);
	uint64_t functions_at = lines + LINES_FUNCTIONS_AT + 8 * function;
	uint64_t first = code_memory_u64(look->memory, functions_at);
	uint64_t end = code_memory_u64(look->memory, functions_at + 8);
	uint64_t places = code_memory_u64(look->memory, lines + LINES_PLACES_AT);
	uint64_t count = (end - first) / 8, index;

	if (first < all || end < first || count > LINES_MAX || (first - all) / 8 > LINES_MAX)
		return 0;
	index = find_word(look, first, count, address);
	if (index == count)
		return 0;
	index += (first - all) / 8;
	return code_memory_u32(look->memory, lines + LINES_BYTES_AT) == 2
		       ? code_memory_u16(look->memory, places + 2 * index)
		       : code_memory_u32(look->memory, places + 4 * index);
}

static char *read_file(struct look *look, uint64_t lines, uint32_t number, const char *module)
{
	uint64_t files = code_memory_u64(look->memory, lines + LINES_FILES_AT);
	struct strbuf text = { 0 };

	if (!number)
		strbuf_addf(&text, "%s.erl", module);
	else
		add_atom(look, code_memory_u64(look->memory, files + 8ull * (number - 1)), &text);
	return take_text(&text);
}

static void read_line(struct look *look, uint64_t lines, uint64_t function, const char *module,
		      struct beam_place *ret)
{
	uint32_t line = find_line(look, lines, function, ret->address);

	if (!line)
		return;
	free(ret->file);
	ret->file = read_file(look, lines, line >> LINE_BITS, module);
	ret->line = line & ((1u << LINE_BITS) - 1);
}

static void read_function(struct look *look, const struct module *module, struct beam_place *ret)
{
	const struct beam_layout *layout = &look->process->layout;
	uint64_t count = code_memory_u64(look->memory, module->start);
	uint64_t functions = module->start + layout->functions, lines, index;
	char *name;

	if (!count || count > BEAM_FUNCTIONS_MAX)
		return;
	index = find_word(look, functions, count, ret->address);
	if (index == count ||
	    ret->address >= code_memory_u64(look->memory, functions + 8 * (index + 1)) ||
	    !read_name(look, code_memory_u64(look->memory, functions + 8 * index), &ret->function,
		       &name))
		return;
	lines = code_memory_u64(look->memory, module->start + layout->lines);
	if (lines)
		read_line(look, lines, index, name, ret);
	free(name);
}

static void read_place(struct look *look, uint64_t address)
{
	const struct module *module = find_module(look->process, address);
	struct beam_place place = { .address = address, .file = mem_strndup("", 0) };

	if (module) {
		place.start = module->start;
		place.end = module->end;
		read_function(look, module, &place);
	}
	add_place(look->process, &place);
}

/* ---- the table of modules ---- */

static bool is_sorted(const struct module *modules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (modules[i].start >= modules[i].end ||
		    (i && modules[i].start < modules[i - 1].end))
			return false;
	return true;
}

/* Sets modules and walk. */
static enum beam_answer read_modules(struct look *look)
{
	struct beam_process *process = look->process;
	const struct beam_layout *layout = &process->layout;
	uint64_t bias = process->bias;
	uint32_t active = code_memory_u32(look->memory, layout->active_code + bias);
	uint64_t table = layout->ranges + bias + TABLE_BYTES * (uint64_t)active;
	uint64_t at = code_memory_u64(look->memory, table);
	uint64_t count = code_memory_u64(look->memory, table + TABLE_COUNT_AT);
	uint64_t exit = code_memory_u64(look->memory, layout->exit + bias);
	uint32_t key = code_memory_u32(look->memory, layout->key + bias);

	process->walk.exit = code_memory_u32(look->memory, layout->frame_layout + bias) ? 0 : exit;
	process->walk.key = key < UINT16_MAX ? (uint16_t)key : UINT16_MAX;
	process->walk.current_process = layout->current_process;
	if (active >= CODE_INDEXES || count > BEAM_MODULES_MAX)
		return BEAM_UNKNOWN;
	if (!exit || !count)
		return BEAM_NOT_YET;
	free(process->modules);
	process->modules = mem_calloc(count, sizeof(*process->modules));
	process->modules_count = 0;
	if (!code_memory_read(look->memory, at, process->modules,
			      count * sizeof(*process->modules)) ||
	    !is_sorted(process->modules, count))
		return BEAM_NOT_YET; /* it changes just now */
	process->modules_count = count;
	return BEAM_ANSWERED;
}

/* The first function of some module has a name, or all is other than we take it for. */
static bool is_understood(struct look *look)
{
	const struct beam_process *process = look->process;
	const struct module *module = &process->modules[process->modules_count / 2];
	struct beam_place place = { .file = mem_strndup("", 0) };
	bool known;

	place.address = code_memory_u64(look->memory, module->start + process->layout.functions);
	read_function(look, module, &place);
	known = place.function;
	fini_place(&place);
	return known;
}

enum beam_answer beam_process_read(struct beam_process *process, const struct memory_reader *memory,
				   const uint64_t *wanted, size_t count)
{
	struct look look = { process, code_memory_new(memory) };
	enum beam_answer answer = read_modules(&look);

	/* Once: later the module may be one that is being replaced. */
	if (answer == BEAM_ANSWERED && !process->is_understood)
		process->is_understood = is_understood(&look);
	if (answer == BEAM_ANSWERED && !process->is_understood)
		answer = BEAM_UNKNOWN;
	if (answer == BEAM_ANSWERED) {
		forget_places(process);
		for (size_t i = 0; i < count && !code_memory_is_spent(look.memory); i++)
			if (!beam_process_find(process, wanted[i]))
				read_place(&look, wanted[i]);
	}
	free(look.memory);
	return answer;
}
