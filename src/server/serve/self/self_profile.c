/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/self/self_profile.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/resolve/display/demangle.h"
#include "server/serve/self/self_modules.h"
#include "server/serve/self/self_sampler.h"

#define NAME_BYTES_MAX ((size_t)1 << 20) /* of one address's demangled names */

/* Frame ids of one address, from the table's chain: first .. +count in `frames`, leaf first. */
struct named_address {
	uintptr_t address;
	size_t first, count;
};

struct namer {
	struct tables *into;
	struct self_modules *modules;
	struct named_address *addresses;
	size_t addresses_count, addresses_capacity;
	struct idmap map; /* address -> addresses */
	uint32_t *frames;
	size_t frames_count, frames_capacity;
};

static uint32_t text(struct namer *namer, struct slice text)
{
	return tables_string(namer->into, text);
}

static void add_frame(struct namer *namer, const struct frame *frame)
{
	mem_grow(namer->frames, namer->frames_count, namer->frames_capacity);
	namer->frames[namer->frames_count++] = tables_frame(namer->into, frame);
}

/* Completes `frame`, which has address and mapping, with one line of the inline chain. */
static void add_line(struct namer *namer, struct frame frame, const struct symbol_line *line,
		     bool inlined)
{
	struct slice system = line->linkage_name.len ? line->linkage_name : line->name;
	struct slice name = line->name.len ? line->name : system;
	struct arena arena;

	arena_init(&arena, NAME_BYTES_MAX);
	demangle(system, &arena, &name);
	frame.flags = inlined ? FRAME_INLINED : 0;
	frame.function = text(namer, name);
	frame.system_name = slice_equal(name, system) ? 0 : text(namer, system);
	frame.file = text(namer, line->file);
	frame.line = line->line;
	frame.start_line = line->start_line;
	add_frame(namer, &frame);
	arena_free(&arena);
}

static void name_address(struct namer *namer, uintptr_t address)
{
	struct self_module *module = self_modules_find(namer->modules, address);
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct frame frame = { .kind = FRAME_NATIVE, .address = address };
	size_t count = 0;

	if (module) {
		frame.address = address - module->bias;
		frame.mapping_file = text(namer, slice_of(module->name));
		frame.build_id = text(namer, slice_of(module->build_id));
		if (module->table)
			count = symbol_texts_lookup(module->texts, frame.address, lines);
	}
	for (size_t i = 0; i < count; i++)
		add_line(namer, frame, &lines[i], i + 1 < count);
	if (!count)
		add_frame(namer, &frame);
}

static bool address_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct named_address *)context)[id].address == *(const uintptr_t *)key;
}

static const struct named_address *named(struct namer *namer, uintptr_t address)
{
	uint64_t hash = hash_bytes(&address, sizeof(address));
	uint32_t id = idmap_find(&namer->map, hash, address_equal, namer->addresses, &address);
	struct named_address made = { address, namer->frames_count, 0 };

	if (id != IDMAP_NONE)
		return &namer->addresses[id];
	name_address(namer, address);
	made.count = namer->frames_count - made.first;
	mem_grow(namer->addresses, namer->addresses_count, namer->addresses_capacity);
	namer->addresses[namer->addresses_count] = made;
	idmap_add(&namer->map, hash, (uint32_t)namer->addresses_count);
	return &namer->addresses[namer->addresses_count++];
}

static uint32_t add_marker(struct namer *namer, const char *name)
{
	struct frame frame = { .kind = FRAME_MARKER, .function = text(namer, slice_of(name)) };

	return tables_node(namer->into, 0, tables_frame(namer->into, &frame));
}

/* The node of a stack, built from its root. A caller's address is inside its call instruction. */
static uint32_t add_stack(struct namer *namer, const uintptr_t *pcs, size_t depth)
{
	uint32_t node = 0;

	if (depth == SELF_SAMPLER_DEPTH_MAX)
		node = add_marker(namer, "[truncated: depth]");
	for (size_t i = depth; i-- > 0;) {
		const struct named_address *address = named(namer, i ? pcs[i] - 1 : pcs[i]);

		for (size_t k = address->count; k-- > 0;)
			node = tables_node(namer->into, node, namer->frames[address->first + k]);
	}
	return node;
}

static int compare_nodes(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t add_series(struct tables *into, int64_t period_ns)
{
	uint32_t cpu = tables_string(into, SLICE_LITERAL("cpu"));
	uint32_t nanoseconds = tables_string(into, SLICE_LITERAL("nanoseconds"));
	struct group group = {
		.name = tables_string(into, SLICE_LITERAL("process_cpu")),
		.period_type = cpu,
		.period_unit = nanoseconds,
		.column_count = 2,
		.period = period_ns,
	};
	struct column columns[] = {
		{ tables_string(into, SLICE_LITERAL("samples")),
		  tables_string(into, SLICE_LITERAL("count")), COLUMN_DELTA },
		{ cpu, nanoseconds, COLUMN_DELTA },
	};

	return tables_series(into, 0, tables_group(into, &group, columns));
}

/* One row per distinct stack. */
static bool add_rows(struct tables *into, uint32_t *nodes, size_t count, int64_t period_ns)
{
	if (count)
		qsort(nodes, count, sizeof(*nodes), compare_nodes);
	for (size_t from = 0, to; from < count; from = to) {
		int64_t values[2];

		for (to = from; to < count && nodes[to] == nodes[from]; to++)
			;
		values[0] = (int64_t)(to - from);
		values[1] = values[0] * period_ns;
		if (nodes[from] == TABLES_FULL || !tables_row(into, nodes[from], 0, values))
			return false;
	}
	return true;
}

/* The node of each sample, in the order of the samples; owned by the caller. */
static uint32_t *name_samples(struct tables *into, const struct self_samples *samples,
			      size_t *ret_count)
{
	struct namer namer = { .into = into, .modules = self_modules_new() };
	uint32_t *nodes = NULL;
	size_t count = 0, capacity = 0;

	for (size_t at = 0; at < samples->count; at += 1 + samples->words[at]) {
		mem_grow(nodes, count, capacity);
		nodes[count++] = add_stack(&namer, &samples->words[at + 1], samples->words[at]);
	}
	self_modules_free(namer.modules);
	free(namer.addresses);
	free(namer.frames);
	idmap_free(&namer.map);
	*ret_count = count;
	return nodes;
}

int self_profile_run(int64_t duration_ns, unsigned hz, const _Atomic bool *cancelled,
		     struct tables *into, struct err *err)
{
	int64_t start_ns = clock_real_ns(), from_ns = clock_monotonic_ns(), took_ns, period_ns;
	struct self_samples samples;
	uint32_t *nodes, series;
	size_t count;
	bool added;
	int status;

	if (duration_ns <= 0 || duration_ns > SELF_PROFILE_DURATION_NS_MAX)
		return err_set(err, ERR_INVALID,
			       "profile this process: duration of %lld ns, at most %lld",
			       (long long)duration_ns, SELF_PROFILE_DURATION_NS_MAX);
	status = self_sampler_run(duration_ns, hz, cancelled, &samples, err);
	if (status)
		return status;
	if (samples.lost)
		log_warn("self_profile", "buffer full, samples lost", "samples=%llu",
			 (unsigned long long)samples.lost);
	took_ns = clock_monotonic_ns() - from_ns;
	period_ns = CLOCK_NS_PER_S / hz;
	nodes = name_samples(into, &samples, &count);
	series = add_series(into, period_ns);
	added = series != TABLES_FULL &&
		tables_report_begin(into, series, start_ns, took_ns, 0) != TABLES_FULL &&
		add_rows(into, nodes, count, period_ns);
	self_samples_free(&samples);
	free(nodes);
	return added ? 0 : err_set(err, ERR_LIMIT, "profile this process: the tables are full");
}
