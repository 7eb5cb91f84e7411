/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/jfr_labels.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "codec/wire/pb.h"

#define ENTRY_COST_BYTES (2 * sizeof(struct entry) + 16) /* and its place in the index */
#define CONTEXT_LABELS_MAX 64u				 /* more of one are left out */

/*
 * An entry of a map: a context's message, or a string. If numbers are equal, the last one counts.
 */
struct entry {
	int64_t number;
	struct slice value;
};

struct map {
	struct entry *entries;
	size_t count, capacity;
	struct idmap by_number;
};

struct jfr_labels {
	struct map contexts, strings;
	struct slice bytes;
	struct budget *budget;
	size_t paid_bytes;
};

static bool has_number(const void *context, uint32_t id, const void *key)
{
	const struct map *map = context;

	return map->entries[id].number == *(const int64_t *)key;
}

static struct entry *find(const struct map *map, int64_t number)
{
	uint32_t id = idmap_find(&map->by_number, hash_bytes(&number, sizeof(number)), has_number,
				 map, &number);

	return id == IDMAP_NONE ? NULL : &map->entries[id];
}

static int add(struct jfr_labels *labels, struct map *map, int64_t number, struct slice value,
	       struct err *err)
{
	struct entry *known = find(map, number);

	if (known) {
		known->value = value;
		return 0;
	}
	if (!budget_take(labels->budget, ENTRY_COST_BYTES))
		return budget_fail(labels->budget, ENTRY_COST_BYTES, "take labels of JFR", err);
	labels->paid_bytes += ENTRY_COST_BYTES;
	mem_grow(map->entries, map->count, map->capacity);
	idmap_add(&map->by_number, hash_bytes(&number, sizeof(number)), (uint32_t)map->count);
	map->entries[map->count++] = (struct entry){ number, value };
	return 0;
}

/* An entry of map<int64, bytes>. */
static int read_entry(const struct pb_reader *outer, struct slice bytes, struct entry *ret,
		      struct err *err)
{
	static const struct pb_shape shape = { .name = "LabelsSnapshot's map",
					       .varints = PB_BIT(1),
					       .bytes = PB_BIT(2) };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret = (struct entry){ 0, { "", 0 } };
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == 1)
			ret->number = (int64_t)field.value;
		else
			ret->value = field.bytes;
	}
	return in.problem ? pb_fail(&in, shape.name, err) : 0;
}

/* An entry of map<int64, int64>. */
static bool read_pair(const struct pb_reader *outer, struct slice bytes, int64_t *ret_name,
		      int64_t *ret_value, struct pb_reader *ret_in)
{
	static const struct pb_shape shape = { .name = "Context's map", .varints = PB_BITS(1, 2) };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	*ret_name = *ret_value = 0;
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == 1)
			*ret_name = (int64_t)field.value;
		else
			*ret_value = (int64_t)field.value;
	}
	*ret_in = in;
	return !in.problem;
}

static const struct pb_shape context_shape = { .name = "Context", .bytes = PB_BIT(1) };

/* So that what is read later cannot be wrong. */
static int check_context(const struct pb_reader *outer, struct slice bytes, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes), pair;
	struct pb_field field;
	int64_t name, value;

	while (pb_next_known(&in, &context_shape, &field))
		if (!read_pair(&in, field.bytes, &name, &value, &pair))
			return pb_fail(&pair, context_shape.name, err);
	return in.problem ? pb_fail(&in, context_shape.name, err) : 0;
}

static int decode(struct jfr_labels *labels, struct err *err)
{
	static const struct pb_shape shape = { .name = "LabelsSnapshot", .bytes = PB_BITS(1, 2) };
	struct pb_reader in = pb_reader_of(labels->bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next_known(&in, &shape, &field)) {
		struct entry entry;

		rc = read_entry(&in, field.bytes, &entry, err);
		if (!rc && field.number == 1)
			rc = check_context(&in, entry.value, err);
		if (!rc)
			rc = add(labels, field.number == 1 ? &labels->contexts : &labels->strings,
				 entry.number, entry.value, err);
	}
	return !rc && in.problem ? pb_fail(&in, shape.name, err) : rc;
}

int jfr_labels_decode(struct slice bytes, struct budget *budget, struct jfr_labels **ret,
		      struct err *err)
{
	struct jfr_labels *labels = mem_new(struct jfr_labels);
	int rc;

	labels->bytes = bytes;
	labels->budget = budget;
	rc = decode(labels, err);
	if (rc)
		jfr_labels_free(labels);
	else
		*ret = labels;
	return rc;
}

void jfr_labels_free(struct jfr_labels *labels)
{
	if (!labels)
		return;
	free(labels->contexts.entries);
	free(labels->strings.entries);
	idmap_free(&labels->contexts.by_number);
	idmap_free(&labels->strings.by_number);
	budget_give(labels->budget, labels->paid_bytes);
	free(labels);
}

struct slice jfr_labels_text(const struct jfr_labels *labels, int64_t number)
{
	const struct entry *entry = labels ? find(&labels->strings, number) : NULL;

	return entry ? entry->value : SLICE_LITERAL("");
}

bool jfr_labels_next(const struct jfr_labels *labels, int64_t context, size_t *at,
		     struct slice *ret_name, struct slice *ret_value)
{
	const struct entry *entry = labels ? find(&labels->contexts, context) : NULL;
	struct pb_reader in = pb_reader_of(entry ? entry->value : SLICE_LITERAL("")), pair;
	struct pb_field field;
	int64_t name, value;

	if (*at >= CONTEXT_LABELS_MAX)
		return false;
	for (size_t i = 0; pb_next_known(&in, &context_shape, &field); i++) {
		if (i < *at)
			continue;
		*at = i + 1;
		if (!read_pair(&in, field.bytes, &name, &value, &pair))
			return false;
		*ret_name = jfr_labels_text(labels, name);
		*ret_value = jfr_labels_text(labels, value);
		return true;
	}
	return false;
}
