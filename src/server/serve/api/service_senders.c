/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/service_senders.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/mem.h"
#include "model/service.h"

struct service_senders {
	struct lock lock; /* guards the rest */
	struct service_sender *list;
	size_t count, capacity;
	struct idmap map;
};

struct service_senders *service_senders_new(void)
{
	struct service_senders *senders = mem_new(struct service_senders);

	lock_init(&senders->lock, "service_senders", LOCK_SERVE + 6);
	return senders;
}

void service_senders_free(struct service_senders *senders)
{
	if (!senders)
		return;
	idmap_free(&senders->map);
	lock_free(&senders->lock);
	free(senders->list);
	free(senders);
}

static struct slice cut(struct slice text)
{
	if (text.len >= SERVICE_SENDERS_TEXT_BYTES)
		text.len = SERVICE_SENDERS_TEXT_BYTES - 1;
	return text;
}

struct slice service_senders_name(struct slice service)
{
	return cut(service);
}

struct key {
	struct slice tenant, service, sender;
};

static struct key key_of(const struct service_sender *sender)
{
	return (struct key){ slice_of(sender->tenant), slice_of(sender->service),
			     slice_of(sender->sender) };
}

static bool is_same(const void *context, uint32_t id, const void *wanted)
{
	struct key key = key_of(&((const struct service_senders *)context)->list[id]);
	const struct key *other = wanted;

	return slice_equal(key.service, other->service) && slice_equal(key.sender, other->sender) &&
	       slice_equal(key.tenant, other->tenant);
}

static uint64_t hash_of(const struct key *key)
{
	uint64_t hash = hash_bytes(key->service.data, key->service.len);

	hash = hash_mix(hash, hash_bytes(key->sender.data, key->sender.len));
	return hash_mix(hash, hash_bytes(key->tenant.data, key->tenant.len));
}

static int by_last(const void *a, const void *b)
{
	const struct service_sender *left = a, *right = b;

	return (left->last_at_ns < right->last_at_ns) - (left->last_at_ns > right->last_at_ns);
}

static int by_service(const void *a, const void *b)
{
	const struct service_sender *left = a, *right = b;
	int order = strcmp(left->service, right->service);

	return order ? order : by_last(a, b);
}

static void make_room(struct service_senders *senders)
{
	if (senders->count < SERVICE_SENDERS_MAX)
		return;
	qsort(senders->list, senders->count, sizeof(*senders->list), by_last);
	senders->count /= 2;
	idmap_free(&senders->map);
	senders->map = (struct idmap){ 0 };
	for (size_t i = 0; i < senders->count; i++) {
		struct key key = key_of(&senders->list[i]);

		idmap_add(&senders->map, hash_of(&key), (uint32_t)i);
	}
}

/* A text with a NUL in it ends there. */
static struct slice set_text(char *to, struct slice text)
{
	snprintf(to, SERVICE_SENDERS_TEXT_BYTES, "%.*s", (int)text.len, text.data);
	return slice_of(to);
}

static uint32_t find(struct service_senders *senders, const struct key *key)
{
	uint64_t hash = hash_of(key);
	uint32_t id = idmap_find(&senders->map, hash, is_same, senders, key);
	struct service_sender *sender;

	if (id != IDMAP_NONE)
		return id;
	make_room(senders);
	id = (uint32_t)senders->count;
	mem_grow(senders->list, senders->count, senders->capacity);
	sender = &senders->list[senders->count++];
	*sender = (struct service_sender){ .newest_ns = INT64_MIN };
	snprintf(sender->tenant, sizeof(sender->tenant), "%.*s", (int)key->tenant.len,
		 key->tenant.data);
	set_text(sender->service, key->service);
	set_text(sender->sender, key->sender);
	idmap_add(&senders->map, hash, id);
	return id;
}

/* The pair of a series; `last` is that of the one before, which mostly is of the same service. */
static uint32_t pair_of(struct service_senders *senders, struct key *key,
			const struct tables_view *view, uint32_t series, uint32_t last)
{
	struct service service = service_of(view, view->series[series].label_set);
	char text[SERVICE_SENDERS_TEXT_BYTES];
	uint32_t id;

	key->service = set_text(text, cut(service.name));
	if (last == IDMAP_NONE || !is_same(senders, last, key)) {
		id = find(senders, key);
		senders->list[id].is_named = service.is_named;
		return id;
	}
	return last;
}

void service_senders_note(struct service_senders *senders, struct slice tenant, struct slice sender,
			  const struct tables_view *view)
{
	char text[SERVICE_SENDERS_TEXT_BYTES];
	struct key key = { .tenant = tenant, .sender = set_text(text, cut(sender)) };
	int64_t now_ns = clock_real_ns();
	uint32_t last = IDMAP_NONE, series = UINT32_MAX;

	lock_take(&senders->lock);
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];

		if (report->series != series)
			last = pair_of(senders, &key, view, report->series, last);
		series = report->series;
		senders->list[last].last_at_ns = now_ns;
		if (report->start_ns > senders->list[last].newest_ns)
			senders->list[last].newest_ns = report->start_ns;
	}
	lock_give(&senders->lock);
}

struct service_sender *service_senders_list(struct service_senders *senders, struct slice tenant,
					    size_t *ret_count)
{
	struct service_sender *list;
	size_t count = 0;

	lock_take(&senders->lock);
	list = mem_new_array(struct service_sender, senders->count + 1);
	for (size_t i = 0; i < senders->count; i++)
		if (slice_is(tenant, senders->list[i].tenant))
			list[count++] = senders->list[i];
	lock_give(&senders->lock);
	qsort(list, count, sizeof(*list), by_service);
	*ret_count = count;
	return list;
}

bool service_senders_several(struct service_senders *senders, struct slice tenant, int64_t since_ns)
{
	const char *first = NULL;
	bool several = false;

	lock_take(&senders->lock);
	for (size_t i = 0; !several && i < senders->count; i++) {
		const struct service_sender *sender = &senders->list[i];

		if (!sender->is_named || sender->newest_ns < since_ns ||
		    !slice_is(tenant, sender->tenant))
			continue;
		if (!first)
			first = sender->service;
		several = strcmp(first, sender->service) != 0;
	}
	lock_give(&senders->lock);
	return several;
}
