/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/bpf/shared.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/process/kallsyms.h"

#define KALLSYMS "/proc/kallsyms"
#define MODULES "/proc/modules"
#define CHUNK_BYTES ((size_t)256 * 1024)
#define FUNCTION_BYTES_MAX ((uint64_t)1 << 20) /* an address further behind a symbol is not its */
#define MODULE_FUNCTION_BYTES_MAX ((uint64_t)1 << 16) /* modules lie next to other things */
#define WAIT_MIN_NS (60 * CLOCK_NS_PER_S)
#define WAIT_MAX_NS (3600 * CLOCK_NS_PER_S)

/* Symbols as they are read; names are (offset into text), modules as they repeat line by line. */
struct reading {
	struct kernel_symbol *items;
	size_t count, capacity;
	struct strbuf text;
	uint32_t module; /* of the line before */
	uint64_t text_address;
	bool hidden;	   /* an address of 0 was seen */
	bool has_programs; /* those of BPF programs are known from elsewhere */
};

static uint32_t add_text(struct strbuf *text, struct slice s)
{
	uint32_t offset = (uint32_t)text->len;

	strbuf_add_slice(text, s);
	strbuf_add_byte(text, '\0');
	return offset;
}

static uint32_t module_of(struct reading *reading, struct slice module)
{
	if (!module.len)
		return 0;
	if (!reading->module || !slice_is(module, reading->text.data + reading->module))
		reading->module = add_text(&reading->text, module);
	return reading->module;
}

static bool is_program(const struct kallsyms_line *line)
{
	return slice_is(line->module, "bpf") &&
	       slice_starts_with(line->name, SLICE_LITERAL("bpf_prog_"));
}

static void take_line(struct reading *reading, struct slice line)
{
	struct kernel_symbol symbol;
	struct kallsyms_line parsed;

	if (kallsyms_parse_line(line, &parsed, NULL) || !kallsyms_is_code(parsed.type) ||
	    reading->count >= KERNEL_SYMBOLS_MAX || reading->text.len > UINT32_MAX / 2)
		return;
	if (!parsed.address) {
		reading->hidden = true;
		return;
	}
	/* Padding before a function, in front of which it is patched; never executed itself. */
	if (slice_starts_with(parsed.name, SLICE_LITERAL("__pfx_")))
		return;
	if (reading->has_programs && is_program(&parsed))
		return;
	if (slice_is(parsed.name, "_text") && !parsed.module.len)
		reading->text_address = parsed.address;
	symbol.address = parsed.address;
	symbol.module = module_of(reading, parsed.module);
	symbol.name = add_text(&reading->text, parsed.name);
	mem_grow(reading->items, reading->count, reading->capacity);
	reading->items[reading->count++] = symbol;
}

static int read_lines(struct reading *reading, int fd)
{
	struct strbuf text = { 0 };
	ssize_t len;

	while ((len = read(fd, strbuf_reserve(&text, CHUNK_BYTES), CHUNK_BYTES)) > 0) {
		struct slice rest;
		size_t at;

		text.len += (size_t)len;
		rest = strbuf_slice(&text);
		while ((at = slice_find_byte(rest, '\n')) != SIZE_MAX) {
			take_line(reading, slice_from(rest.data, at));
			rest = slice_tail(rest, at + 1);
		}
		if (rest.len >= CHUNK_BYTES)
			rest.len = 0; /* no symbol's line is that long */
		memmove(text.data, rest.data, rest.len);
		text.len = rest.len;
	}
	strbuf_free(&text);
	return len < 0 ? -1 : 0;
}

/* By address; names of one address in the order of the file. */
static int by_address(const void *a, const void *b)
{
	const struct kernel_symbol *first = a, *second = b;

	if (first->address != second->address)
		return first->address < second->address ? -1 : 1;
	return (first->name < second->name) - (first->name > second->name);
}

/* Keeps the first of several names for one address. */
static size_t keep_one_each(struct kernel_symbol *items, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!kept || items[kept - 1].address != items[i].address)
			items[kept++] = items[i];
	return kept;
}

void kernel_symbols_open(struct kernel_symbol_files *ret)
{
	ret->symbols = open(KALLSYMS, O_RDONLY | O_CLOEXEC);
	ret->modules = open(MODULES, O_RDONLY | O_CLOEXEC);
}

void kernel_symbols_close(struct kernel_symbol_files *files)
{
	if (files->symbols >= 0)
		close(files->symbols);
	if (files->modules >= 0)
		close(files->modules);
	*files = KERNEL_SYMBOL_FILES_NONE;
}

/* From the file's beginning; `path` is for messages. */
static int read_symbols(struct kernel_symbols *symbols, int fd, const char *path, struct err *err)
{
	struct reading reading = { .has_programs = symbols->has_programs };
	int failed = lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0, error_number = errno;

	strbuf_add_byte(&reading.text, '\0'); /* offset 0 = no module */
	if (!failed) {
		failed = read_lines(&reading, fd);
		error_number = errno;
	}
	if (failed || !reading.count) {
		free(reading.items);
		strbuf_free(&reading.text);
		if (failed)
			return err_set_errno(err, error_number, "read kernel symbols \"%s\"", path);
		if (reading.hidden)
			return err_set(err, ERR_DENIED,
				       "read kernel symbols \"%s\": the kernel hides addresses "
				       "(sysctl kernel.kptr_restrict=1 shows them to root)",
				       path);
		return err_set(err, ERR_NOT_FOUND, "read kernel symbols \"%s\": none in it", path);
	}
	qsort(reading.items, reading.count, sizeof(*reading.items), by_address);
	free(symbols->items);
	strbuf_free(&symbols->text);
	symbols->count = keep_one_each(reading.items, reading.count);
	symbols->items = mem_realloc(reading.items, symbols->count, sizeof(*reading.items));
	symbols->text = reading.text;
	symbols->text_address = reading.text_address;
	symbols->missed = false;
	return 0;
}

int kernel_symbols_read(struct kernel_symbols *symbols, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;

	if (fd < 0)
		return err_set_errno(err, errno, "read kernel symbols \"%s\"", path);
	code = read_symbols(symbols, fd, path, err);
	close(fd);
	return code;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	free(symbols->items);
	strbuf_free(&symbols->text);
	strbuf_free(&symbols->programs);
	strbuf_free(&symbols->before);
	*symbols = (struct kernel_symbols){ 0 };
}

/* "name size references dependencies state address": not what changes while a module is in use. */
static bool is_telling(unsigned field)
{
	return field == 0 || field == 1 || field == 5;
}

static uint64_t hash_modules(int fd)
{
	unsigned field = 0;
	uint64_t hash = 0;
	char chunk[8192];
	ssize_t len;

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 0;
	while ((len = read(fd, chunk, sizeof(chunk))) > 0) {
		for (ssize_t i = 0; i < len; i++) {
			if (is_telling(field))
				hash = hash_mix(hash, (unsigned char)chunk[i]);
			field = chunk[i] == '\n' ? 0 : field + (chunk[i] == ' ');
		}
	}
	return hash;
}

uint64_t kernel_symbols_hash_modules(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t hash = hash_modules(fd);

	if (fd >= 0)
		close(fd);
	return hash;
}

static void read_again(struct kernel_symbols *symbols, int fd, bool is_first)
{
	struct err err;

	symbols->changed = NULL;
	if (read_symbols(symbols, fd, KALLSYMS, &err) && is_first)
		log_warn("agent", "kernel frames have no names", "reason=\"%s\"", err.message);
}

static int by_start(const void *a, const void *b)
{
	const struct program_code *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

static size_t count_of(const struct strbuf *programs)
{
	return programs->len / sizeof(struct program_code);
}

static void sort_programs(struct strbuf *programs)
{
	struct program_code *items = (void *)programs->data;

	for (size_t i = 0; i < count_of(programs); i++)
		items[i].name[PROGRAM_NAME_BYTES - 1] = '\0';
	if (count_of(programs))
		qsort(items, count_of(programs), sizeof(*items), by_start);
}

/* Once in a window. */
static void list_programs(struct kernel_symbols *symbols)
{
	kernel_symbols_list_f *list = symbols->list_programs;
	struct strbuf now = symbols->before;

	symbols->list_programs = NULL;
	if (!list)
		return;
	now.len = 0;
	symbols->before = symbols->programs;
	symbols->has_programs = list(symbols->list_context, &now);
	if (!symbols->has_programs)
		now.len = 0;
	sort_programs(&now);
	symbols->programs = now;
}

void kernel_symbols_refresh(struct kernel_symbols *symbols, const struct kernel_symbol_files *files,
			    kernel_symbols_list_f *list, void *context, int64_t now_ns)
{
	bool first = symbols->wait_ns == 0;
	uint64_t modules_hash;

	symbols->list_programs = list;
	symbols->list_context = context;
	if (!first && now_ns - symbols->checked_at_ns < symbols->wait_ns)
		return;
	modules_hash = hash_modules(files->modules);
	symbols->checked_at_ns = now_ns;
	if (first || modules_hash != symbols->modules_hash) {
		symbols->wait_ns = WAIT_MIN_NS;
		symbols->modules_hash = modules_hash;
		symbols->changed = files;
		if (first) {
			list_programs(symbols);
			read_again(symbols, files->symbols, true);
		}
		return;
	}
	if (!symbols->missed)
		return;
	if (symbols->wait_ns < WAIT_MAX_NS)
		symbols->wait_ns *= 2; /* some addresses never get a name */
	read_again(symbols, files->symbols, false);
}

static const struct program_code *find_program(const struct strbuf *programs, uint64_t address)
{
	const struct program_code *items = (const void *)programs->data;
	size_t low = bisect(0, count_of(programs), i, items[i].start <= address);

	return low && address < items[low - 1].end ? &items[low - 1] : NULL;
}

static uint64_t bytes_max(const struct kernel_symbol *symbol)
{
	return symbol->module ? MODULE_FUNCTION_BYTES_MAX : FUNCTION_BYTES_MAX;
}

/* The last symbol that is not behind the address; NULL = none is near enough. */
static const struct kernel_symbol *find_symbol(const struct kernel_symbols *symbols,
					       uint64_t address)
{
	size_t low = bisect(0, symbols->count, i, symbols->items[i].address <= address);

	if (!low ||
	    address - symbols->items[low - 1].address >= bytes_max(&symbols->items[low - 1]))
		return NULL;
	return &symbols->items[low - 1];
}

bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, struct slice *ret_name,
			 struct slice *ret_module)
{
	const struct kernel_symbol *symbol = find_symbol(symbols, address);
	const struct program_code *program;

	/* What the kernel itself is called never changes. */
	if (!symbol || symbol->module) {
		list_programs(symbols);
		program = find_program(&symbols->programs, address);
		if (!program)
			program = find_program(&symbols->before, address);
		if (program) {
			*ret_name = slice_of(program->name);
			*ret_module = SLICE_LITERAL("bpf");
			return true;
		}
		if (symbols->changed)
			read_again(symbols, symbols->changed->symbols, false);
		symbol = find_symbol(symbols, address);
	}
	if (!symbol) {
		symbols->missed = true;
		return false;
	}
	*ret_name = slice_of(symbols->text.data + symbol->name);
	*ret_module = symbol->module ? slice_of(symbols->text.data + symbol->module)
				     : (struct slice){ 0 };
	return true;
}
