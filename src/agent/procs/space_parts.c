/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/space_parts.h"

#include <string.h>

#include "base/mem.h"

struct unfinished_space {
	struct record_head head; /* of the first part */
	uint16_t next, parts;	 /* next = 0: nothing is under way */
	uint16_t flags;
	size_t count;
	struct space_mapping mappings[SPACE_PARTS_MAPPINGS_MAX];
};

void space_parts_fini(struct space_parts *parts)
{
	for (size_t i = 0; i < parts->cpus_count; i++)
		free(parts->cpus[i]);
	free(parts->cpus);
	*parts = (struct space_parts){ 0 };
}

static bool is_sound(const struct space_record *record, size_t len)
{
	uint64_t last = 0;

	if (len < SPACE_RECORD_HEADER_BYTES || record->count > SPACE_PART_MAPPINGS ||
	    len < SPACE_RECORD_HEADER_BYTES + record->count * sizeof(struct space_mapping) ||
	    record->parts > SPACE_PARTS_MAX || record->part >= record->parts ||
	    record->head.cpu >= SPACE_PARTS_CPUS_MAX)
		return false;
	for (size_t i = 0; i < record->count; i++) {
		const struct space_mapping *mapping = &record->mappings[i];

		if (mapping->start < last || mapping->start >= mapping->end ||
		    mapping->offset > UINT64_MAX - (mapping->end - mapping->start))
			return false;
		last = mapping->end;
	}
	return true;
}

static struct unfinished_space *of_cpu(struct space_parts *parts, uint32_t cpu)
{
	if (cpu >= parts->cpus_count) {
		size_t count = (size_t)cpu + 1;

		parts->cpus = mem_realloc(parts->cpus, count, sizeof(*parts->cpus));
		memset(parts->cpus + parts->cpus_count, 0,
		       (count - parts->cpus_count) * sizeof(*parts->cpus));
		parts->cpus_count = count;
	}
	if (!parts->cpus[cpu])
		parts->cpus[cpu] = mem_new(struct unfinished_space);
	return parts->cpus[cpu];
}

/* What was under way on the CPU, ended. */
static void drop(struct space_parts *parts, uint32_t cpu)
{
	struct unfinished_space *unfinished = cpu < parts->cpus_count ? parts->cpus[cpu] : NULL;

	if (!unfinished || !unfinished->next)
		return;
	unfinished->next = 0;
	parts->lost++;
}

static bool continues(const struct unfinished_space *unfinished, const struct space_record *record)
{
	const struct record_head *a = &unfinished->head, *b = &record->head;

	return unfinished->next == record->part && unfinished->parts == record->parts &&
	       a->at_ns == b->at_ns && a->process_start_ns == b->process_start_ns &&
	       a->tgid == b->tgid && a->exec_id == b->exec_id &&
	       (!record->count || !unfinished->count ||
		unfinished->mappings[unfinished->count - 1].end <= record->mappings[0].start);
}

static enum space_parts_result add(struct unfinished_space *unfinished,
				   const struct space_record *record, struct space_list *ret)
{
	/* At most SPACE_PARTS_MAX parts come here, each of at most SPACE_PART_MAPPINGS. */
	memcpy(&unfinished->mappings[unfinished->count], record->mappings,
	       record->count * sizeof(struct space_mapping));
	unfinished->count += record->count;
	unfinished->flags |= record->space_flags;
	unfinished->next++;
	if (unfinished->next < unfinished->parts)
		return SPACE_PARTS_MORE;
	unfinished->next = 0;
	*ret = (struct space_list){ unfinished->mappings, unfinished->count, unfinished->flags };
	return SPACE_PARTS_WHOLE;
}

enum space_parts_result space_parts_take(struct space_parts *parts,
					 const struct space_record *record, size_t len,
					 struct space_list *ret)
{
	struct unfinished_space *unfinished;

	if (!is_sound(record, len))
		return SPACE_PARTS_BAD;
	if (record->part == 0) {
		drop(parts, record->head.cpu);
		if (record->parts == 1) {
			*ret = (struct space_list){ record->mappings, record->count,
						    record->space_flags };
			return SPACE_PARTS_WHOLE;
		}
		unfinished = of_cpu(parts, record->head.cpu);
		unfinished->head = record->head;
		unfinished->parts = record->parts;
		unfinished->count = 0;
		unfinished->flags = 0;
	} else {
		unfinished =
			record->head.cpu < parts->cpus_count ? parts->cpus[record->head.cpu] : NULL;
		if (!unfinished || !unfinished->next || !continues(unfinished, record)) {
			drop(parts, record->head.cpu);
			return SPACE_PARTS_BAD;
		}
	}
	return add(unfinished, record, ret);
}
