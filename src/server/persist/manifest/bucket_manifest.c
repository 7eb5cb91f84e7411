/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/manifest/bucket_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "server/persist/disk/byte_reader.h"

#define MAGIC "FIRNBKT\0"
#define VERSION 1

static void put_text(struct strbuf *out, const char *text)
{
	strbuf_add_varint(out, strlen(text));
	strbuf_add_text(out, text);
}

void bucket_manifest_encode(const struct bucket_manifest *manifest, struct strbuf *out)
{
	struct strbuf payload = { 0 };

	strbuf_add_varint(&payload, manifest->number);
	strbuf_add_zigzag(&payload, manifest->at_ns);
	strbuf_add_zigzag(&payload, manifest->covered_ns);
	put_text(&payload, manifest->writer);
	put_text(&payload, manifest->session);
	strbuf_add_varint(&payload, manifest->state_hash);
	manifest_encode(&manifest->state, &payload);
	strbuf_add(out, MAGIC, 8);
	strbuf_add_u32(out, VERSION);
	strbuf_add_u32(out, (uint32_t)payload.len);
	strbuf_add_u32(out, hash_crc32c(0, payload.data, payload.len));
	strbuf_add_slice(out, strbuf_slice(&payload));
	strbuf_free(&payload);
}

static bool take_id(struct byte_reader *in, char ret[static BUCKET_ID_BYTES])
{
	uint64_t len = byte_reader_varint(in);
	struct slice text = byte_reader_bytes(in, len);

	if (in->failed || !bucket_is_id(text))
		return false;
	snprintf(ret, BUCKET_ID_BYTES, "%.*s", SLICE_FMT(text));
	return true;
}

static int take_payload(struct slice bytes, struct slice *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	bool magic = slice_equal(byte_reader_bytes(&in, 8), slice_from(MAGIC, 8));
	uint32_t version = byte_reader_u32(&in), len = byte_reader_u32(&in);
	uint32_t crc = byte_reader_u32(&in);

	if (in.failed || !magic)
		return err_set(err, ERR_CORRUPT, "no manifest of a bucket");
	if (version != VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the bucket has format version %u, and this firn reads %d", version,
			       VERSION);
	*ret = byte_reader_bytes(&in, len);
	if (in.failed || byte_reader_left(&in) || hash_crc32c(0, ret->data, ret->len) != crc)
		return err_set(err, ERR_CORRUPT, "a manifest of a bucket is damaged");
	return 0;
}

int bucket_manifest_decode(struct slice bytes, struct bucket_manifest *ret, struct err *err)
{
	struct bucket_manifest made = { 0 };
	struct byte_reader in;
	struct slice payload = { 0 };
	int rc = take_payload(bytes, &payload, err);

	if (rc)
		return rc;
	in = byte_reader_of(payload);
	made.number = byte_reader_varint(&in);
	made.at_ns = byte_reader_zigzag(&in);
	made.covered_ns = byte_reader_zigzag(&in);
	if (!take_id(&in, made.writer) || !take_id(&in, made.session))
		return err_set(err, ERR_CORRUPT,
			       "a manifest in the bucket does not name its writer");
	made.state_hash = byte_reader_varint(&in);
	if (in.failed)
		return err_set(err, ERR_CORRUPT, "a manifest of a bucket is cut");
	rc = manifest_decode(byte_reader_bytes(&in, byte_reader_left(&in)), &made.state, err);
	if (rc)
		return err_wrap(err, "a manifest of a bucket"), rc;
	*ret = made;
	return 0;
}

struct bucket_key bucket_manifest_key(const char *store, uint64_t number)
{
	struct bucket_key key;

	snprintf(key.text, sizeof(key.text), "%s/manifest/%012llu", store,
		 (unsigned long long)number);
	return key;
}

struct bucket_key bucket_part_key(const char *store, const struct part_info *part)
{
	struct bucket_key key;

	snprintf(key.text, sizeof(key.text), "%s/part/%012llu-%016llx%016llx.firn", store,
		 (unsigned long long)part->number, (unsigned long long)part->hash.high,
		 (unsigned long long)part->hash.low);
	return key;
}

struct bucket_key bucket_state_key(const char *store, uint64_t generation, uint64_t hash)
{
	struct bucket_key key;

	snprintf(key.text, sizeof(key.text), "%s/state/%012llu-%016llx", store,
		 (unsigned long long)generation, (unsigned long long)hash);
	return key;
}

uint64_t bucket_manifest_number(struct slice key)
{
	static const char folder[] = "/manifest/";
	const char *at = memmem(key.data, key.len, folder, strlen(folder));
	uint64_t number = 0;

	if (!at ||
	    !slice_parse_u64(slice_tail(key, (size_t)(at - key.data) + strlen(folder)), &number))
		return 0;
	return number;
}

void bucket_make_id(char ret[static BUCKET_ID_BYTES])
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* cannot fail for so few bytes */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

bool bucket_is_id(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (slice_hex_digit(text.data[i]) < 0)
			return false;
	return text.len == BUCKET_ID_BYTES - 1;
}

static int see_manifest(void *context, const struct bucket_entry *entry, struct err *err)
{
	uint64_t *newest = context, number = bucket_manifest_number(entry->key);

	(void)err;
	if (number > *newest)
		*newest = number;
	return 0;
}

int bucket_manifest_newest(struct bucket *bucket, const char *store, uint64_t after, uint64_t *ret,
			   struct err *err)
{
	struct bucket_key from = bucket_manifest_key(store, after), prefix;
	uint64_t newest = 0;
	int rc;

	snprintf(prefix.text, sizeof(prefix.text), "%s/manifest/", store);
	rc = bucket->list(bucket, prefix.text, after ? from.text : NULL, false, see_manifest,
			  &newest, err);
	if (!rc)
		*ret = newest;
	return rc;
}

int bucket_manifest_get(struct bucket *bucket, const char *store, uint64_t number,
			struct bucket_manifest *ret, struct err *err)
{
	struct bucket_key key = bucket_manifest_key(store, number);
	struct strbuf bytes = { 0 };
	int rc = bucket->get(bucket, key.text, BUCKET_MANIFEST_BYTES_MAX, &bytes, err);

	if (!rc) {
		rc = bucket_manifest_decode(strbuf_slice(&bytes), ret, err);
		if (!rc && ret->number != number) {
			manifest_state_free(&ret->state);
			rc = err_set(err, ERR_CORRUPT, "a manifest of a bucket has another number");
		}
		if (rc)
			err_wrap(err, "object \"%s\"", key.text);
	}
	strbuf_free(&bytes);
	return rc;
}
