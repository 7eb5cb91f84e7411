/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/jfr_input.h"

#include "base/budget.h"
#include "codec/archive/compress.h"
#include "codec/profile/jfr.h"
#include "codec/profile/jfr_labels.h"

#define ELEMENTS_MAX ((size_t)2 << 20)
#define UNPACKED_BYTES_MAX ((size_t)64 << 20)
#define FIRST_FACTOR 8u
#define HEAD_BYTES 4096u

static int take_kind(struct writing *writing, const struct ingest_pprof *like, enum jfr_kind kind,
		     struct stack_builder *built)
{
	struct ingest_pprof profile = *like;
	struct strbuf encoded = { 0 };
	int rc;

	if (like->from_ns > 0) { /* as Pyroscope has it: the request says of when it is */
		built->profile.time_nanos = like->from_ns;
		if (like->until_ns > like->from_ns)
			built->profile.duration_nanos = like->until_ns - like->from_ns;
	}
	rc = stack_builder_encode(built, &encoded, &writing->err);
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

static int take(struct writing *writing, const struct ingest_pprof *like, struct slice bytes,
		const struct jfr_labels *labels)
{
	struct jfr jfr;
	int rc = jfr_decode(bytes, labels, ELEMENTS_MAX, writing->budget, &jfr, &writing->err);

	for (int i = 0; i < JFR_KINDS && !rc; i++)
		if (jfr.built[i].strings)
			rc = take_kind(writing, like, (enum jfr_kind)i, &jfr.built[i]);
	jfr_free(&jfr);
	return rc;
}

/* Bytes that may have been in gzip, and what is paid for them. */
struct unpacked {
	struct strbuf buffer;
	struct slice bytes;
	size_t paid_bytes;
};

static int unpack(struct writing *writing, struct slice packed, struct unpacked *ret)
{
	size_t room = packed.len * FIRST_FACTOR + HEAD_BYTES;
	int rc;

	*ret = (struct unpacked){ .bytes = packed };
	if (!compress_is_gzip(packed))
		return 0;
	for (;; room *= FIRST_FACTOR) {
		if (room > UNPACKED_BYTES_MAX)
			room = UNPACKED_BYTES_MAX;
		if (!budget_take(writing->budget, room))
			return budget_fail(writing->budget, room, "take JFR", &writing->err);
		ret->paid_bytes = room;
		rc = compress_gunzip(packed, room, &ret->buffer, &writing->err);
		if (rc != -ERR_LIMIT || room == UNPACKED_BYTES_MAX)
			break;
		strbuf_free(&ret->buffer);
		budget_give(writing->budget, room);
		ret->paid_bytes = 0;
		writing->err.code = ERR_NONE;
	}
	ret->bytes = strbuf_slice(&ret->buffer);
	return rc;
}

static void free_unpacked(struct writing *writing, struct unpacked *unpacked)
{
	strbuf_free(&unpacked->buffer);
	budget_give(writing->budget, unpacked->paid_bytes);
}

int jfr_input_take(struct writing *writing, const struct ingest_pprof *like, struct slice labels)
{
	struct unpacked recording, snapshot = { .paid_bytes = 0 };
	struct jfr_labels *decoded = NULL;
	int rc = unpack(writing, like->bytes, &recording);

	if (!rc && labels.len) {
		rc = unpack(writing, labels, &snapshot);
		if (!rc)
			rc = jfr_labels_decode(snapshot.bytes, writing->budget, &decoded,
					       &writing->err);
		if (rc)
			err_wrap(&writing->err, "part \"labels\"");
	}
	if (!rc)
		rc = take(writing, like, recording.bytes, decoded);
	jfr_labels_free(decoded);
	free_unpacked(writing, &snapshot);
	free_unpacked(writing, &recording);
	return rc;
}
