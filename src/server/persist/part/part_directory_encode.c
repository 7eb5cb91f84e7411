/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_directory_encode.h"

#include <assert.h>

static void encode_texts(const struct tables *texts, struct strbuf *out)
{
	struct tables_view view = tables_view_of(texts);

	assert(view.strings_count); /* the empty one */
	strbuf_add_varint(out, view.strings_count - 1);
	for (uint32_t i = 1; i < view.strings_count; i++)
		strbuf_add_varint(out, view.strings[i].len);
	for (uint32_t i = 1; i < view.strings_count; i++)
		strbuf_add_slice(out, tables_text(&view, i));
}

static void encode_chunks(const struct part_written *written, struct strbuf *out)
{
	strbuf_add_varint(out, written->chunks_count);
	for (uint32_t i = 0; i < written->chunks_count; i++)
		strbuf_add_varint(out, written->chunks[i].stored);
	for (uint32_t i = 0; i < written->chunks_count; i++)
		strbuf_add_varint(out, written->chunks[i].raw - written->chunks[i].stored);
	for (uint32_t i = 0; i < written->chunks_count; i++)
		strbuf_add_u32(out, written->chunks[i].crc);
	for (int section = 0; section < PART_SECTIONS; section++) {
		const struct part_section_chunks *chunks = &written->section_chunks[section];
		uint32_t next = 0;

		strbuf_add_varint(out, chunks->count);
		for (uint32_t i = 0; i < chunks->count; i++) {
			assert(chunks->numbers[i] >= next);
			strbuf_add_varint(out, chunks->numbers[i] - next);
			next = chunks->numbers[i] + 1;
		}
	}
}

static void encode_stripes(const struct part_written *written, struct strbuf *out)
{
	uint32_t next = 0;

	strbuf_add_varint(out, written->stripes_count);
	for (uint32_t i = 0; i < written->stripes_count; i++) {
		const struct part_written_stripe *stripe = &written->stripes[i];

		assert(stripe->chunk + 1 + stripe->has_moments < written->chunks_count);
		strbuf_add_zigzag(out, (int64_t)stripe->chunk - next);
		strbuf_add_varint(out, stripe->reports);
		strbuf_add_varint(out, stripe->rows);
		strbuf_add_varint(out, stripe->columns << 1 | stripe->has_moments);
		next = stripe->chunk + 2 + stripe->has_moments;
	}
}

static void encode_partition(const struct part_written_partition *partition, struct strbuf *out)
{
	bool has_raw = partition->reports > 0;

	assert(!has_raw || partition->start_min_ns <= partition->start_max_ns);
	assert(partition->label_strings && partition->strings >= partition->label_strings);
	strbuf_add_varint(out, partition->tenant);
	strbuf_add_varint(out, partition->service);
	strbuf_add_varint(out, partition->service_label);
	strbuf_add_varint(out, partition->type);
	strbuf_add_varint(out, partition->series);
	strbuf_add_varint(out, partition->row_label_sets);
	strbuf_add_varint(out, partition->label_strings);
	strbuf_add_varint(out, partition->strings);
	strbuf_add_varint(out, partition->frames);
	strbuf_add_varint(out, partition->nodes);
	strbuf_add_varint(out, partition->stacks);
	strbuf_add_varint(out, partition->reports);
	strbuf_add_varint(out, partition->rows);
	strbuf_add_zigzag(out, has_raw ? partition->start_min_ns : 0);
	strbuf_add_varint(out, has_raw ? (uint64_t)partition->start_max_ns -
						 (uint64_t)partition->start_min_ns
				       : 0);
	strbuf_add_varint(out, partition->row_label_names_count);
	for (uint32_t i = 0; i < partition->row_label_names_count; i++)
		strbuf_add_varint(out, partition->row_label_names[i]);
	for (int i = 0; i < SEGMENT_LEVELS; i++)
		strbuf_add_varint(out, partition->blocks[i]);
	for (int i = 0; i < PART_SECTIONS; i++)
		strbuf_add_varint(out,
				  partition->section_bytes[i] << 1 | partition->chunk_begins[i]);
}

void part_directory_encode(const struct part_written *written, struct strbuf *out)
{
	struct tables_view types = tables_view_of(&written->types);

	encode_texts(&written->texts, out);
	encode_chunks(written, out);
	encode_stripes(written, out);
	strbuf_add_varint(out, types.strings_count - 1);
	for (uint32_t i = 1; i < types.strings_count; i++)
		strbuf_add_slice(out, tables_text(&types, i));
	strbuf_add_varint(out, written->partitions_count);
	for (uint32_t i = 0; i < written->partitions_count; i++)
		encode_partition(&written->partitions[i], out);
}
