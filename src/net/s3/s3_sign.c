/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/s3_sign.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "base/clock.h"

#define DIGEST_BYTES 32
#define ALGORITHM "AWS4-HMAC-SHA256"

static void to_hex(const unsigned char digest[DIGEST_BYTES], char ret[S3_SIGN_HASH_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		ret[2 * i] = digits[digest[i] >> 4];
		ret[2 * i + 1] = digits[digest[i] & 15];
	}
	ret[2 * DIGEST_BYTES] = '\0';
}

void s3_sign_hash(struct slice bytes, char ret[S3_SIGN_HASH_BYTES])
{
	unsigned char digest[DIGEST_BYTES];
	int ok = EVP_Digest(bytes.data ? bytes.data : "", bytes.len, digest, NULL, EVP_sha256(),
			    NULL);

	assert(ok == 1);
	(void)ok;
	to_hex(digest, ret);
}

void s3_sign_time(int64_t at_ns, char ret[S3_SIGN_TIME_BYTES])
{
	time_t seconds = (time_t)(at_ns / CLOCK_NS_PER_S);
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(ret, S3_SIGN_TIME_BYTES, "%Y%m%dT%H%M%SZ", &parts);
}

static void hmac(const void *key, size_t key_bytes, struct slice bytes,
		 unsigned char ret[DIGEST_BYTES])
{
	unsigned int len = DIGEST_BYTES;
	const void *done = HMAC(EVP_sha256(), key, (int)key_bytes,
				(const unsigned char *)bytes.data, bytes.len, ret, &len);

	assert(done && len == DIGEST_BYTES);
	(void)done;
}

static void signing_key(const struct s3_scope *scope, struct slice day,
			unsigned char ret[DIGEST_BYTES])
{
	struct strbuf first = { 0 };

	strbuf_add_text(&first, "AWS4");
	strbuf_add_slice(&first, scope->secret_key);
	hmac(first.data, first.len, day, ret);
	hmac(ret, DIGEST_BYTES, slice_of(scope->region), ret);
	hmac(ret, DIGEST_BYTES, slice_of(scope->service), ret);
	hmac(ret, DIGEST_BYTES, SLICE_LITERAL("aws4_request"), ret);
	strbuf_wipe(&first);
}

/* Blanks around it go, and of several within it one stays. */
static void add_trimmed(struct slice value, struct strbuf *out)
{
	bool was_blank = false;

	value = slice_trim(value);
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] != ' ' || !was_blank)
			strbuf_add_byte(out, value.data[i]);
		was_blank = value.data[i] == ' ';
	}
}

static void add_names(const struct s3_unsigned *request, struct strbuf *out)
{
	for (size_t i = 0; i < request->headers_count; i++)
		strbuf_addf(out, "%s%s", i ? ";" : "", request->headers[i].name);
}

static void canonical_request(const struct s3_unsigned *request, struct strbuf *out)
{
	assert(request->headers_count <= S3_SIGN_HEADERS_MAX);
	strbuf_addf(out, "%s\n%.*s\n%.*s\n", request->method, SLICE_FMT(request->path),
		    SLICE_FMT(request->query));
	for (size_t i = 0; i < request->headers_count; i++) {
		assert(!i || strcmp(request->headers[i - 1].name, request->headers[i].name) < 0);
		strbuf_addf(out, "%s:", request->headers[i].name);
		add_trimmed(request->headers[i].value, out);
		strbuf_add_byte(out, '\n');
	}
	strbuf_add_byte(out, '\n');
	add_names(request, out);
	strbuf_addf(out, "\n%s", request->payload_hash);
}

void s3_sign(const struct s3_scope *scope, const struct s3_unsigned *request, const char *time,
	     struct strbuf *out)
{
	struct slice day = slice_from(time, 8);
	struct strbuf text = { 0 }, whole = { 0 };
	unsigned char key[DIGEST_BYTES], digest[DIGEST_BYTES];
	char hex[S3_SIGN_HASH_BYTES];

	canonical_request(request, &text);
	s3_sign_hash(strbuf_slice(&text), hex);
	strbuf_addf(&whole, ALGORITHM "\n%s\n%.8s/%s/%s/aws4_request\n%s", time, time,
		    scope->region, scope->service, hex);
	signing_key(scope, day, key);
	hmac(key, sizeof(key), strbuf_slice(&whole), digest);
	to_hex(digest, hex);
	strbuf_addf(out, ALGORITHM " Credential=%.*s/%.8s/%s/%s/aws4_request, SignedHeaders=",
		    SLICE_FMT(scope->access_key), time, scope->region, scope->service);
	add_names(request, out);
	strbuf_addf(out, ", Signature=%s", hex);
	strbuf_free(&text);
	strbuf_free(&whole);
	OPENSSL_cleanse(key, sizeof(key));
}
