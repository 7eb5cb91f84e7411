/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/targets.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/mem.h"

#define INTERVAL_WEIGHT 8 /* a new interval counts for one part in so many */
#define RATE_SECONDS 60.0 /* a rate is of about as many seconds */

struct targets {
	struct lock lock; /* guards the rest */
	struct target *list;
	size_t count, capacity;
	struct idmap map;
};

struct targets *targets_new(void)
{
	struct targets *targets = mem_new(struct targets);

	lock_init(&targets->lock, "targets", LOCK_SERVE + 4);
	return targets;
}

void targets_free(struct targets *targets)
{
	if (!targets)
		return;
	idmap_free(&targets->map);
	lock_free(&targets->lock);
	free(targets->list);
	free(targets);
}

static void set_text(char *to, size_t bytes, struct slice text)
{
	snprintf(to, bytes, "%.*s", (int)(text.len < bytes ? text.len : bytes - 1), text.data);
}

/* Without the port, which is another for each connection. */
static struct slice host_of(struct slice peer)
{
	size_t len = peer.len;

	while (len && peer.data[len - 1] != ':')
		len--;
	if (len)
		peer.len = len - 1;
	return peer;
}

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct target *a = &((const struct targets *)context)->list[id], *b = key;

	return !strcmp(a->tenant, b->tenant) && !strcmp(a->peer, b->peer) &&
	       !strcmp(a->sender, b->sender) && !strcmp(a->node, b->node);
}

static uint64_t hash_of(const struct target *target)
{
	uint64_t hash = hash_bytes(target->tenant, strlen(target->tenant));

	hash = hash_mix(hash, hash_bytes(target->peer, strlen(target->peer)));
	hash = hash_mix(hash, hash_bytes(target->sender, strlen(target->sender)));
	return hash_mix(hash, hash_bytes(target->node, strlen(target->node)));
}

static int by_last(const void *a, const void *b)
{
	const struct target *left = a, *right = b;

	return (left->last_at_ns < right->last_at_ns) - (left->last_at_ns > right->last_at_ns);
}

/* Half of them, those that were heard of last, stay. */
static void make_room(struct targets *targets)
{
	if (targets->count < TARGETS_MAX)
		return;
	qsort(targets->list, targets->count, sizeof(*targets->list), by_last);
	targets->count /= 2;
	idmap_free(&targets->map);
	targets->map = (struct idmap){ 0 };
	for (size_t i = 0; i < targets->count; i++)
		idmap_add(&targets->map, hash_of(&targets->list[i]), (uint32_t)i);
}

static struct target *find(struct targets *targets, const struct targets_write *write)
{
	struct target wanted = { 0 };
	uint64_t hash;
	uint32_t id;

	set_text(wanted.tenant, sizeof(wanted.tenant), write->tenant);
	set_text(wanted.peer, sizeof(wanted.peer), host_of(write->peer));
	set_text(wanted.sender, sizeof(wanted.sender), write->sender);
	set_text(wanted.node, sizeof(wanted.node), write->node);
	hash = hash_of(&wanted);
	id = idmap_find(&targets->map, hash, is_same, targets, &wanted);
	if (id == IDMAP_NONE) {
		make_room(targets);
		id = (uint32_t)targets->count;
		mem_grow(targets->list, targets->count, targets->capacity);
		targets->list[targets->count++] = wanted;
		idmap_add(&targets->map, hash, id);
	}
	return &targets->list[id];
}

/*
 * Agents send at intervals, others whenever they like: what came together counts for the time
 * since. All of it counts the same until there are RATE_SECONDS of it.
 */
static void note_samples(struct target *target, const struct targets_write *write, int64_t now_ns)
{
	double seconds = (double)(now_ns - target->last_at_ns) / CLOCK_NS_PER_S;
	double known = (double)(now_ns - target->first_at_ns) / CLOCK_NS_PER_S;
	double of = known < RATE_SECONDS ? known : RATE_SECONDS;
	double weight = seconds < of ? seconds / of : 1;

	target->samples += write->samples;
	if (target->requests && seconds > 0)
		target->samples_per_s +=
			weight * ((double)write->samples / seconds - target->samples_per_s);
	if (write->lost && write->lost != target->lost) /* fewer: it was started again */
		target->lost_at_ns = now_ns;
	if (write->lost)
		target->lost = write->lost;
}

void targets_note(struct targets *targets, const struct targets_write *write)
{
	int64_t now_ns = clock_real_ns();
	struct target *target;

	lock_take(&targets->lock);
	target = find(targets, write);
	if (!target->requests) {
		target->first_at_ns = now_ns;
	} else {
		int64_t interval_ns = now_ns - target->last_at_ns;

		target->interval_ns += target->requests == 1 ? interval_ns
							     : (interval_ns - target->interval_ns) /
								       INTERVAL_WEIGHT;
	}
	note_samples(target, write, now_ns);
	target->last_at_ns = now_ns;
	target->requests++;
	target->bytes += write->bytes;
	target->reports += write->reports;
	target->refused += write->refused;
	if (write->err) {
		target->errors++;
		target->error_at_ns = now_ns;
		snprintf(target->error, sizeof(target->error), "%s", write->err->message);
	}
	lock_give(&targets->lock);
}

struct target *targets_list(struct targets *targets, struct slice tenant, size_t *ret_count)
{
	struct target *list;
	size_t count = 0;

	lock_take(&targets->lock);
	list = mem_new_array(struct target, targets->count + 1);
	for (size_t i = 0; i < targets->count; i++)
		if (slice_is(tenant, targets->list[i].tenant))
			list[count++] = targets->list[i];
	lock_give(&targets->lock);
	qsort(list, count, sizeof(*list), by_last);
	*ret_count = count;
	return list;
}
