/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtime_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

#define ITEMS_MAX 64

/* A kind of binary. */
struct item {
	enum runtime_kind kind;
	char version[RUNTIME_VERSION_BYTES];
	const char *source; /* or the problem */
};

struct runtime_offsets {
	struct metric_collector collector;
	struct lock lock; /* guards what follows */
	struct item items[ITEMS_MAX];
	size_t count;
};

static void render(void *context, struct strbuf *out)
{
	struct runtime_offsets *offsets = context;

	metrics_add_family(out, "firn_agent_runtime_offsets", "gauge",
			   "Language runtimes seen, and where the layout of their structures comes "
			   "from, or why it is not known.");
	lock_take(&offsets->lock);
	for (size_t i = 0; i < offsets->count; i++) {
		const struct item *item = &offsets->items[i];

		strbuf_addf(out, "firn_agent_runtime_offsets{runtime=\"%s\",version=\"",
			    runtime_kind_name(item->kind));
		metrics_add_label_value(out, slice_of(item->version));
		strbuf_addf(out, "\",source=\"%s\"} 1\n", item->source);
	}
	lock_give(&offsets->lock);
}

struct runtime_offsets *runtime_offsets_new(void)
{
	struct runtime_offsets *offsets = mem_new(struct runtime_offsets);

	lock_init(&offsets->lock, "runtime offsets", LOCK_AGENT + 7);
	offsets->collector = (struct metric_collector){ render, offsets, NULL };
	metrics_add_collector(&offsets->collector);
	return offsets;
}

void runtime_offsets_free(struct runtime_offsets *offsets)
{
	metrics_remove_collector(&offsets->collector);
	lock_free(&offsets->lock);
	free(offsets);
}

void runtime_offsets_add(struct runtime_offsets *offsets, enum runtime_kind kind,
			 const char *version, const char *source)
{
	struct item item = { .kind = kind, .source = source };
	bool known = false;

	memcpy(item.version, version, sizeof(item.version));
	lock_take(&offsets->lock);
	for (size_t i = 0; i < offsets->count && !known; i++)
		known = offsets->items[i].kind == item.kind &&
			offsets->items[i].source == item.source &&
			!memcmp(offsets->items[i].version, item.version, sizeof(item.version));
	if (!known && offsets->count < ITEMS_MAX)
		offsets->items[offsets->count++] = item;
	lock_give(&offsets->lock);
}

void runtime_offsets_add_file(struct runtime_offsets *offsets, const struct runtime_file *file)
{
	const char *source = file->source ? file->source : "none";

	if (file->layout.kind == RUNTIME_HOTSPOT && !file->problem)
		return; /* its processes say more */
	runtime_offsets_add(offsets, file->layout.kind, file->version,
			    file->problem ? file->problem : source);
}
