/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: src/hotspot/share/code/nmethod.hpp, pcDesc.hpp, scopeDesc.cpp, debugInfo.hpp. */
#include "agent/runtime/hotspot/java_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/hotspot/java_number.h"
#include "agent/runtime/hotspot/java_poll.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"

#define STUB_NAME_MAX 64u
#define PC_BYTES 16u /* struct PcDesc: offset of the instruction, of its scope, ... */
#define METADATA_MAX 65536u
#define LOST_MAX 64u /* places without a method, until the rest is left */

/* A compiled method, as it is read. */
struct source {
	const struct memory_reader *memory;
	const struct hotspot_layout *layout;
	uint64_t blob, metadata;
	uint32_t to_code;    /* from the blob's start */
	uint32_t code_bytes; /* as the debug information says */
	uint8_t *pcs, *scopes;
	uint32_t pcs_bytes, scopes_bytes;
	struct java_code *code;
	size_t methods_capacity, scopes_capacity, places_capacity;
	struct idmap methods_map, scopes_map;
	uint64_t *addresses; /* of the methods */
	uint32_t *offsets;   /* of the scopes */
	size_t addresses_capacity, offsets_capacity;
};

static bool read_at(const struct source *source, uint64_t address, void *to, size_t len)
{
	return memory_read(source->memory, address, to, len);
}

/* ---- methods and scopes, each once ---- */

static bool same_method(const void *context, uint32_t id, const void *key)
{
	const struct source *source = context;

	return source->addresses[id] == *(const uint64_t *)key;
}

static bool find_method(struct source *source, uint64_t address, uint32_t *ret)
{
	uint64_t hash = hash_mix(0, address);
	struct java_code *code = source->code;
	struct java_method method;
	size_t count = code->methods_count;

	*ret = idmap_find(&source->methods_map, hash, same_method, source, &address);
	if (*ret != IDMAP_NONE)
		return true;
	if (count >= JAVA_METHODS_MAX ||
	    !java_method_read(source->memory, source->layout, address, &method))
		return false;
	mem_grow(code->methods, count, source->methods_capacity);
	mem_grow(source->addresses, count, source->addresses_capacity);
	code->methods[count] = method;
	source->addresses[count] = address;
	idmap_add(&source->methods_map, hash, (uint32_t)count);
	*ret = code->methods_count++;
	return true;
}

static bool same_scope(const void *context, uint32_t id, const void *key)
{
	const struct source *source = context;

	return source->offsets[id] == *(const uint32_t *)key;
}

struct scope_text {
	uint32_t offset, outer, metadata, bci;
};

static bool decode_scope(const struct source *source, uint32_t offset, struct scope_text *ret)
{
	struct java_numbers numbers = { source->scopes, source->scopes_bytes, offset,
					source->layout->has_numbers_from_one };

	ret->offset = offset;
	if (!offset || !java_number(&numbers, &ret->outer) ||
	    !java_number(&numbers, &ret->metadata) || !java_number(&numbers, &ret->bci))
		return false;
	ret->bci--; /* counts from -1, before the first bytecode */
	return ret->metadata && ret->metadata <= METADATA_MAX;
}

static bool add_scope(struct source *source, const struct scope_text *text, uint32_t outer,
		      uint32_t *ret)
{
	struct java_code *code = source->code;
	size_t count = code->scopes_count;
	uint64_t method;
	uint32_t index;

	if (!read_at(source, source->metadata + 8ull * (text->metadata - 1), &method,
		     sizeof(method)) ||
	    !find_method(source, method, &index))
		return false;
	if (outer == JAVA_NO_SCOPE && index != 0)
		return false; /* the outermost is the compiled method itself */
	mem_grow(code->scopes, count, source->scopes_capacity);
	mem_grow(source->offsets, count, source->offsets_capacity);
	code->scopes[count] = (struct java_scope){ outer, index, text->bci };
	source->offsets[count] = text->offset;
	idmap_add(&source->scopes_map, hash_mix(0, text->offset), (uint32_t)count);
	*ret = code->scopes_count++;
	return true;
}

/* The scope, and those that it is inlined into, which are noted before it. */
static bool find_scope(struct source *source, uint32_t offset, uint32_t *ret)
{
	struct scope_text chain[JAVA_INLINED_MAX];
	uint32_t found = JAVA_NO_SCOPE;
	size_t count = 0;

	while (offset && count < JAVA_INLINED_MAX) {
		found = idmap_find(&source->scopes_map, hash_mix(0, offset), same_scope, source,
				   &offset);
		if (found != IDMAP_NONE)
			break;
		found = JAVA_NO_SCOPE;
		if (!decode_scope(source, offset, &chain[count]) || chain[count].outer >= offset)
			return false;
		offset = chain[count++].outer;
	}
	if (offset && found == JAVA_NO_SCOPE)
		return false;
	while (count-- > 0)
		if (!add_scope(source, &chain[count], found, &found))
			return false;
	*ret = found;
	return found != JAVA_NO_SCOPE;
}

/* ---- a compiled method ---- */

static int32_t int_at(const uint8_t *bytes, size_t at)
{
	int32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* Consecutive equal scopes are one place. */
static void add_place(struct source *source, uint32_t at, uint32_t scope)
{
	struct java_code *code = source->code;
	size_t count = code->places_count;

	if (count && code->places[count - 1].scope == scope) {
		code->places[count - 1].last = at;
		return;
	}
	mem_grow(code->places, count, source->places_capacity);
	code->places[count] = (struct java_place){ at, at, scope };
	code->places_count++;
}

static void read_places(struct source *source)
{
	uint32_t lost = 0;
	int32_t before = -1;

	for (uint32_t at = 0; at + PC_BYTES <= source->pcs_bytes && lost < LOST_MAX;
	     at += PC_BYTES) {
		int32_t pc = int_at(source->pcs, at), offset = int_at(source->pcs, at + 4);
		uint32_t scope;

		/* The first and the last are marks. */
		if (pc < 0 || pc < before || (uint32_t)pc > INT32_MAX - source->to_code)
			continue;
		before = pc;
		source->code_bytes = (uint32_t)pc;
		if (offset <= 0)
			continue;
		if (find_scope(source, (uint32_t)offset, &scope))
			add_place(source, (uint32_t)pc + source->to_code, scope);
		else
			lost++;
	}
}

static uint8_t *read_table(const struct source *source, uint64_t address, int64_t len)
{
	uint8_t *bytes;

	if (len <= 0 || len > JAVA_DEBUG_BYTES_MAX)
		return NULL;
	bytes = mem_calloc(1, (size_t)len);
	if (read_at(source, address, bytes, (size_t)len))
		return bytes;
	free(bytes);
	return NULL;
}

/* A place whose last recorded instruction is a loop's poll lasts until the loop's end. */
static void read_loops(const struct source *source)
{
	const struct java_code *code = source->code;
	uint8_t *bytes = read_table(source, source->blob + source->to_code, source->code_bytes);

	for (uint32_t i = 0; bytes && i < code->places_count; i++) {
		uint32_t until = i + 1 < code->places_count
					 ? code->places[i + 1].first - source->to_code
					 : source->code_bytes;
		struct java_loop loop;

		if (java_poll_loop(bytes, until, code->places[i].last - source->to_code, &loop))
			code->places[i].last = loop.end + source->to_code;
	}
	free(bytes);
}

static bool open_inside(struct source *source)
{
	const struct hotspot_layout *layout = source->layout;
	int32_t metadata, pcs, pcs_end;
	uint64_t scopes = 0;

	if (!read_at(source, source->blob + layout->metadata, &metadata, sizeof(metadata)) ||
	    !read_at(source, source->blob + layout->pcs, &pcs, sizeof(pcs)) ||
	    !read_at(source, source->blob + layout->pcs_end, &pcs_end, sizeof(pcs_end)) ||
	    !read_at(source, source->blob + layout->scopes, &scopes, layout->scopes_bytes))
		return false;
	if (layout->scopes_bytes == 4)
		scopes += source->blob;
	if (metadata < 0 || pcs < 0 || scopes - source->blob > (uint64_t)pcs)
		return false;
	source->metadata = source->blob + (uint32_t)metadata;
	source->pcs = read_table(source, source->blob + (uint32_t)pcs, (int64_t)pcs_end - pcs);
	source->pcs_bytes = (uint32_t)pcs_end - (uint32_t)pcs;
	source->scopes_bytes = (uint32_t)((uint64_t)pcs - (scopes - source->blob));
	source->scopes = read_table(source, scopes, source->scopes_bytes);
	return source->pcs && source->scopes && source->pcs_bytes <= PC_BYTES * JAVA_PLACES_MAX;
}

static bool open_apart(struct source *source)
{
	const struct hotspot_layout *layout = source->layout;
	int32_t pcs, scopes, bytes, relocation;
	uint64_t debug, mutable_data;

	if (!read_at(source, source->blob + layout->debug, &debug, sizeof(debug)) ||
	    !read_at(source, source->blob + layout->debug_bytes, &bytes, sizeof(bytes)) ||
	    !read_at(source, source->blob + layout->pcs, &pcs, sizeof(pcs)) ||
	    !read_at(source, source->blob + layout->scopes, &scopes, sizeof(scopes)) ||
	    !read_at(source, source->blob + layout->mutable_data, &mutable_data,
		     sizeof(mutable_data)) ||
	    !read_at(source, source->blob + layout->relocation_bytes, &relocation,
		     sizeof(relocation)) ||
	    pcs < 0 || scopes < pcs || bytes < scopes || relocation < 0)
		return false;
	source->metadata = mutable_data + (uint32_t)relocation;
	source->pcs = read_table(source, debug + (uint32_t)pcs, (int64_t)scopes - pcs);
	source->pcs_bytes = (uint32_t)(scopes - pcs);
	source->scopes = read_table(source, debug + (uint32_t)scopes, (int64_t)bytes - scopes);
	source->scopes_bytes = (uint32_t)(bytes - scopes);
	return source->pcs && source->scopes && source->pcs_bytes <= PC_BYTES * JAVA_PLACES_MAX;
}

static bool open_debug(struct source *source)
{
	switch (source->layout->debug_form) {
	case HOTSPOT_DEBUG_INSIDE:
		return open_inside(source);
	case HOTSPOT_DEBUG_APART:
		return open_apart(source);
	default:
		return false;
	}
}

static void source_fini(struct source *source)
{
	free(source->pcs);
	free(source->scopes);
	free(source->addresses);
	free(source->offsets);
	idmap_free(&source->methods_map);
	idmap_free(&source->scopes_map);
}

static bool read_compiled(const struct memory_reader *memory, const struct hotspot_layout *layout,
			  uint64_t blob, struct java_code *code)
{
	struct source source = { .memory = memory, .layout = layout, .blob = blob, .code = code };
	uint64_t method, begin = 0;
	uint32_t index;
	bool is_read;

	is_read = read_at(&source, blob + layout->method, &method, sizeof(method)) &&
		  read_at(&source, blob + layout->code, &begin, layout->code_bytes) &&
		  find_method(&source, method, &index);
	if (layout->code_bytes == 8)
		begin -= blob;
	source.to_code = (uint32_t)begin;
	if (is_read && begin < INT32_MAX && open_debug(&source)) {
		read_places(&source);
		read_loops(&source);
	}
	source_fini(&source);
	return is_read;
}

/* ---- all kinds ---- */

static bool read_blob_name(const struct memory_reader *memory, const struct hotspot_layout *layout,
			   uint64_t blob, char name[STUB_NAME_MAX])
{
	uint64_t address;

	if (!memory_read(memory, blob + layout->blob_name, &address, sizeof(address)) || !address)
		return false;
	for (size_t i = 0; i + 1 < STUB_NAME_MAX; i++) {
		name[i + 1] = 0;
		if (!memory_read(memory, address + i, &name[i], 1))
			return false;
		if (!name[i])
			return true;
	}
	return true;
}

static bool read_blob(const struct memory_reader *memory, const struct hotspot_layout *layout,
		      uint64_t blob, struct java_code *code)
{
	__u64 head[JVM_HEAD_BYTES / 8], ids;
	char name[STUB_NAME_MAX] = "";

	if (!memory_read(memory, blob, head, sizeof(head)) ||
	    !memory_read(memory, blob + layout->orig_pc, &ids, sizeof(ids)) ||
	    !read_blob_name(memory, layout, blob, name))
		return false;
	code->proof = jvm_proof(head, ids);
	if (!strcmp(name, "nmethod") || !strcmp(name, "native nmethod"))
		return read_compiled(memory, layout, blob, code);
	code->stub = mem_strndup(name, strlen(name));
	return true;
}

static bool read_interpreted(const struct memory_reader *memory,
			     const struct hotspot_layout *layout, uint64_t address,
			     struct java_code *code)
{
	code->is_interpreted = true;
	code->methods = mem_new(struct java_method);
	if (!java_method_read(memory, layout, address, code->methods))
		return false;
	code->methods_count = 1;
	code->proof = code->methods->proof;
	return true;
}

struct java_code *java_code_read(const struct memory_reader *memory,
				 const struct hotspot_process *process, uint64_t address)
{
	struct java_code *code = mem_new(struct java_code);
	bool is_blob = address - process->walk.low < process->walk.bytes;

	if (is_blob ? read_blob(memory, &process->layout, address, code)
		    : read_interpreted(memory, &process->layout, address, code))
		return code;
	java_code_free(code);
	return NULL;
}

void java_code_free(struct java_code *code)
{
	if (!code)
		return;
	for (uint32_t i = 0; i < code->methods_count; i++)
		java_method_fini(&code->methods[i]);
	free(code->methods);
	free(code->scopes);
	free(code->places);
	free(code->stub);
	free(code);
}

size_t java_code_bytes(const struct java_code *code)
{
	size_t bytes = sizeof(*code) + code->scopes_count * sizeof(*code->scopes) +
		       code->places_count * sizeof(*code->places);

	for (uint32_t i = 0; i < code->methods_count; i++)
		bytes += java_method_bytes(&code->methods[i]) + sizeof(struct java_method);
	return bytes;
}
