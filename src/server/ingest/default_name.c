/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_default_name: what a profile is called that does not say it. */
#include "codec/profile/pprof.h"
#include "server/ingest/ingest.h"

static struct slice string_at(const struct pprof *profile, int64_t index)
{
	if (index <= 0 || (uint64_t)index >= profile->strings.count)
		return SLICE_LITERAL("");
	return profile->strings.data[index];
}

static bool contains(struct slice text, struct slice word)
{
	for (size_t i = 0; i + word.len <= text.len; i++)
		if (slice_starts_with(slice_tail(text, i), word))
			return true;
	return false;
}

static bool is_cpu_time(const struct pprof *profile, struct slice type, struct slice unit)
{
	if (slice_is(type, "cpu"))
		return slice_is(unit, "nanoseconds");
	return slice_is(type, "samples") && slice_is(unit, "count") &&
	       slice_is(string_at(profile, profile->period_type.type), "cpu");
}

static bool is_memory(struct slice type)
{
	return slice_starts_with(type, SLICE_LITERAL("alloc_")) ||
	       slice_starts_with(type, SLICE_LITERAL("inuse_"));
}

static bool is_waiting(struct slice type)
{
	return slice_is(type, "contentions") || slice_is(type, "delay");
}

static bool is_goroutine(struct slice type)
{
	return slice_is(type, "goroutine") || slice_is(type, "goroutines");
}

struct slice ingest_default_name(const struct pprof *profile, struct slice fallback)
{
	bool cpu = false, memory = false, waiting = false, goroutine = false;

	for (size_t i = 0; i < profile->sample_types.count; i++) {
		const struct pprof_value_type *type = &profile->sample_types.data[i];
		struct slice name = string_at(profile, type->type);

		cpu |= is_cpu_time(profile, name, string_at(profile, type->unit));
		memory |= is_memory(name);
		waiting |= is_waiting(name);
		goroutine |= is_goroutine(name);
	}
	if (cpu)
		return SLICE_LITERAL("process_cpu");
	if (memory)
		return SLICE_LITERAL("memory");
	if (waiting && contains(fallback, SLICE_LITERAL("block")))
		return SLICE_LITERAL("block");
	if (waiting)
		return SLICE_LITERAL("mutex");
	if (goroutine)
		return SLICE_LITERAL("goroutine");
	if (fallback.len || !profile->sample_types.count)
		return fallback;
	return string_at(profile, profile->sample_types.data[0].type);
}

struct slice ingest_type_name(const struct pprof *profile, size_t type, struct slice said)
{
	struct slice name = string_at(profile, profile->sample_types.data[type].type);
	struct slice period = string_at(profile, profile->period_type.type);

	if (slice_starts_with(name, SLICE_LITERAL("wall")))
		return SLICE_LITERAL("wall");
	if (slice_starts_with(name, SLICE_LITERAL("cpu")))
		return SLICE_LITERAL("process_cpu");
	if (slice_is(name, "samples") || slice_is(name, "sample"))
		return slice_is(period, "wall")	 ? SLICE_LITERAL("wall")
		       : slice_is(period, "cpu") ? SLICE_LITERAL("process_cpu")
						 : name;
	if (is_memory(name) || slice_is(name, "space") || slice_is(name, "objects") ||
	    slice_starts_with(name, SLICE_LITERAL("alloc-")) ||
	    slice_starts_with(name, SLICE_LITERAL("inuse-")) ||
	    slice_starts_with(name, SLICE_LITERAL("heap-")))
		return SLICE_LITERAL("memory");
	if (slice_starts_with(said, SLICE_LITERAL("block_")))
		return SLICE_LITERAL("block");
	if (is_waiting(name))
		return SLICE_LITERAL("mutex");
	return is_goroutine(name) ? SLICE_LITERAL("goroutine") : name;
}
