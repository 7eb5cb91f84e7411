/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/batch/ledger.h"

#include <assert.h>

#include "base/hash.h"
#include "codec/archive/compress.h"

#define MAGIC "FIRNSTA"
#define VERSION 2
#define VERSION_OTHER_ROWS 1 /* identified rows otherwise: their baselines fit no report any more  \
			      */
#define HEADER_BYTES 32u
#define CHECKED_FROM 16u
#define ZSTD_LEVEL 1

void ledger_fini(struct ledger *ledger)
{
	dedupe_fini(&ledger->dedupe);
	baselines_fini(&ledger->baselines);
}

void ledger_check(const struct ledger *ledger)
{
	dedupe_check(&ledger->dedupe);
	baselines_check(&ledger->baselines);
}

void ledger_capture(struct ledger *ledger, int64_t now_ns, struct strbuf *out)
{
	ledger_check(ledger);
	dedupe_expire(&ledger->dedupe, now_ns);
	baselines_expire(&ledger->baselines, now_ns);
	dedupe_encode(&ledger->dedupe, out);
	baselines_encode(&ledger->baselines, out);
}

void ledger_encode_file(uint64_t generation, struct slice captured, struct strbuf *out)
{
	struct strbuf rest = { 0 };

	assert(captured.len <= LEDGER_RAW_BYTES_MAX);
	strbuf_add_u64(&rest, generation);
	strbuf_add_u64(&rest, captured.len);
	compress_zstd(captured, ZSTD_LEVEL, &rest);
	strbuf_add(out, MAGIC, 8);
	strbuf_add_u32(out, VERSION);
	strbuf_add_u32(out, hash_crc32c(0, rest.data, rest.len));
	strbuf_add_slice(out, strbuf_slice(&rest));
	strbuf_free(&rest);
}

static int decode_raw(struct slice raw, struct ledger *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw);
	struct ledger ledger = { 0 };

	if (!dedupe_decode(&ledger.dedupe, &in) || !baselines_decode(&ledger.baselines, &in) ||
	    byte_reader_left(&in)) {
		ledger_fini(&ledger);
		return err_set(err, ERR_CORRUPT, "state: malformed near byte %zu of %zu",
			       raw.len - byte_reader_left(&in), raw.len);
	}
	ledger_check(&ledger);
	*ret = ledger;
	return 0;
}

int ledger_decode_file(struct slice bytes, uint64_t generation, struct ledger *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	bool magic = slice_equal(byte_reader_bytes(&in, 8), slice_from(MAGIC, 8));
	uint32_t version = byte_reader_u32(&in), crc = byte_reader_u32(&in);
	uint64_t of = byte_reader_u64(&in), raw_bytes = byte_reader_u64(&in);
	struct strbuf raw = { 0 };
	int rc;

	if (in.failed || !magic)
		return err_set(err, ERR_CORRUPT, "not a state file");
	if (version != VERSION && version != VERSION_OTHER_ROWS)
		return err_set(err, ERR_UNSUPPORTED, "state has version %u, newer than this firn",
			       version);
	if (hash_crc32c(0, bytes.data + CHECKED_FROM, bytes.len - CHECKED_FROM) != crc)
		return err_set(err, ERR_CORRUPT, "state: checksum mismatch");
	if (of != generation || raw_bytes > LEDGER_RAW_BYTES_MAX)
		return err_set(err, ERR_CORRUPT, "state is of generation %llu",
			       (unsigned long long)of);
	rc = compress_unzstd(slice_tail(bytes, HEADER_BYTES), raw_bytes, &raw, err);
	if (!rc && raw.len != raw_bytes)
		rc = err_set(err, ERR_CORRUPT, "state: length differs from the stated one");
	if (rc)
		rc = err_set(err, ERR_CORRUPT, "state: does not decompress");
	else
		rc = decode_raw(strbuf_slice(&raw), ret, err);
	if (!rc && version == VERSION_OTHER_ROWS)
		baselines_fini(&ret->baselines);
	strbuf_free(&raw);
	return rc;
}
