/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/pprof_check.h"

#include <assert.h>

#include "base/hash.h"
#include "base/idmap.h"

struct ids {
	struct idmap map;
	const char *elements; /* each begins with its 64-bit id */
	size_t element_bytes;
};

static uint64_t id_at(const struct ids *ids, size_t element)
{
	uint64_t id;

	memcpy(&id, ids->elements + element * ids->element_bytes, sizeof(id));
	return id;
}

static bool id_equal(const void *context, uint32_t element, const void *key)
{
	return id_at(context, element) == *(const uint64_t *)key;
}

static bool has_id(const struct ids *ids, uint64_t id)
{
	return idmap_find(&ids->map, hash_bytes(&id, sizeof(id)), id_equal, ids, &id) != IDMAP_NONE;
}

/* False: an id is 0 or there twice. There may be no elements. */
static bool take_ids(struct ids *ids, const void *elements, size_t count, size_t element_bytes)
{
	ids->elements = elements;
	ids->element_bytes = element_bytes;
	for (size_t i = 0; i < count; i++) {
		uint64_t id = id_at(ids, i);

		if (!id || has_id(ids, id))
			return false;
		idmap_add(&ids->map, hash_bytes(&id, sizeof(id)), (uint32_t)i);
	}
	return true;
}

static bool is_text(const struct pprof *profile, int64_t index)
{
	return index >= 0 && (uint64_t)index < profile->strings.count;
}

static bool is_type(const struct pprof *profile, const struct pprof_value_type *type)
{
	return is_text(profile, type->type) && is_text(profile, type->unit);
}

static bool texts_are_there(const struct pprof *profile)
{
	bool sound = profile->strings.count && !profile->strings.data[0].len &&
		     is_type(profile, &profile->period_type) &&
		     is_text(profile, profile->drop_frames) &&
		     is_text(profile, profile->keep_frames) &&
		     is_text(profile, profile->default_sample_type) &&
		     is_text(profile, profile->doc_url);

	for (size_t i = 0; sound && i < profile->sample_types.count; i++)
		sound = is_type(profile, &profile->sample_types.data[i]);
	for (size_t i = 0; sound && i < profile->comments.count; i++)
		sound = is_text(profile, profile->comments.data[i]);
	for (size_t i = 0; sound && i < profile->labels.count; i++) {
		const struct pprof_label *label = &profile->labels.data[i];

		sound = is_text(profile, label->key) && is_text(profile, label->str) &&
			is_text(profile, label->num_unit);
	}
	for (size_t i = 0; sound && i < profile->mappings.count; i++)
		sound = is_text(profile, profile->mappings.data[i].filename) &&
			is_text(profile, profile->mappings.data[i].build_id);
	for (size_t i = 0; sound && i < profile->functions.count; i++) {
		const struct pprof_function *function = &profile->functions.data[i];

		sound = is_text(profile, function->name) &&
			is_text(profile, function->system_name) &&
			is_text(profile, function->filename);
	}
	return sound;
}

static bool ids_lead_somewhere(const struct pprof *profile, struct ids *mappings,
			       struct ids *functions, struct ids *locations)
{
	bool sound = take_ids(mappings, profile->mappings.data, profile->mappings.count,
			      sizeof(*profile->mappings.data)) &&
		     take_ids(functions, profile->functions.data, profile->functions.count,
			      sizeof(*profile->functions.data)) &&
		     take_ids(locations, profile->locations.data, profile->locations.count,
			      sizeof(*profile->locations.data));

	for (size_t i = 0; sound && i < profile->locations.count; i++) {
		uint64_t mapping = profile->locations.data[i].mapping_id;

		sound = !mapping || has_id(mappings, mapping);
	}
	for (size_t i = 0; sound && i < profile->lines.count; i++)
		sound = has_id(functions, profile->lines.data[i].function_id);
	for (size_t i = 0; sound && i < profile->location_ids.count; i++)
		sound = has_id(locations, profile->location_ids.data[i]);
	return sound;
}

bool pprof_is_sound(const struct pprof *profile)
{
	struct ids mappings = { 0 }, functions = { 0 }, locations = { 0 };
	bool sound = profile->sample_types.count && texts_are_there(profile) &&
		     ids_lead_somewhere(profile, &mappings, &functions, &locations);

	for (size_t i = 0; sound && i < profile->samples.count; i++)
		sound = profile->samples.data[i].value_count == profile->sample_types.count;
	idmap_free(&mappings.map);
	idmap_free(&functions.map);
	idmap_free(&locations.map);
	return sound;
}

void pprof_keep_type(struct pprof *profile, size_t type)
{
	size_t kept = 0;

	assert(type < profile->sample_types.count);
	for (size_t i = 0; i < profile->samples.count; i++) {
		struct pprof_sample sample = profile->samples.data[i];

		sample.value_first += (uint32_t)type;
		sample.value_count = 1;
		if (profile->values.data[sample.value_first])
			profile->samples.data[kept++] = sample;
	}
	profile->samples.count = kept;
	profile->sample_types.data[0] = profile->sample_types.data[type];
	profile->sample_types.count = 1;
	profile->default_sample_type = profile->sample_types.data[0].type;
}
