/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_scraped - what a target gave becomes a batch and durable, as what is sent does. With
 * --tenants it belongs to the one that the target's label __tenant_id__ names, else to the tenant
 * "".
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/profile/legacy_pprof.h"
#include "server/scrape/scrape.h"
#include "server/serve/intake/writing.h"
#include "server/serve/tenant.h"

#define LABELS_MAX 256u
#define TENANT_LABEL "__tenant_id__" /* as Loki's agents have it */
#define LEGACY_ELEMENTS_MAX ((size_t)2 << 20)

/* What rules left, without what is ours; then what all series get that have no such label. */
static size_t choose_labels(const struct scrape_taken *taken, struct ingest_label *ret)
{
	const struct field_pairs *external = taken->external_labels;
	size_t count = 0;

	for (size_t i = 0; i < taken->labels->count && count < LABELS_MAX; i++) {
		const struct rule_label *label = &taken->labels->labels[i];

		if (target_labels_is_public(label->name) || slice_is(label->name, "__name__"))
			ret[count++] = (struct ingest_label){ label->name, label->value };
	}
	for (size_t i = 0; i < external->count && count < LABELS_MAX; i++)
		if (!label_list_get(taken->labels, external->items[i].name.data).len)
			ret[count++] = (struct ingest_label){ external->items[i].name,
							      external->items[i].value };
	return count;
}

static int take_pprof(struct writing *writing, const struct ingest_pprof *profile)
{
	return ingest_from_pprof(writing->scratch, &writing->limits, profile, writing->batch,
				 &writing->err);
}

/* What gperftools serves: formats from before profile.proto. */
static int take_legacy(struct writing *writing, const struct ingest_pprof *profile)
{
	struct ingest_pprof as_pprof = *profile;
	struct strbuf encoded = { 0 };
	struct stack_builder built;
	int rc;

	stack_builder_init(&built, LEGACY_ELEMENTS_MAX, writing->budget);
	rc = legacy_pprof_decode(profile->bytes, &built, &writing->err);
	if (!rc)
		rc = stack_builder_encode(&built, &encoded, &writing->err);
	if (!rc) {
		as_pprof.bytes = strbuf_slice(&encoded);
		rc = take_pprof(writing, &as_pprof);
	}
	strbuf_free(&encoded);
	stack_builder_free(&built);
	return rc;
}

/* Freed by the caller; NULL: all. */
static struct ingest_kept *kept_of(const struct scrape_profile *profile)
{
	struct ingest_kept *kept;

	if (!profile->kept_count)
		return NULL;
	kept = mem_new_array(struct ingest_kept, profile->kept_count);
	for (size_t i = 0; i < profile->kept_count; i++)
		kept[i] = (struct ingest_kept){ profile->kept[i].type, profile->kept[i].unit };
	return kept;
}

int write_scraped(void *context, const struct scrape_taken *taken, struct err *err)
{
	struct ingest_label labels[LABELS_MAX];
	struct ingest_kept *kept = kept_of(taken->profile);
	struct ingest_pprof profile = { .bytes = taken->body,
					.labels = labels,
					.labels_count = choose_labels(taken, labels),
					.now_ns = clock_real_ns(),
					.deltas = taken->is_delta,
					.from_ns = taken->is_delta ? taken->from_ns : 0,
					.until_ns = taken->is_delta ? taken->until_ns : 0,
					.kept = kept,
					.kept_count = taken->profile->kept_count };
	const struct net_header tenant = { SLICE_LITERAL(TENANT_HEADER),
					   label_list_get(taken->labels, TENANT_LABEL) };
	struct net_request request = { .peer = taken->url,
				       .body = taken->body,
				       .headers = &tenant,
				       .headers_count = tenant.value.len > 0 };
	struct net_response response = { .body = { 0 } };
	struct writing writing;
	int rc = writing_begin(&writing, context, &request, WRITING_SCRAPE);

	if (!rc)
		rc = legacy_pprof_is(taken->body) ? take_legacy(&writing, &profile)
						  : take_pprof(&writing, &profile);
	if (!rc)
		rc = writing_append_all(&writing);
	if (rc && err)
		*err = writing.err;
	writing_end(&writing, &response);
	strbuf_free(&response.body);
	strbuf_free(&response.headers);
	free(kept);
	return rc;
}
