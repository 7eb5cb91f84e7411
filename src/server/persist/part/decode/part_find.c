/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_find.h"

#include <assert.h>

#include "base/mem.h"
#include "base/order/bisect.h"

#define RUN_MIN 8u /* fewer are looked at one by one */

/* Rows may have labels of their own: of these the key tells nothing. */
static bool is_carried(const struct part_partition *partition)
{
	for (uint32_t i = 0; i < partition->sample_label_names_count; i++)
		if (slice_equal(partition->sample_label_names[i], partition->service_label))
			return true;
	return false;
}

static bool follows(const struct part_partition *a, const struct part_partition *b)
{
	return b->service_label.len && slice_equal(a->service_label, b->service_label) &&
	       slice_equal(a->key.tenant, b->key.tenant) && !is_carried(a) && !is_carried(b) &&
	       slice_compare(a->key.service, b->key.service) < 0;
}

uint32_t *part_find_runs(const struct part_directory *directory)
{
	uint32_t count = directory->partitions_count;
	uint32_t *runs = mem_new_array(uint32_t, count);

	for (uint32_t i = count; i--;)
		runs[i] = i + 1 < count && follows(&directory->partitions[i].info,
						   &directory->partitions[i + 1].info)
				  ? runs[i + 1]
				  : i + 1;
	return runs;
}

/* The only value that the label may have; NULL: others may match. */
static const struct slice *wanted_value(const struct selector *selector, struct slice label)
{
	for (size_t i = 0; selector && i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];

		if (matcher->op == MATCH_EQUAL && matcher->value.len &&
		    slice_equal(matcher->name, label))
			return &matcher->value;
	}
	return NULL;
}

/* The first in [first, end) whose service is not before the one that is wanted. */
static uint32_t halve(const struct part_directory *directory, uint32_t first, uint32_t end,
		      struct slice service)
{
	return bisect(first, end, i,
		      slice_compare(directory->partitions[i].info.key.service, service) < 0);
}

uint32_t part_find_next(const struct part_directory *directory, const uint32_t *runs, uint32_t from,
			const struct selector *selector)
{
	while (from < directory->partitions_count && runs[from] - from >= RUN_MIN) {
		const struct part_partition *info = &directory->partitions[from].info;
		const struct slice *value = wanted_value(selector, info->service_label);
		uint32_t at;

		if (!value)
			return from;
		at = halve(directory, from, runs[from], *value);
		assert(at >= from && at <= runs[from]);
		if (at < runs[from] &&
		    slice_equal(directory->partitions[at].info.key.service, *value))
			return at;
		from = runs[from];
	}
	return from;
}
