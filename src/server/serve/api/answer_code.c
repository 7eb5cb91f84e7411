/* SPDX-License-Identifier: Apache-2.0 */
/* answer_code - in which instructions it was spent: disassembly with values. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/elf/elf.h"
#include "server/query/tree/lines.h"
#include "server/query/render/render.h"
#include "server/resolve/worker/disassembler.h"
#include "server/serve/api/query_request.h"

#define LINES_MEMORY_BYTES ((size_t)256 << 20)
#define ARENA_BYTES ((size_t)128 << 20)
#define PARTS_MAX 8
#define REACH_BYTES ((uint64_t)64 << 10) /* to either side of an address */
#define NAMES_PATIENCE_NS (10 * CLOCK_NS_PER_S)
#define HEX_BYTES 24

/* One binary whose code is shown. */
struct code {
	struct serve *serve;
	struct slice tenant;
	const struct query_limits *limits;
	const struct lines_place *place;
	struct resolver_symbols symbols;
	int fd; /* of the binary, or negative */
	struct elf_info info;
	struct arena arena;
	uint64_t bytes; /* shown so far */
	struct json *json;
};

static void put_hex(struct json *json, const char *key, uint64_t value)
{
	char text[HEX_BYTES];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	if (key)
		json_member_text(json, key, text);
	else
		json_put_text(json, text);
}

static void put_line(struct code *code, uint64_t address)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count;

	resolver_find(&code->symbols, address, false, lines, &count);
	if (!count || !lines[0].line)
		return;
	json_member_string(code->json, "file", lines[0].file);
	json_member_uint(code->json, "line", lines[0].line);
}

static void put_instruction(struct code *code, const struct instruction *instruction,
			    const uint8_t *bytes, struct lines_value value)
{
	char hex[2 * 16 + 1] = "";

	json_open_object(code->json);
	put_hex(code->json, "address", instruction->address);
	for (uint32_t i = 0; i < instruction->bytes && i < 16; i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", bytes[i]);
	json_member_text(code->json, "bytes", hex);
	json_member_string(code->json, "text", instruction->text);
	json_member_int(code->json, "self", value.self);
	json_member_int(code->json, "total", value.total);
	put_line(code, instruction->address);
	json_close_object(code->json);
}

/* The address of a value as the program's segments have it; false when it is in none. */
static bool address_of(const struct code *code, size_t value, uint64_t *ret)
{
	uint64_t at = code->place->values[value].at;

	if (code->place->by_offset)
		return elf_offset_to_address(&code->info, at, ret);
	*ret = at;
	return true;
}

/* Values of addresses in [low, high) from *next on, summed. */
static struct lines_value take_values(const struct code *code, uint64_t high, size_t *next)
{
	struct lines_value sum = { 0 };
	uint64_t address;

	for (; *next < code->place->values_count; ++*next) {
		if (!address_of(code, *next, &address) || address >= high)
			break;
		sum.self += code->place->values[*next].self;
		sum.total += code->place->values[*next].total;
	}
	return sum;
}

/* Disassembles [low, high), where the value `*next` lies, and takes the values there. */
static int put_range(struct code *code, uint64_t low, uint64_t high, size_t *next, struct err *err)
{
	size_t len = (size_t)(high - low), count = 0;
	struct instruction *list = NULL;
	uint8_t *bytes;
	uint64_t offset;
	int rc;

	if (code->bytes + len > DISASSEMBLER_CODE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu bytes of code",
			       DISASSEMBLER_CODE_BYTES_MAX);
	if (!elf_address_to_offset(&code->info, low, &offset))
		return err_set(err, ERR_INVALID,
			       "the address is outside of all segments of the file");
	bytes = arena_alloc(&code->arena, len);
	if (!bytes || pread(code->fd, bytes, len, (off_t)offset) != (ssize_t)len)
		return err_set(err, ERR_INVALID, "the file does not hold its code");
	rc = disassembler_run(code->info.machine, low, slice_from(bytes, len), &code->arena, &list,
			      &count, err);
	code->bytes += len;
	for (size_t i = 0; !rc && i < count; i++)
		put_instruction(code, &list[i], bytes + (list[i].address - low),
				take_values(code, list[i].address + list[i].bytes, next));
	take_values(code, high, next);
	return rc;
}

static bool is_set(const _Atomic bool *flag)
{
	return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

/* Pieces may be many, and each is another process. */
static int check_limits(const struct query_limits *limits, struct err *err)
{
	if (is_set(limits->cancelled) || is_set(limits->stopped))
		return err_set(err, ERR_CANCELLED, "cancelled");
	if (limits->deadline_at_ns && clock_monotonic_ns() >= limits->deadline_at_ns)
		return err_set(err, ERR_DEADLINE, "out of time: the function is in many places");
	return 0;
}

/* The functions' code, piece by piece in the order of addresses; `next` is the first value left. */
static int put_ranges(struct code *code, size_t *next, struct err *err)
{
	int rc = 0;

	while (!rc && *next < code->place->values_count) {
		uint64_t address, low, high;

		if (!address_of(code, *next, &address) ||
		    !resolver_find_extent(&code->symbols, address, REACH_BYTES, &low, &high))
			return err_set(err, ERR_NOT_FOUND, "no symbol says how far the code goes");
		rc = check_limits(code->limits, err);
		if (!rc)
			rc = put_range(code, low, high, next, err);
	}
	return rc;
}

/* Tenants see into programs that they sent; those of this host are the tenant ""'s. */
static bool may_see(const struct code *code)
{
	return !code->serve->tenants ||
	       debuginfo_may_see(code->serve->debuginfo, code->place->build_id, DEBUGINFO_BINARY,
				 code->tenant);
}

static int open_code(struct code *code, struct err *err)
{
	const struct lines_place *place = code->place;
	struct query_symbols_of of = { .build_id = place->build_id,
				       .mapping = place->mapping,
				       .by_offset = place->by_offset,
				       .until_ns = clock_monotonic_ns() + NAMES_PATIENCE_NS };
	int rc;

	if (code->limits->deadline_at_ns && code->limits->deadline_at_ns < of.until_ns)
		of.until_ns = code->limits->deadline_at_ns;
	rc = query_open_symbols(code->serve->resolver, &of, code->limits, &code->symbols, err);
	if (rc)
		return rc;
	if (!may_see(code))
		return err_set(err, ERR_DENIED,
			       "this tenant has not sent the program; run `firn debuginfo upload` "
			       "for it");
	code->fd =
		resolver_open_binary(code->serve->resolver, place->build_id, place->mapping, err);
	if (code->fd < 0)
		return code->fd;
	rc = elf_read_info(code->fd, "the program", &code->info, err);
	if (!rc && !disassembler_architecture(code->info.machine))
		rc = err_set(err, ERR_UNSUPPORTED, "machine %u is not known", code->info.machine);
	if (!rc)
		json_member_text(code->json, "architecture",
				 disassembler_architecture(code->info.machine));
	return rc;
}

/* What could not be shown as code: why, and the values by address. */
static void put_addresses(struct code *code, size_t next, const struct err *err)
{
	const struct lines_place *place = code->place;

	json_member_text(code->json, "reason", err->message);
	json_member_array(code->json, "addresses");
	for (; next < place->values_count; next++) {
		json_open_array(code->json);
		put_hex(code->json, NULL, place->values[next].at);
		json_put_int(code->json, place->values[next].self);
		json_put_int(code->json, place->values[next].total);
		json_close_array(code->json);
	}
	json_close_array(code->json);
}

static void put_part(const struct query_request *query, struct json *json,
		     const struct lines_place *place)
{
	struct code code = { .serve = query->serve,
			     .tenant = query->tenant,
			     .limits = &query->asked.params.limits,
			     .place = place,
			     .json = json,
			     .fd = -1 };
	size_t next = 0;
	struct err err;
	int rc;

	arena_init(&code.arena, ARENA_BYTES);
	json_open_object(json);
	json_member_string(json, "build_id", place->build_id);
	json_member_string(json, "mapping", place->mapping);
	json_member_int(json, "self", place->self);
	json_member_int(json, "total", place->total);
	rc = open_code(&code, &err);
	json_member_array(json, "instructions");
	if (!rc)
		rc = put_ranges(&code, &next, &err);
	json_close_array(json);
	if (rc)
		put_addresses(&code, next, &err);
	json_close_object(json);
	resolver_close(query->serve->resolver, &code.symbols);
	if (code.fd >= 0)
		close(code.fd);
	arena_free(&code.arena);
}

static int code_of(struct query_request *query, const struct net_request *request,
		   struct strbuf *out, struct err *err)
{
	const struct lines_wanted wanted = {
		.function = parameters_text(&query->asked, request, "function", ""),
		.build_id = parameters_text(&query->asked, request, "build_id", ""),
		.by_address = true,
	};
	struct tree *tree = NULL;
	struct lines lines;
	struct json json;
	int rc;

	if (!wanted.function.len)
		return err_set(err, ERR_INVALID,
			       "parameter \"function\" is missing: the function to disassemble");
	rc = query_request_tree(query, &tree, err);
	if (rc)
		return rc;
	rc = lines_make(tree, &wanted, LINES_MEMORY_BYTES, &query->asked.params.limits, &lines,
			err);
	if (!rc) {
		json_begin(&json, out);
		json_open_object(&json);
		render_header_json(&json, tree);
		json_member_string(&json, "function", wanted.function);
		json_member_array(&json, "parts");
		for (size_t i = 0; i < lines.places_count && i < PARTS_MAX; i++)
			put_part(query, &json, &lines.places[i]);
		json_close_array(&json);
		json_close_object(&json);
		lines_free(&lines);
	}
	tree_free(tree);
	return rc;
}

void answer_instructions(void *context, const struct net_request *request,
			 struct net_response *response)
{
	query_request_answer(context, request, response, code_of);
}
