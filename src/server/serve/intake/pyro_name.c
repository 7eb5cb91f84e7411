/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/pyro_name.h"

#define CPU_TIME "process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds", true
#define WALL_TIME "wall", "wall", "nanoseconds", "wall", "nanoseconds", true
#define MEMORY(type, unit) "memory", type, unit, "space", "bytes", false
#define WAIT_COUNT(name) name, "contentions", "count", name, "count", false
#define WAIT_TIME(name) name, "delay", "nanoseconds", name, "count", false

static const struct pyro_name_type types[] = {
	{ "cpu", CPU_TIME },
	{ "itimer", CPU_TIME },
	{ "wall", WALL_TIME },
	{ "inuse_objects", MEMORY("inuse_objects", "count") },
	{ "inuse_space", MEMORY("inuse_space", "bytes") },
	{ "alloc_objects", MEMORY("alloc_objects", "count") },
	{ "alloc_space", MEMORY("alloc_space", "bytes") },
	{ "alloc_in_new_tlab_objects", MEMORY("alloc_in_new_tlab_objects", "count") },
	{ "alloc_in_new_tlab_bytes", MEMORY("alloc_in_new_tlab_bytes", "bytes") },
	{ "alloc_outside_tlab_objects", MEMORY("alloc_outside_tlab_objects", "count") },
	{ "alloc_outside_tlab_bytes", MEMORY("alloc_outside_tlab_bytes", "bytes") },
	{ "live", "memory", "live", "count", "objects", "count", false },
	{ "goroutines", "goroutine", "goroutine", "count", "goroutine", "count", false },
	{ "mutex_count", WAIT_COUNT("mutex") },
	{ "mutex_duration", WAIT_TIME("mutex") },
	{ "block_count", WAIT_COUNT("block") },
	{ "block_duration", WAIT_TIME("block") },
	{ "lock_count", WAIT_COUNT("block") },
	{ "lock_duration", WAIT_TIME("block") },
	{ "exceptions", "exceptions", "samples", "count", "exceptions", "count", false },
};

/* Where the app's name says nothing, the units do. */
static const struct {
	const char *units, *suffix;
} by_units[] = {
	{ "objects", "inuse_objects" },		  { "bytes", "inuse_space" },
	{ "goroutines", "goroutines" },		  { "lock_samples", "mutex_count" },
	{ "lock_nanoseconds", "mutex_duration" },
};

static const struct pyro_name_type *find_type(struct slice suffix)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (slice_is(suffix, types[i].suffix))
			return &types[i];
	return NULL;
}

static void find_app_type(struct slice units, struct pyro_name *name)
{
	const char *dot = name->app.len ? memrchr(name->app.data, '.', name->app.len) : NULL;

	if (dot) {
		size_t len = (size_t)(dot - name->app.data);

		name->type = find_type(slice_tail(name->app, len + 1));
		if (name->type)
			name->app.len = len;
	}
	for (size_t i = 0; !name->type && i < sizeof(by_units) / sizeof(by_units[0]); i++)
		if (slice_is(units, by_units[i].units))
			name->type = find_type(slice_of(by_units[i].suffix));
	if (!name->type)
		name->type = &types[0];
}

static struct slice unquoted(struct slice text)
{
	if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
		return slice_from(text.data + 1, text.len - 2);
	return text;
}

static int add_label(struct pyro_name *name, struct slice key, struct slice value, struct err *err)
{
	if (!key.len || slice_starts_with(key, SLICE_LITERAL("__")))
		return 0;
	if (name->labels_count == PYRO_LABELS_MAX)
		return err_set(err, ERR_LIMIT, "name: more than %d labels", PYRO_LABELS_MAX);
	name->labels[name->labels_count++] = (struct ingest_label){ key, value };
	return 0;
}

static int read_labels(struct slice text, struct pyro_name *name, struct err *err)
{
	int rc = 0;

	while (!rc && text.len) {
		struct slice pair = slice_cut(text, ',', &text), value;
		struct slice key = slice_trim(slice_cut(pair, '=', &value));

		rc = add_label(name, key, unquoted(slice_trim(value)), err);
	}
	return rc;
}

static bool has_label(const struct pyro_name *name, const char *key)
{
	for (size_t i = 0; i < name->labels_count; i++)
		if (slice_is(name->labels[i].name, key))
			return true;
	return false;
}

int pyro_name_parse(struct slice text, struct slice units, bool has_types, struct pyro_name *ret,
		    struct err *err)
{
	struct slice labels;
	int rc;

	*ret = (struct pyro_name){ .app = slice_trim(slice_cut(text, '{', &labels)) };
	if (!ret->app.len)
		return err_set(err, ERR_INVALID,
			       "parameter name: expected APP or APP{key=value,...}");
	if (labels.len && labels.data[labels.len - 1] != '}')
		return err_set(err, ERR_INVALID, "parameter name: no '}' at its end");
	if (labels.len)
		labels.len--;
	rc = read_labels(labels, ret, err);
	if (has_types)
		ret->type = &types[0];
	else
		find_app_type(units, ret);
	if (!rc)
		rc = add_label(ret,
			       has_label(ret, "service_name") ? SLICE_LITERAL("app_name")
							      : SLICE_LITERAL("service_name"),
			       ret->app, err);
	return rc;
}

int64_t pyro_name_time_ns(struct slice text)
{
	static const struct {
		size_t digits_max;
		int64_t ns;
	} units[] = { { 11, CLOCK_NS_PER_S },
		      { 14, CLOCK_NS_PER_MS },
		      { 17, CLOCK_NS_PER_S / 1000000 },
		      { 20, 1 } };
	uint64_t number;
	int64_t ns;

	if (!slice_parse_u64(text, &number) || number > INT64_MAX)
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text.len <= units[i].digits_max)
			return __builtin_mul_overflow((int64_t)number, units[i].ns, &ns) ? 0 : ns;
	return 0;
}
