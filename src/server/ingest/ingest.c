/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/ingest.h"

#include "base/mem.h"
#include "server/ingest/scratch_int.h"

const struct ingest_limits ingest_limits_default = {
	.decompressed_bytes_max = (size_t)256 << 20,
	.samples_max = (size_t)2 << 20,
	.stack_depth_max = 512,
	.string_bytes_max = 16 << 10,
	.labels_max = TABLES_LABELS_PER_SET_MAX,
	.moments_max = (size_t)1 << 19, /* a minute of 87 busy CPUs at 100 Hz */
};

struct ingest_scratch *ingest_scratch_new(struct budget *budget)
{
	struct ingest_scratch *scratch = mem_new(struct ingest_scratch);

	scratch->budget = budget;
	normaliser_init(&scratch->normaliser, budget);
	pprof_init(&scratch->pprof);
	otlp_init(&scratch->otlp);
	scratch->pprof.budget = scratch->otlp.budget = scratch->content_hash.budget = budget;
	scratch->gunzip = compress_gunzip_tables_new();
	repairs_register_metrics();
	return scratch;
}

void ingest_scratch_set_tenant(struct ingest_scratch *scratch, struct slice tenant)
{
	scratch->normaliser.tenant = tenant;
}

void ingest_scratch_forget_batch(struct ingest_scratch *scratch)
{
	normaliser_forget(&scratch->normaliser);
}

void ingest_scratch_free(struct ingest_scratch *scratch)
{
	if (!scratch)
		return;
	normaliser_free(&scratch->normaliser);
	strbuf_free(&scratch->inflated);
	budget_give(scratch->budget, scratch->inflated_bytes + scratch->index_bytes);
	compress_gunzip_tables_free(scratch->gunzip);
	strbuf_free(&scratch->text);
	pprof_free(&scratch->pprof);
	otlp_free(&scratch->otlp);
	idmap_free(&scratch->mapping_index.map);
	idmap_free(&scratch->location_index.map);
	idmap_free(&scratch->function_index.map);
	content_hash_free(&scratch->content_hash);
	COLUMN_FREE(&scratch->chains, scratch->budget);
	COLUMN_FREE(&scratch->chain_frames, scratch->budget);
	COLUMN_FREE(&scratch->mapping_frames, scratch->budget);
	COLUMN_FREE(&scratch->string_ids, scratch->budget);
	COLUMN_FREE(&scratch->attribute_labels, scratch->budget);
	COLUMN_FREE(&scratch->stack_nodes, scratch->budget);
	COLUMN_FREE(&scratch->places, scratch->budget);
	COLUMN_FREE(&scratch->frame_kinds, scratch->budget);
	free(scratch);
}
