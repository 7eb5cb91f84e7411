/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/jfr_input.h"

#include "base/budget.h"
#include "codec/archive/compress.h"
#include "codec/profile/jfr.h"

#define ELEMENTS_MAX ((size_t)2 << 20)
#define UNPACKED_BYTES_MAX ((size_t)64 << 20)
#define FIRST_FACTOR 8u
#define HEAD_BYTES 4096u

static int take_kind(struct writing *writing, const struct ingest_pprof *like, enum jfr_kind kind,
		     struct stack_builder *built)
{
	struct ingest_pprof profile = *like;
	struct strbuf encoded = { 0 };
	int rc = stack_builder_encode(built, &encoded, &writing->err);

	if (rc)
		return rc;
	profile.bytes = strbuf_slice(&encoded);
	profile.name = slice_of(jfr_name(kind));
	profile.named_by_type = false;
	profile.deltas = true;
	rc = ingest_from_pprof(writing->scratch, &writing->limits, &profile, writing->batch,
			       &writing->err);
	strbuf_free(&encoded);
	return rc;
}

static int take(struct writing *writing, const struct ingest_pprof *like, struct slice bytes)
{
	struct jfr jfr;
	int rc = jfr_decode(bytes, ELEMENTS_MAX, writing->budget, &jfr, &writing->err);

	for (int i = 0; i < JFR_KINDS && !rc; i++)
		if (jfr.built[i].strings)
			rc = take_kind(writing, like, (enum jfr_kind)i, &jfr.built[i]);
	jfr_free(&jfr);
	return rc;
}

int jfr_input_take(struct writing *writing, const struct ingest_pprof *like)
{
	struct strbuf unpacked = { 0 };
	size_t room = like->bytes.len * FIRST_FACTOR + HEAD_BYTES;
	int rc;

	if (!compress_is_gzip(like->bytes))
		return take(writing, like, like->bytes);
	for (;; room *= FIRST_FACTOR) {
		if (room > UNPACKED_BYTES_MAX)
			room = UNPACKED_BYTES_MAX;
		if (!budget_take(writing->budget, room))
			return budget_fail(writing->budget, room, "take JFR", &writing->err);
		rc = compress_gunzip(like->bytes, room, &unpacked, &writing->err);
		if (rc != -ERR_LIMIT || room == UNPACKED_BYTES_MAX)
			break;
		strbuf_free(&unpacked);
		budget_give(writing->budget, room);
		writing->err.code = ERR_NONE;
	}
	if (!rc)
		rc = take(writing, like, strbuf_slice(&unpacked));
	strbuf_free(&unpacked);
	budget_give(writing->budget, room);
	return rc;
}
