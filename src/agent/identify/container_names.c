/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/container_names.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#define KEEP_NS (600 * CLOCK_NS_PER_S)
#define REFRESH_NS (300 * CLOCK_NS_PER_S)
#define RETRY_NS CLOCK_NS_PER_S
#define RETRY_MAX_NS (60 * CLOCK_NS_PER_S)
#define ABSENT_NS (10 * CLOCK_NS_PER_S)
#define NICE 5

/* One container. Bits of masks are sources by their index. */
struct entry {
	char *id;
	enum cgroup_runtime runtime;
	struct meta_labels labels;
	bool is_known;
	uint32_t to_ask, asking;
	uint32_t answerer; /* that what is known comes from */
	int64_t wanted_at_ns, seen_at_ns;
	int64_t again_at_ns; /* when it is asked for next, and */
	int64_t again_after_ns;
};

struct asker {
	struct container_names *names;
	struct container_source *source;
	pthread_t thread;
	bool is_started;
	int64_t down_until_ns; /* it is left alone */
	int64_t down_ns;
};

struct container_names {
	struct asker askers[CONTAINER_NAMES_SOURCES_MAX];
	size_t askers_count;

	struct lock lock; /* guards what follows, and the askers but for their sources */
	struct lock_condition changed;
	struct entry *entries;
	size_t count, capacity;
	struct idmap map;
	bool is_ending;
};

#define LOOKUPS "firn_agent_container_lookups_total"
#define LOOKUPS_HELP "Lookups at sockets of container runtimes, by result."
static METRIC_COUNTER(lookups_found, LOOKUPS, "{result=\"found\"}", LOOKUPS_HELP);
static METRIC_COUNTER(lookups_unknown, LOOKUPS, "{result=\"unknown\"}", LOOKUPS_HELP);
static METRIC_COUNTER(lookups_failed, LOOKUPS, "{result=\"failed\"}", LOOKUPS_HELP);
static METRIC_GAUGE(containers_known, "firn_agent_containers", "",
		    "Containers whose names are cached.");

void container_names_metrics_register(void)
{
	static struct metric *const own[] = { &lookups_found, &lookups_unknown, &lookups_failed,
					      &containers_known };

	metrics_register(own, sizeof(own) / sizeof(own[0]));
}

static void entry_fini(struct entry *entry)
{
	free(entry->id);
	meta_labels_free(&entry->labels);
}

static uint64_t hash_of(struct slice id)
{
	return hash_bytes(id.data, id.len);
}

static bool id_equal(const void *context, uint32_t index, const void *key)
{
	const struct container_names *names = context;

	return slice_equal(slice_of(names->entries[index].id), *(const struct slice *)key);
}

/* Or NULL. */
static struct entry *find(struct container_names *names, struct slice id)
{
	uint32_t index = idmap_find(&names->map, hash_of(id), id_equal, names, &id);

	return index == IDMAP_NONE ? NULL : &names->entries[index];
}

/* ---- who asks ---- */

static uint32_t bit_of(const struct asker *asker)
{
	return 1u << (asker - asker->names->askers);
}

static struct entry *next_to_ask(struct asker *asker)
{
	struct container_names *names = asker->names;

	for (size_t i = 0; i < names->count; i++)
		if (names->entries[i].to_ask & bit_of(asker))
			return &names->entries[i];
	return NULL;
}

/* Nothing waits for it until then. */
static void leave_alone(struct asker *asker, int64_t for_ns, int64_t now_ns)
{
	struct container_names *names = asker->names;

	asker->down_until_ns = now_ns + for_ns;
	for (size_t i = 0; i < names->count; i++)
		names->entries[i].to_ask &= ~bit_of(asker);
}

static void note_failure(struct asker *asker, int code, const struct err *err, int64_t now_ns)
{
	if (code == -ERR_NOT_FOUND || code == -ERR_UNSUPPORTED || code == -ERR_CANCELLED) {
		leave_alone(asker, ABSENT_NS, now_ns);
		return;
	}
	metric_add(&lookups_failed, 1);
	if (code == -ERR_INVALID || code == -ERR_LIMIT)
		return; /* of this container alone */
	if (!asker->down_ns)
		log_warn("agent", "a container runtime does not answer",
			 "socket=\"%s\" error=\"%s\"", container_source_path(asker->source),
			 err->message);
	asker->down_ns = asker->down_ns ? 2 * asker->down_ns : RETRY_NS;
	if (asker->down_ns > RETRY_MAX_NS)
		asker->down_ns = RETRY_MAX_NS;
	leave_alone(asker, asker->down_ns, now_ns);
}

/* The first who knows a container goes on answering for it. */
static void take_answer(struct asker *asker, struct entry *entry, struct meta_labels *labels,
			int64_t now_ns)
{
	if (entry->is_known && entry->answerer != bit_of(asker))
		return;
	meta_labels_free(&entry->labels);
	entry->labels = *labels;
	*labels = (struct meta_labels){ 0 };
	entry->is_known = true;
	entry->answerer = bit_of(asker);
	entry->to_ask = 0;
	entry->again_at_ns = now_ns + REFRESH_NS;
}

static void note_answer(struct asker *asker, struct slice id, int code, struct meta_labels *labels,
			const struct err *err)
{
	int64_t now_ns = clock_monotonic_ns();
	struct entry *entry = find(asker->names, id);

	if (code < 0) {
		note_failure(asker, code, err, now_ns);
	} else {
		asker->down_ns = 0;
		metric_add(code ? &lookups_found : &lookups_unknown, 1);
	}
	if (!entry)
		return;
	entry->asking &= ~bit_of(asker);
	if (code == 1)
		take_answer(asker, entry, labels, now_ns);
}

static void ask_one(struct asker *asker, struct entry *entry)
{
	struct container_names *names = asker->names;
	char id[CONTAINER_ID_BYTES_MAX + 1];
	struct meta_labels labels = { 0 };
	size_t len = strlen(entry->id);
	struct err err;
	int code;

	memcpy(id, entry->id, len + 1);
	entry->to_ask &= ~bit_of(asker);
	entry->asking |= bit_of(asker);
	lock_give(&names->lock);
	code = container_source_ask(asker->source, slice_from(id, len), &labels, &err);
	lock_take(&names->lock);
	note_answer(asker, slice_from(id, len), code, &labels, &err);
	meta_labels_free(&labels);
	lock_broadcast(&names->changed);
}

static void *run(void *data)
{
	struct asker *asker = data;
	struct container_names *names = asker->names;

	setpriority(PRIO_PROCESS, 0, NICE);
	lock_take(&names->lock);
	while (!names->is_ending) {
		struct entry *entry = next_to_ask(asker);

		if (entry)
			ask_one(asker, entry);
		else
			lock_wait(&names->changed, &names->lock);
	}
	lock_give(&names->lock);
	return NULL;
}

/* ---- what is wanted ---- */

static bool may_ask(struct asker *asker, enum cgroup_runtime runtime, int64_t now_ns)
{
	if (!container_source_knows(asker->source, runtime) || now_ns < asker->down_until_ns)
		return false;
	if (!asker->is_started) {
		asker->is_started = !pthread_create(&asker->thread, NULL, run, asker);
		if (asker->is_started)
			pthread_setname_np(asker->thread, "firn-container");
	}
	return asker->is_started;
}

static void have_asked(struct container_names *names, struct entry *entry, int64_t now_ns)
{
	for (size_t i = 0; i < names->askers_count; i++) {
		struct asker *asker = &names->askers[i];

		if ((!entry->is_known || entry->answerer == bit_of(asker)) &&
		    !(entry->asking & bit_of(asker)) && may_ask(asker, entry->runtime, now_ns))
			entry->to_ask |= bit_of(asker);
	}
	if (entry->again_after_ns < RETRY_MAX_NS)
		entry->again_after_ns *= 2;
	entry->again_at_ns = now_ns + (entry->is_known ? REFRESH_NS : entry->again_after_ns);
	lock_broadcast(&names->changed);
}

static struct entry *add(struct container_names *names, struct slice id,
			 enum cgroup_runtime runtime, int64_t now_ns)
{
	struct entry *entry;

	if (names->count >= CONTAINER_NAMES_MAX)
		return NULL;
	mem_grow(names->entries, names->count, names->capacity);
	entry = &names->entries[names->count];
	*entry = (struct entry){ .id = mem_strndup(id.data, id.len),
				 .runtime = runtime,
				 .wanted_at_ns = now_ns,
				 .again_after_ns = RETRY_NS };
	idmap_add(&names->map, hash_of(id), (uint32_t)names->count);
	names->count++;
	metric_set(&containers_known, (int64_t)names->count);
	return entry;
}

void container_names_want(struct container_names *names, struct slice id,
			  enum cgroup_runtime runtime, int64_t now_ns)
{
	struct entry *entry;

	if (!id.len || id.len > CONTAINER_ID_BYTES_MAX || !names->askers_count ||
	    runtime == CGROUP_RUNTIME_LXC)
		return;
	lock_take(&names->lock);
	entry = find(names, id);
	if (!entry)
		entry = add(names, id, runtime, now_ns);
	if (entry) {
		entry->seen_at_ns = now_ns;
		if (now_ns >= entry->again_at_ns)
			have_asked(names, entry, now_ns);
	}
	lock_give(&names->lock);
}

bool container_names_find(struct container_names *names, struct slice id, struct meta_labels *ret)
{
	struct entry *entry;
	bool is_known;

	lock_take(&names->lock);
	entry = find(names, id);
	is_known = entry && entry->is_known;
	if (is_known)
		meta_labels_copy(ret, &entry->labels);
	lock_give(&names->lock);
	return is_known;
}

static bool is_pending(const struct container_names *names, int64_t now_ns)
{
	for (size_t i = 0; i < names->count; i++) {
		const struct entry *entry = &names->entries[i];

		if ((entry->to_ask || entry->asking) && !entry->is_known &&
		    now_ns < entry->wanted_at_ns + CONTAINER_SOURCE_DEADLINE_NS)
			return true;
	}
	return false;
}

bool container_names_is_pending(struct container_names *names, int64_t now_ns)
{
	bool pending;

	lock_take(&names->lock);
	pending = is_pending(names, now_ns);
	lock_give(&names->lock);
	return pending;
}

void container_names_settle(struct container_names *names, int64_t timeout_ns)
{
	int64_t until_ns = clock_monotonic_ns() + timeout_ns;
	bool in_time = true;

	lock_take(&names->lock);
	while (in_time && is_pending(names, clock_monotonic_ns()))
		in_time = lock_wait_until(&names->changed, &names->lock, until_ns);
	lock_give(&names->lock);
}

void container_names_sweep(struct container_names *names, int64_t now_ns)
{
	size_t kept = 0;

	lock_take(&names->lock);
	idmap_clear(&names->map);
	for (size_t i = 0; i < names->count; i++) {
		struct entry *entry = &names->entries[i];

		if (now_ns - entry->seen_at_ns >= KEEP_NS) {
			entry_fini(entry);
			continue;
		}
		idmap_add(&names->map, hash_of(slice_of(entry->id)), (uint32_t)kept);
		names->entries[kept++] = *entry;
	}
	names->count = kept;
	metric_set(&containers_known, (int64_t)kept);
	lock_give(&names->lock);
}

static int add_source(struct container_names *names, const char *text, struct err *err)
{
	struct asker *asker = &names->askers[names->askers_count];
	int code;

	if (names->askers_count >= CONTAINER_NAMES_SOURCES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d sockets of container runtimes",
			       CONTAINER_NAMES_SOURCES_MAX);
	code = container_source_new(text, &asker->source, err);
	if (code)
		return code;
	asker->names = names;
	names->askers_count++;
	return 0;
}

int container_names_new(const char *const *sources, size_t count, struct container_names **ret,
			struct err *err)
{
	struct container_names *names = mem_new(struct container_names);
	int code = 0;

	lock_init(&names->lock, "container_names", LOCK_AGENT + 9);
	lock_condition_init(&names->changed);
	for (size_t i = 0; !code && sources && i < count; i++)
		code = add_source(names, sources[i], err);
	for (size_t i = 0; !code && !sources && container_source_defaults[i]; i++)
		code = add_source(names, container_source_defaults[i], err);
	if (code) {
		container_names_free(names);
		return code;
	}
	*ret = names;
	return 0;
}

void container_names_free(struct container_names *names)
{
	if (!names)
		return;
	lock_take(&names->lock);
	names->is_ending = true;
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
	for (size_t i = 0; i < names->askers_count; i++) {
		struct asker *asker = &names->askers[i];

		container_source_cancel(asker->source);
		if (asker->is_started)
			pthread_join(asker->thread, NULL);
		container_source_free(asker->source);
	}
	for (size_t i = 0; i < names->count; i++)
		entry_fini(&names->entries[i]);
	free(names->entries);
	idmap_free(&names->map);
	lock_condition_free(&names->changed);
	lock_free(&names->lock);
	free(names);
}
