/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_chunk.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

void part_chunk_builder_free(struct part_chunk_builder *builder)
{
	strbuf_free(&builder->raw);
	strbuf_free(&builder->packed);
	free(builder->cuts);
	*builder = (struct part_chunk_builder){ 0 };
}

void part_chunk_cut(struct part_chunk_builder *builder, size_t bytes_min)
{
	size_t last = builder->cuts_count ? builder->cuts[builder->cuts_count - 1] : 0;

	assert(last <= builder->raw.len);
	if (builder->raw.len - last < bytes_min || builder->raw.len == last)
		return;
	mem_grow(builder->cuts, builder->cuts_count, builder->cuts_capacity);
	builder->cuts[builder->cuts_count++] = builder->raw.len;
}

#define THOROUGH_LEVEL 19 /* from here on tables take much memory, unless the window is small */
#define THOROUGH_WINDOW_LOG 20
#define ROWS_MATCH_BYTES 7	       /* the most that this strategy takes */
#define ROWS_HASH_LOG 6		       /* the least */
#define STEP_BYTES ((size_t)128 << 10) /* a block; a thorough one takes 0.1 s */

/* Large frames are tried first: names of high entropy gain nothing by twenty times the work. */
#define TRIAL_FROM_BYTES ((size_t)512 << 10)
#define TRIAL_PIECES 3u
#define TRIAL_PIECE_BYTES ((size_t)32 << 10)
#define TRIAL_GAIN_PERCENT 1u
#define QUICK_LEVEL 3

static void set_up(ZSTD_CCtx *encoder, int level, struct slice raw)
{
	ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, level);
	if (level >= THOROUGH_LEVEL && raw.len > (size_t)1 << THOROUGH_WINDOW_LOG) {
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_windowLog, THOROUGH_WINDOW_LOG);
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_chainLog, THOROUGH_WINDOW_LOG);
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_hashLog, THOROUGH_WINDOW_LOG);
	}
	if (level == PART_CHUNK_ROWS) {
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_strategy, ZSTD_fast);
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_minMatch, ROWS_MATCH_BYTES);
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_hashLog, ROWS_HASH_LOG);
	}
	ZSTD_CCtx_setPledgedSrcSize(encoder, raw.len);
}

/* Bytes of pieces from all over the frame; 0: it cannot tell. */
static size_t try_level(ZSTD_CCtx *encoder, int level, struct slice raw)
{
	size_t bound = ZSTD_compressBound(TRIAL_PIECE_BYTES), sum = 0;
	size_t stride = (raw.len - TRIAL_PIECE_BYTES) / (TRIAL_PIECES - 1);
	char *packed = mem_new_array(char, bound);

	for (size_t i = 0; i < TRIAL_PIECES; i++) {
		size_t done;

		ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
		ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, level);
		done = ZSTD_compress2(encoder, packed, bound, raw.data + i * stride,
				      TRIAL_PIECE_BYTES);
		if (ZSTD_isError(done)) {
			sum = 0;
			break;
		}
		sum += done;
	}
	free(packed);
	return sum;
}

static int worthwhile_level(ZSTD_CCtx *encoder, int level, struct slice raw)
{
	size_t thorough, quick;

	if (level < THOROUGH_LEVEL || raw.len < TRIAL_FROM_BYTES)
		return level;
	quick = try_level(encoder, QUICK_LEVEL, raw);
	thorough = try_level(encoder, level, raw);
	if (quick && thorough && thorough * 100 > quick * (100 - TRIAL_GAIN_PERCENT))
		return QUICK_LEVEL;
	return level;
}

/* In steps: a large frame takes longer than who waits for the end has time. */
static int pack_frame(ZSTD_CCtx *encoder, struct slice raw, struct strbuf *out,
		      struct throttle *throttle, struct err *err)
{
	size_t bound = ZSTD_compressBound(raw.len), left = 1;
	ZSTD_outBuffer to = { strbuf_reserve(out, bound), bound, 0 };
	ZSTD_inBuffer from = { raw.data, 0, 0 };
	int rc = 0;

	while (!rc && left) {
		bool is_last = raw.len - from.pos <= STEP_BYTES;

		from.size = is_last ? raw.len : from.pos + STEP_BYTES;
		left = ZSTD_compressStream2(encoder, &to, &from,
					    is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return err_set(err, ERR_NO_MEMORY, "compress: %s", ZSTD_getErrorName(left));
		assert(!is_last || !left);
		left |= !is_last;
		if (left)
			rc = throttle_pause(throttle, 0, err);
	}
	out->len += to.pos;
	return rc;
}

/*
 * The rows of most producers are like dice: the matches that are found cost more than they save,
 * and take as long to unpack as all the rest. Those of others repeat from report to report.
 */
static int pack_rows(ZSTD_CCtx *encoder, struct slice raw, struct strbuf *out,
		     struct throttle *throttle, struct err *err)
{
	size_t begin = out->len, plain, matched;
	int rc;

	set_up(encoder, PART_CHUNK_ROWS, raw);
	rc = pack_frame(encoder, raw, out, throttle, err);
	plain = out->len - begin;
	set_up(encoder, QUICK_LEVEL, raw);
	if (!rc)
		rc = pack_frame(encoder, raw, out, throttle, err);
	if (rc)
		return rc;
	matched = out->len - begin - plain;
	if (matched * 100 < plain * (100 - TRIAL_GAIN_PERCENT)) {
		memmove(out->data + begin, out->data + begin + plain, matched);
		plain = matched;
	}
	out->len = begin + plain;
	return 0;
}

static int pack_frames(struct part_chunk_builder *builder, ZSTD_CCtx *encoder, int level,
		       struct throttle *throttle, struct err *err)
{
	size_t from = 0;
	int rc = 0;

	part_chunk_cut(builder, 1); /* the last frame */
	for (size_t i = 0; !rc && i < builder->cuts_count; i++) {
		struct slice raw = slice_from(builder->raw.data + from, builder->cuts[i] - from);

		if (level == PART_CHUNK_ROWS) {
			rc = pack_rows(encoder, raw, &builder->packed, throttle, err);
		} else {
			set_up(encoder, worthwhile_level(encoder, level, raw), raw);
			rc = pack_frame(encoder, raw, &builder->packed, throttle, err);
		}
		from = builder->cuts[i];
	}
	assert(rc || from == builder->raw.len);
	return rc;
}

int part_chunk_pack(struct part_chunk_builder *builder, ZSTD_CCtx *encoder, int level,
		    struct throttle *throttle, struct part_chunk *ret, struct slice *ret_stored,
		    struct err *err)
{
	struct slice raw = strbuf_slice(&builder->raw);
	int rc;

	if (raw.len > PART_CHUNK_RAW_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "a section has %zu bytes", raw.len);
	strbuf_clear(&builder->packed);
	rc = pack_frames(builder, encoder, level, throttle, err);
	if (rc)
		return rc;
	if (builder->packed.len >= raw.len ||
	    raw.len / PART_CHUNK_RATIO_MAX >= builder->packed.len) {
		strbuf_clear(&builder->packed);
		strbuf_add_slice(&builder->packed, raw);
	}
	*ret_stored = strbuf_slice(&builder->packed);
	*ret = (struct part_chunk){
		.stored = (uint32_t)ret_stored->len,
		.raw = (uint32_t)raw.len,
		.crc = hash_crc32c(0, ret_stored->data, ret_stored->len),
	};
	assert(part_chunk_is_plausible(ret));
	strbuf_clear(&builder->raw);
	builder->cuts_count = 0;
	return 0;
}

bool part_chunk_is_plausible(const struct part_chunk *chunk)
{
	return chunk->raw <= PART_CHUNK_RAW_BYTES_MAX && chunk->stored <= chunk->raw &&
	       (chunk->raw == chunk->stored || chunk->raw / PART_CHUNK_RATIO_MAX < chunk->stored);
}

int part_chunk_unpack(const struct part_chunk *chunk, ZSTD_DCtx *decoder, const char *stored,
		      char *to, struct err *err)
{
	size_t done;

	if (hash_crc32c(0, stored, chunk->stored) != chunk->crc)
		return err_set(err, ERR_CORRUPT, "checksum mismatch at offset %llu",
			       (unsigned long long)chunk->offset);
	if (chunk->raw == chunk->stored) {
		memcpy(to, stored, chunk->raw);
		return 0;
	}
	done = ZSTD_decompressDCtx(decoder, to, chunk->raw, stored, chunk->stored);
	if (ZSTD_isError(done) || done != chunk->raw)
		return err_set(err, ERR_CORRUPT, "not valid zstd data at offset %llu",
			       (unsigned long long)chunk->offset);
	return 0;
}
