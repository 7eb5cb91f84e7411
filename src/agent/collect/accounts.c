/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

#define STACKS "firn_agent_binary_stacks_total"
#define SAMPLE_SECONDS "firn_agent_bpf_sample_seconds"

struct account {
	char name[ACCOUNTS_NAME_BYTES];
	uint64_t ends[STACK_ENDS];
};

struct accounts {
	struct metric_collector collector;
	struct lock lock; /* guards what follows */
	struct account *items;
	uint32_t count, capacity;
	struct idmap map;
	struct sample_counters counters;
};

static uint64_t cut_stacks(const struct account *account)
{
	uint64_t cut = 0;

	for (int end = 0; end < STACK_ENDS; end++)
		if (end != STACK_COMPLETE)
			cut += account->ends[end];
	return cut;
}

static int by_need(const void *a, const void *b)
{
	const struct account *first = a, *second = b;
	uint64_t first_cut = cut_stacks(first), second_cut = cut_stacks(second);

	if (first_cut != second_cut)
		return first_cut > second_cut ? -1 : 1;
	if (first->ends[STACK_COMPLETE] != second->ends[STACK_COMPLETE])
		return first->ends[STACK_COMPLETE] > second->ends[STACK_COMPLETE] ? -1 : 1;
	return strcmp(first->name, second->name);
}

static void render_account(const struct account *account, struct strbuf *out)
{
	for (int end = 0; end < STACK_ENDS; end++) {
		if (!account->ends[end])
			continue;
		strbuf_add_text(out, STACKS "{binary=\"");
		metrics_add_label_value(out, slice_of(account->name));
		strbuf_addf(out, "\",end=\"%s\"} %llu\n", accounts_end_name(end),
			    (unsigned long long)account->ends[end]);
	}
}

static void render_sample_seconds(const struct sample_counters *counters, struct strbuf *out)
{
	double bounds[RUN_LOG2_BUCKETS - 1];
	uint64_t counts[RUN_LOG2_BUCKETS];

	for (int i = 0; i < RUN_LOG2_BUCKETS; i++)
		counts[i] = counters->of[COUNTER_RUN_LOG2_FIRST + i];
	for (int i = 0; i < RUN_LOG2_BUCKETS - 1; i++)
		bounds[i] = (double)((uint64_t)RUN_LOG2_FIRST_NS << i) * 1e-9;
	metrics_add_family(out, SAMPLE_SECONDS, "histogram", "Time of the BPF program per sample.");
	metrics_add_histogram(out, SAMPLE_SECONDS, "", bounds, RUN_LOG2_BUCKETS - 1, counts,
			      (double)counters->of[COUNTER_RUN_NS] * 1e-9);
}

static void render(void *context, struct strbuf *out)
{
	struct accounts *accounts = context;
	struct sample_counters counters;
	struct account *copy;
	uint32_t count;

	lock_take(&accounts->lock);
	count = accounts->count;
	counters = accounts->counters;
	copy = mem_new_array(struct account, count + 1);
	if (count)
		memcpy(copy, accounts->items, count * sizeof(*copy));
	lock_give(&accounts->lock);
	qsort(copy, count, sizeof(*copy), by_need);
	metrics_add_family(out, STACKS, "counter",
			   "User stacks by the binary in which the walk ended, and why; of the "
			   "binaries with most cut stacks.");
	for (uint32_t i = 0; i < count && i < ACCOUNTS_SHOWN; i++)
		render_account(&copy[i], out);
	free(copy);
	render_sample_seconds(&counters, out);
}

struct accounts *accounts_new(void)
{
	struct accounts *accounts = mem_new(struct accounts);

	lock_init(&accounts->lock, "accounts", LOCK_AGENT + 1);
	accounts->collector = (struct metric_collector){ .render = render, .context = accounts };
	metrics_add_collector(&accounts->collector);
	return accounts;
}

void accounts_free(struct accounts *accounts)
{
	if (!accounts)
		return;
	metrics_remove_collector(&accounts->collector);
	lock_free(&accounts->lock);
	idmap_free(&accounts->map);
	free(accounts->items);
	free(accounts);
}

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	const struct account *items = context;

	return slice_is(*(const struct slice *)key, items[id].name);
}

/* The account of a name, made when new; the last one is "[other]". */
static struct account *find(struct accounts *accounts, struct slice name)
{
	uint64_t hash = hash_bytes(name.data, name.len);
	uint32_t id = idmap_find(&accounts->map, hash, name_equal, accounts->items, &name);

	if (id != IDMAP_NONE)
		return &accounts->items[id];
	if (accounts->count >= ACCOUNTS_MAX)
		return &accounts->items[ACCOUNTS_MAX - 1];
	if (accounts->count == ACCOUNTS_MAX - 1) {
		name = SLICE_LITERAL("[other]");
		hash = hash_bytes(name.data, name.len);
	}
	mem_grow(accounts->items, accounts->count, accounts->capacity);
	id = accounts->count++;
	accounts->items[id] = (struct account){ 0 };
	memcpy(accounts->items[id].name, name.data, name.len);
	idmap_add(&accounts->map, hash, id);
	return &accounts->items[id];
}

static struct slice last_part(struct slice path)
{
	size_t from = path.len;

	while (from && path.data[from - 1] != '/')
		from--;
	path = slice_tail(path, from);
	if (!path.len)
		return SLICE_LITERAL("[unknown]");
	if (path.len >= ACCOUNTS_NAME_BYTES)
		path.len = ACCOUNTS_NAME_BYTES - 1;
	return path;
}

void accounts_add(struct accounts *accounts, struct slice path, enum stack_end end,
		  uint64_t samples)
{
	struct slice name = last_part(path);

	if (end >= STACK_ENDS)
		return;
	lock_take(&accounts->lock);
	find(accounts, name)->ends[end] += samples;
	lock_give(&accounts->lock);
}

/* The path of what the outermost user frame lies in. */
static struct slice ended_in(const struct counts *counts, const struct tracker *tracker,
			     const struct counted *stack)
{
	const struct space *space = tracker_space(tracker, stack->process, stack->space);
	const uint64_t *user = counts_user_frames(counts, stack);
	const struct mapping *mapping;

	if (!space || !stack->user_count)
		return (struct slice){ 0 };
	mapping = space_find(space, user[stack->user_count - 1]);
	if (!mapping || mapping->kind == MAPPING_ANONYMOUS)
		return SLICE_LITERAL("[anon]");
	if (mapping->kind == MAPPING_VDSO)
		return SLICE_LITERAL("[vdso]");
	return slice_of(mapping->binary ? mapping->binary->path : NULL);
}

void accounts_add_window(struct accounts *accounts, const struct counts *counts,
			 const struct tracker *tracker)
{
	for (size_t i = 0; i < counts->stacks.count; i++) {
		const struct counted *stack = counts_stack(counts, (uint32_t)i);

		if (stack->user_count ||
		    stack->user_end != STACK_COMPLETE) /* not a kernel thread */
			accounts_add(accounts, ended_in(counts, tracker, stack), stack->user_end,
				     stack->samples);
	}
}

void accounts_set_counters(struct accounts *accounts, const struct sample_counters *counters)
{
	lock_take(&accounts->lock);
	accounts->counters = *counters;
	lock_give(&accounts->lock);
}

const char *accounts_end_name(enum stack_end end)
{
	static const char *const names[STACK_ENDS] = {
		[STACK_COMPLETE] = "complete",
		[STACK_NO_UNWIND_INFO] = "no_unwind_info",
		[STACK_TABLE_PENDING] = "table_pending",
		[STACK_UNSUPPORTED_RULE] = "unsupported_rule",
		[STACK_NO_FRAME_POINTER] = "no_frame_pointer",
		[STACK_BAD_ADDRESS] = "bad_address",
		[STACK_UNREADABLE] = "unreadable",
		[STACK_TOO_DEEP] = "too_deep",
		[STACK_32_BIT] = "32_bit",
		[STACK_NO_USER_REGISTERS] = "no_user_registers",
		[STACK_NO_MAPPINGS] = "no_mappings",
		[STACK_KERNEL_WALK] = "kernel_walk",
		[STACK_TABLE_FAILED] = "table_failed",
		[STACK_TABLE_NO_ROOM] = "table_no_room",
		[STACK_GUESSED_POINTER] = "guessed_frame_pointer",
	};

	return names[end];
}
