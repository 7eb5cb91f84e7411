/* SPDX-License-Identifier: Apache-2.0 */
/* firn symbolize - names the addresses of a binary, as the server would. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/idmap.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/printable.h"
#include "cli/verb.h"
#include "server/resolve/read/debug_files.h"
#include "server/resolve/display/demangle.h"
#include "server/resolve/sources/symbol_store.h"
#include "server/resolve/table/symbol_texts.h"

#define INPUT_BYTES ((size_t)64 * 1024) /* read at once; a line is far shorter */
#define OUTPUT_BYTES ((size_t)64 * 1024)
#define PIPE_BYTES (256 * 1024)
#define ADDRESSES_MAX 1024	      /* answered together */
#define FIRST_ADDRESSES_MAX 16384     /* for fewer than these, a table of them alone is made */
#define FIRST_WAIT_MS 10	      /* for more of them */
#define NAMES_BYTES ((size_t)4 << 20) /* of names kept as they are shown */
#define TEXTS_BYTES ((size_t)4 << 20) /* of names kept as the table has them */
#define LINKS_BYTES ((size_t)5 << 20) /* of answers kept */
#define LINKS_MAX 32768u

struct symbolize_verb_options {
	struct verb_common common;
	const char *debuginfo_path;
	const char *tables_path;
	const char *demangle;
	bool stats;
};

static const struct option options[] = {
	OPTION_AT(SYMBOLIZE_DEBUGINFO_PATH,
		  offsetof(struct symbolize_verb_options, debuginfo_path)),
	OPTION_AT(TABLES_PATH, offsetof(struct symbolize_verb_options, tables_path)),
	OPTION_AT(DEMANGLE, offsetof(struct symbolize_verb_options, demangle)),
	OPTION_AT(SYMBOLIZE_STATS, offsetof(struct symbolize_verb_options, stats)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "symbolize",
	.operands = "FILE [ADDR...]",
	.summary = "name addresses of a binary: function, file, line, inlined callers",
	.details = "Addresses are hexadecimal, with or without 0x, as in the file (what nm\n"
		   "prints). Without any, they are read from standard input, one per line, and\n"
		   "each is answered at once. The answer has one line per frame, the innermost\n"
		   "inlined call first, and an empty line after each address:\n"
		   "\n"
		   "  function<TAB>file:line<TAB>inlined, or nothing for the function itself\n"
		   "\n"
		   "An unknown name is ??, an unknown line 0. At the end of standard input the\n"
		   "reasons are printed to standard error. Debug files are found by build id and\n"
		   "by debuglink, as debuggers do.\n"
		   "\n"
		   "Exits 1 when no address could be named.\n"
		   "\n"
		   "  firn symbolize /usr/lib/x86_64-linux-gnu/libc.so.6 9f5a0\n"
		   "  nm -D libfoo.so | cut -d' ' -f1 | firn symbolize libfoo.so",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/* A function or a file of the table as it is shown, made once; keyed by its number. */
struct shown {
	uint32_t number;
	bool is_function;
	struct slice shown;
};

/*
 * What an answer says of a scope: `before` bytes with the function, then comes a place, then the
 * rest: to the place of the call, and the same of the caller's scope goes on.
 */
struct link {
	uint32_t scope, caller; /* SYMBOL_NONE: none */
	uint32_t before;
	struct slice text; /* empty: there is none */
	bool is_unnamed;   /* the innermost function has no name of its own */
};

/*
 * How much of the binary the table is of: making one of a few addresses takes a fraction of the
 * time, so that is done for those that come first; when more come, one of all.
 */
enum table_part { TABLE_NONE, TABLE_OF_FIRST, TABLE_WHOLE };

struct symbolizer {
	const char *path;
	struct strbuf binary; /* name of the file that the path leads to */
	const struct symbolize_verb_options *values;
	struct symbol_sources sources;
	struct elf_info info;
	enum table_part part;
	int64_t built_ns; /* what making the table took */
	struct symbol_table *table;
	struct symbol_texts *texts;
	enum demangle_mode mode;
	struct arena arena; /* of the shown names */
	struct shown *names;
	size_t names_count, names_capacity;
	struct idmap names_map;
	struct link *links; /* by scope modulo LINKS_MAX: the last that was asked for */
	struct arena links_arena;
	struct strbuf link;			 /* being made */
	uint64_t addresses[FIRST_ADDRESSES_MAX]; /* read, not yet answered */
	size_t count;
	struct strbuf out;
	uint64_t asked, unknown, outside;
};

static bool shown_equal(const void *context, uint32_t id, const void *key)
{
	const struct shown *shown = (const struct shown *)context + id, *wanted = key;

	return shown->number == wanted->number && shown->is_function == wanted->is_function;
}

/* Names come from files that anyone can make: they may not break lines and columns. */
static struct slice printable(struct symbolizer *symbolizer, struct slice text)
{
	struct strbuf shown = { 0 };
	struct slice copy;

	if (!text.len)
		return SLICE_LITERAL("?\?");
	printable_add(&shown, text);
	copy = arena_copy(&symbolizer->arena, strbuf_slice(&shown));
	strbuf_free(&shown);
	return copy;
}

/* The source's name where the mangled one cannot be read. */
static struct slice show_name(struct symbolizer *symbolizer, struct slice name,
			      struct slice linkage_name)
{
	struct slice system = linkage_name.len ? linkage_name : name, shown = system;

	if (symbolizer->mode != DEMANGLE_NONE &&
	    !demangle_as(system, symbolizer->mode, &symbolizer->arena, &shown) && name.len)
		shown = name;
	return shown;
}

/* By the file's own name, as a process that maps it has it. */
static struct slice name_unnamed(struct symbolizer *symbolizer, struct slice name,
				 struct slice linkage_name)
{
	struct strbuf text = { 0 };
	struct slice copy;

	symbol_unnamed_show(&text, strbuf_slice(&symbolizer->binary), name, linkage_name);
	copy = arena_copy(&symbolizer->arena, strbuf_slice(&text));
	strbuf_free(&text);
	return copy;
}

static void note_binary(const char *path, struct strbuf *ret)
{
	char *whole = realpath(path, NULL);
	const char *slash = strrchr(whole ? whole : path, '/');

	strbuf_add_text(ret, slash ? slash + 1 : path);
	free(whole);
}

static struct slice name_function(struct symbolizer *symbolizer, uint32_t number)
{
	struct symbol_function function = symbol_table_function(symbolizer->table, number);
	struct slice name = symbol_texts_get(symbolizer->texts, function.name), linkage_name;

	linkage_name = symbol_texts_get(symbolizer->texts, function.linkage_name);
	return function.is_unnamed ? name_unnamed(symbolizer, name, linkage_name)
				   : show_name(symbolizer, name, linkage_name);
}

static struct slice show(struct symbolizer *symbolizer, uint32_t number, bool is_function)
{
	struct shown entry = { .number = number, .is_function = is_function };
	uint64_t hash = hash_mix(is_function, number);
	uint32_t id =
		idmap_find(&symbolizer->names_map, hash, shown_equal, symbolizer->names, &entry);

	if (id != IDMAP_NONE)
		return symbolizer->names[id].shown;
	entry.shown =
		printable(symbolizer, is_function ? name_function(symbolizer, number)
						  : symbol_texts_get(symbolizer->texts, number));
	mem_grow(symbolizer->names, symbolizer->names_count, symbolizer->names_capacity);
	idmap_add(&symbolizer->names_map, hash, (uint32_t)symbolizer->names_count);
	symbolizer->names[symbolizer->names_count++] = entry;
	return entry.shown;
}

/* Between two answers: names that were asked for are kept, but not all that there are. */
static void forget_names(struct symbolizer *symbolizer)
{
	symbol_texts_trim(symbolizer->texts, TEXTS_BYTES);
	if (symbolizer->arena.used_bytes < NAMES_BYTES)
		return;
	arena_free(&symbolizer->arena);
	idmap_clear(&symbolizer->names_map);
	symbolizer->names_count = 0;
}

static int flush(struct symbolizer *symbolizer, struct err *err)
{
	const char *at = symbolizer->out.data;
	size_t left = symbolizer->out.len;

	while (left) {
		ssize_t done = write(STDOUT_FILENO, at, left);

		if (done < 0 && errno != EINTR)
			return err_set_errno(err, errno, "write the names of \"%s\"",
					     symbolizer->path);
		at += done > 0 ? done : 0;
		left -= done > 0 ? (size_t)done : 0;
	}
	strbuf_clear(&symbolizer->out);
	return 0;
}

static void add_number(struct strbuf *out, uint32_t number)
{
	char digits[10], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	strbuf_add(out, at, (size_t)(digits + sizeof(digits) - at));
}

static bool is_in_code(const struct elf_info *info, uint64_t address)
{
	for (size_t i = 0; i < info->segments_count; i++)
		if (info->segments[i].executable && address >= info->segments[i].address &&
		    address - info->segments[i].address < info->segments[i].memory_bytes)
			return true;
	return false;
}

/* What follows the function's name and its tab. */
static void add_place(struct symbolizer *symbolizer, uint32_t file, uint32_t line,
		      struct strbuf *out)
{
	strbuf_add_slice(out, show(symbolizer, file, false));
	strbuf_add_byte(out, ':');
	add_number(out, line);
}

static void add_end(struct strbuf *out, bool is_inlined)
{
	strbuf_add_text(out, is_inlined ? "\tinlined\n" : "\t\n");
}

static void make_link(struct symbolizer *symbolizer, uint32_t scope, struct link *ret)
{
	struct strbuf *out = &symbolizer->link;
	struct symbol_caller caller;

	strbuf_clear(out);
	if (!symbol_lookup_scope(symbolizer->table, scope, &caller)) /* damaged */
		caller = (struct symbol_caller){ .function = SYMBOL_NONE, .scope = SYMBOL_NONE };
	strbuf_add_slice(out, show(symbolizer, caller.function, true));
	strbuf_add_byte(out, '\t');
	*ret = (struct link){
		.scope = scope,
		.caller = caller.scope,
		.before = (uint32_t)out->len,
		.is_unnamed = caller.function != SYMBOL_NONE &&
			      symbol_table_is_unnamed(symbolizer->table, caller.function),
	};
	add_end(out, caller.scope != SYMBOL_NONE);
	if (caller.scope != SYMBOL_NONE) {
		struct symbol_caller outer;

		if (symbol_lookup_scope(symbolizer->table, caller.scope, &outer))
			strbuf_add_slice(out, show(symbolizer, outer.function, true));
		strbuf_add_byte(out, '\t');
		add_place(symbolizer, caller.file, caller.line, out);
	}
	ret->text = arena_copy(&symbolizer->links_arena, strbuf_slice(out));
}

static const struct link *link_of(struct symbolizer *symbolizer, uint32_t scope)
{
	struct link *link = &symbolizer->links[scope % LINKS_MAX];

	if (link->text.len && link->scope == scope)
		return link;
	if (symbolizer->links_arena.used_bytes >= LINKS_BYTES) {
		arena_free(&symbolizer->links_arena);
		memset(symbolizer->links, 0, LINKS_MAX * sizeof(*symbolizer->links));
	}
	make_link(symbolizer, scope, link);
	return link;
}

static void answer(struct symbolizer *symbolizer, uint64_t address,
		   const struct symbol_location *location)
{
	struct strbuf *out = &symbolizer->out;

	symbolizer->asked++;
	if (location->scope != SYMBOL_NONE) {
		const struct link *link = link_of(symbolizer, location->scope);

		symbolizer->unknown += link->is_unnamed;
		strbuf_add(out, link->text.data, link->before);
		add_place(symbolizer, location->file, location->line, out);
		strbuf_add_slice(out, slice_tail(link->text, link->before));
		for (unsigned i = 1; link->caller != SYMBOL_NONE && i < SYMBOL_CHAIN_MAX; i++) {
			link = link_of(symbolizer, link->caller);
			strbuf_add_slice(out, slice_tail(link->text, link->before));
		}
		strbuf_add_byte(out, '\n');
	} else {
		if (!location->line) {
			symbolizer->unknown++;
			symbolizer->outside += !is_in_code(&symbolizer->table->info, address);
		}
		strbuf_add_text(out, "\?\?\t");
		add_place(symbolizer, location->file, location->line, out);
		add_end(out, false);
		strbuf_add_byte(out, '\n');
	}
	forget_names(symbolizer);
}

/* And all that was made of it. */
static void close_table(struct symbolizer *symbolizer)
{
	symbol_texts_free(symbolizer->texts);
	symbol_table_free(symbolizer->table);
	arena_free(&symbolizer->arena);
	arena_free(&symbolizer->links_arena);
	idmap_clear(&symbolizer->names_map);
	symbolizer->names_count = 0;
	memset(symbolizer->links, 0, LINKS_MAX * sizeof(*symbolizer->links));
	symbolizer->texts = NULL;
	symbolizer->table = NULL;
	symbolizer->part = TABLE_NONE;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int make_table_of_first(struct symbolizer *symbolizer, struct err *err)
{
	size_t bytes = symbolizer->count * sizeof(uint64_t);
	uint64_t *sorted = mem_new_array(uint64_t, symbolizer->count);
	const struct symbol_asked asked = { sorted, symbolizer->count };
	int status;

	memcpy(sorted, symbolizer->addresses, bytes);
	qsort(sorted, asked.count, sizeof(*sorted), compare_addresses);
	status = symbol_sources_table(&symbolizer->sources, &asked, &symbolizer->table, err);
	free(sorted);
	return status;
}

static int make_whole_table(struct symbolizer *symbolizer, struct err *err)
{
	struct symbol_store *store;
	int status = symbol_store_open(symbolizer->values->tables_path, SYMBOL_STORE_BYTES_DEFAULT,
				       &store, err);

	if (status)
		return status;
	status = symbol_store_get(store, slice_of(symbolizer->info.build_id), &symbolizer->sources,
				  NULL, &symbolizer->table, err);
	symbol_store_close(store);
	return status;
}

static int open_table(struct symbolizer *symbolizer, enum table_part part, struct err *err)
{
	int64_t start_ns = clock_monotonic_ns();
	int status;

	close_table(symbolizer);
	status = part == TABLE_WHOLE ? make_whole_table(symbolizer, err)
				     : make_table_of_first(symbolizer, err);
	if (status)
		return status;
	symbolizer->part = part;
	symbolizer->texts = symbol_texts_new(symbolizer->table);
	symbolizer->built_ns = clock_monotonic_ns() - start_ns;
	return 0;
}

/* A table that is kept is one of all addresses, and so is one that is told of. */
static bool is_first_apart(const struct symbolizer *symbolizer)
{
	return symbolizer->part == TABLE_NONE && symbolizer->count < FIRST_ADDRESSES_MAX &&
	       !symbolizer->values->tables_path && !symbolizer->values->stats;
}

/* Answers all that were asked; writes when it is worth a call. */
static int answer_asked(struct symbolizer *symbolizer, struct err *err)
{
	struct symbol_location locations[ADDRESSES_MAX];
	int status = 0;

	if (symbolizer->count && symbolizer->part != TABLE_WHOLE)
		status = open_table(symbolizer,
				    is_first_apart(symbolizer) ? TABLE_OF_FIRST : TABLE_WHOLE, err);
	for (size_t i = 0; !status && i < symbolizer->count; i++) {
		size_t at = i % ADDRESSES_MAX, left = symbolizer->count - i;

		if (!at)
			symbol_lookup_locations(symbolizer->table, symbolizer->addresses + i,
						left < ADDRESSES_MAX ? left : ADDRESSES_MAX,
						locations);
		answer(symbolizer, symbolizer->addresses[i], &locations[at]);
		if (symbolizer->out.len >= OUTPUT_BYTES)
			status = flush(symbolizer, err);
	}
	symbolizer->count = 0;
	return status;
}

static bool parse_address(struct slice text, uint64_t *ret)
{
	uint64_t address = 0;

	if (text.len > 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x')
		text = slice_tail(text, 2);
	if (!text.len || text.len > 16)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c >= '0' && c <= '9')
			address = address << 4 | (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			address = address << 4 | (uint64_t)((c | 32) - 'a' + 10);
		else
			return false;
	}
	*ret = address;
	return true;
}

/* Notes an address, to be answered with others. */
static int ask(struct symbolizer *symbolizer, struct slice text, struct err *err)
{
	uint64_t address;

	if (!parse_address(text, &address))
		return err_set(err, ERR_INVALID,
			       "read address \"%.*s\": expected hexadecimal digits, such as 401136",
			       (int)(text.len < 64 ? text.len : 64), text.data);
	symbolizer->addresses[symbolizer->count++] = address;
	return symbolizer->count < FIRST_ADDRESSES_MAX ? 0 : answer_asked(symbolizer, err);
}

/* Whether the table is still to be made, and more to make it for comes at once. */
static bool has_more_first(const struct symbolizer *symbolizer)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return symbolizer->part == TABLE_NONE && poll(&input, 1, FIRST_WAIT_MS) == 1;
}

static struct slice trim(struct slice line)
{
	while (line.len && (unsigned char)line.data[line.len - 1] <= ' ')
		line.len--;
	while (line.len && (unsigned char)line.data[0] <= ' ')
		line = slice_tail(line, 1);
	return line;
}

/* Answers what has come before it waits for more, so that a program can ask line by line. */
static int answer_input(struct symbolizer *symbolizer, struct err *err)
{
	char *input = mem_new_array(char, INPUT_BYTES);
	size_t held = 0;
	bool at_end = false;
	int status = 0;

	while (!status && !at_end) {
		ssize_t got = read(STDIN_FILENO, input + held, INPUT_BYTES - held);
		struct slice left;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			status = err_set_errno(err, errno, "read addresses from standard input");
			break;
		}
		held += (size_t)got;
		at_end = !got;
		left = slice_from(input, held);
		while (!status && left.len) {
			size_t end = slice_find_byte(left, '\n');
			bool is_cut = end == SIZE_MAX;
			struct slice line = slice_from(left.data, is_cut ? left.len : end);

			if (is_cut && !at_end && left.len < INPUT_BYTES)
				break;
			line = trim(line);
			if (line.len)
				status = ask(symbolizer, line, err);
			left = slice_tail(left, is_cut ? left.len : end + 1);
		}
		memmove(input, left.data, left.len);
		held = left.len;
		if (!status && !at_end && has_more_first(symbolizer))
			continue;
		if (!status)
			status = answer_asked(symbolizer, err);
		if (!status)
			status = flush(symbolizer, err);
	}
	free(input);
	return status;
}

/* Memory of this process in kB: a line of /proc/self/status, or 0. */
static uint64_t memory_of(const char *field)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, field, strlen(field)) &&
		    sscanf(line + strlen(field), ": %llu kB", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return (uint64_t)kib << 10;
}

static void print_stats(const struct symbol_table *table, int64_t built_ns, int64_t answered_ns,
			uint64_t asked)
{
	struct symbol_table_stats stats = symbol_table_stats(table);
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	fprintf(stderr,
		"table bytes: %zu\nmade of: %s\nbytes of rows: %" PRIu64 "\nscopes: %" PRIu32
		"\nbytes of scopes: %" PRIu64 "\nfunctions: %" PRIu32
		"\nfunctions without names: %" PRIu32 "\nbytes of functions: %" PRIu64
		"\ntexts: %" PRIu32 "\nbytes of texts: %" PRIu64
		"\nseconds to build: %.6f\ncpu seconds to answer: %.6f\n"
		"addresses: %" PRIu64 "\npeak bytes to build: %" PRIu64 "\npeak bytes: %" PRIu64
		"\nbytes besides mapped files: %" PRIu64 "\n",
		symbol_table_bytes(table), symbol_origin_text(table->origin), stats.row_bytes,
		stats.scopes, stats.scope_bytes, stats.functions, stats.unnamed,
		stats.function_bytes, stats.texts, stats.text_bytes,
		(double)built_ns / CLOCK_NS_PER_S, (double)answered_ns / CLOCK_NS_PER_S, asked,
		(uint64_t)children.ru_maxrss << 10, memory_of("VmHWM"), memory_of("RssAnon"));
}

static void explain(const struct symbolizer *symbolizer)
{
	const struct symbol_table *table = symbolizer->table;

	if (symbolizer->outside)
		printable_print(stderr,
				"firn symbolize: %" PRIu64 " of %" PRIu64
				" addresses are not in the code of "
				"\"%s\"\n",
				symbolizer->outside, symbolizer->asked, symbolizer->path);
	if (symbolizer->unknown == symbolizer->outside)
		return;
	printable_print(stderr,
			"firn symbolize: %" PRIu64 " of %" PRIu64
			" addresses are in no function that \"%s\" "
			"names",
			symbolizer->unknown - symbolizer->outside, symbolizer->asked,
			symbolizer->path);
	if (*table->note)
		printable_print(stderr, "; its debug information was left out: %s", table->note);
	else if (table->origin <= SYMBOL_ORIGIN_SYMBOLS)
		fprintf(stderr, "; it has no debug information, nor is any here for build id %s",
			table->info.build_id);
	fputc('\n', stderr);
}

static int open_sources(struct symbolizer *symbolizer, struct err *err)
{
	const char *path = symbolizer->path;
	char *real = NULL;
	int fd = debug_files_open(path, err), status;

	if (fd < 0)
		return fd;
	real = realpath(path, NULL); /* debug files lie beside the file, not beside a link to it */
	symbol_sources_set_binary(&symbolizer->sources, fd, slice_of(real ? real : path));
	free(real);
	status = elf_read_info(fd, path, &symbolizer->info, err);
	if (!status)
		symbol_sources_find(&symbolizer->sources, symbolizer->values->debuginfo_path,
				    slice_of(symbolizer->info.build_id));
	return status;
}

static int answer_all(struct symbolizer *symbolizer, const struct option_operands *operands,
		      struct err *err)
{
	int status = 0;

	if (operands->count == 1)
		return answer_input(symbolizer, err);
	for (size_t i = 1; !status && i < operands->count; i++)
		status = ask(symbolizer, slice_of(operands->items[i]), err);
	if (!status)
		status = answer_asked(symbolizer, err);
	return status ? status : flush(symbolizer, err);
}

/* A file that cannot be read is an error although nothing is asked. */
static int answer_or_open(struct symbolizer *symbolizer, const struct option_operands *operands,
			  struct err *err)
{
	int status = answer_all(symbolizer, operands, err);

	if (!status && symbolizer->part == TABLE_NONE)
		status = open_table(symbolizer, TABLE_WHOLE, err);
	return status;
}

static int run(int argc, char **argv)
{
	struct symbolize_verb_options values = { 0 };
	struct symbolizer symbolizer = { .values = &values };
	struct option_operands operands;
	int64_t idle_ns; /* of CPU time */
	struct err err;
	int code = verb_parse(&verb_symbolize, argc, argv, &values, &operands), status = 0;

	if (code >= 0)
		return code;
	if (!operands.count)
		status = err_set(&err, ERR_INVALID, "expected an ELF file, for example /bin/true");
	else if (!demangle_parse_mode(slice_of(values.demangle), &symbolizer.mode))
		status = err_set(&err, ERR_INVALID,
				 "--demangle \"%s\": expected none, simple, templates or full",
				 values.demangle);
	if (status)
		return verb_error(&verb_symbolize, &err);
	symbolizer.path = operands.items[0];
	/* Fewer turns between this and who reads it; it may be no pipe. */
	fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
	note_binary(symbolizer.path, &symbolizer.binary);
	arena_init(&symbolizer.arena, 0);
	arena_init(&symbolizer.links_arena, 0);
	symbolizer.links = mem_new_array(struct link, LINKS_MAX);
	status = open_sources(&symbolizer, &err);
	if (!status && values.stats)
		status = open_table(&symbolizer, TABLE_WHOLE, &err);
	idle_ns = clock_thread_cpu_ns();
	if (!status)
		status = answer_or_open(&symbolizer, &operands, &err);
	if (!status && values.stats)
		print_stats(symbolizer.table, symbolizer.built_ns, clock_thread_cpu_ns() - idle_ns,
			    symbolizer.asked);
	if (!status)
		explain(&symbolizer);
	code = status ? verb_error(&verb_symbolize, &err)
	       : symbolizer.asked && symbolizer.unknown == symbolizer.asked ? VERB_NEGATIVE
									    : VERB_OK;
	close_table(&symbolizer);
	symbol_sources_close(&symbolizer.sources);
	free(symbolizer.links);
	free(symbolizer.names);
	idmap_free(&symbolizer.names_map);
	strbuf_free(&symbolizer.binary);
	strbuf_free(&symbolizer.link);
	strbuf_free(&symbolizer.out);
	return code;
}

const struct verb verb_symbolize = { &spec, run, LOG_WARN };
