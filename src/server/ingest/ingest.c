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

struct ingest_scratch *ingest_scratch_new(void)
{
	struct ingest_scratch *scratch = mem_new(struct ingest_scratch);

	normaliser_init(&scratch->normaliser);
	pprof_init(&scratch->pprof);
	otlp_init(&scratch->otlp);
	scratch->gunzip = compress_gunzip_tables_new();
	repairs_register_metrics();
	return scratch;
}

void ingest_scratch_set_tenant(struct ingest_scratch *scratch, struct slice tenant)
{
	scratch->normaliser.tenant = tenant;
}

void ingest_scratch_free(struct ingest_scratch *scratch)
{
	if (!scratch)
		return;
	normaliser_free(&scratch->normaliser);
	strbuf_free(&scratch->inflated);
	compress_gunzip_tables_free(scratch->gunzip);
	strbuf_free(&scratch->text);
	pprof_free(&scratch->pprof);
	otlp_free(&scratch->otlp);
	idmap_free(&scratch->mapping_index.map);
	idmap_free(&scratch->location_index.map);
	idmap_free(&scratch->function_index.map);
	content_hash_free(&scratch->content_hash);
	free(scratch->chains.data);
	free(scratch->chain_frames.data);
	free(scratch->mapping_frames.data);
	free(scratch->string_ids.data);
	free(scratch->attribute_labels.data);
	free(scratch->stack_nodes.data);
	free(scratch->places.data);
	free(scratch->frame_kinds.data);
	free(scratch);
}
