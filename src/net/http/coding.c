/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/coding.h"

#include <strings.h>

#include "codec/archive/compress.h"
#include "codec/archive/frames.h"

#define PAYS_BYTES_MIN 1024u

typedef int decode_f(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);

static const struct {
	const char *name;
	decode_f *decode;
} codings[] = {
	{ "gzip", compress_gunzip },
	{ "x-gzip", compress_gunzip },
	{ "deflate", compress_inflate },
	{ "zlib", compress_inflate }, /* as OpenTelemetry's Collector calls it */
	{ "zstd", compress_unzstd },
	{ "snappy", frames_unsnappy },
	{ "x-snappy-framed", frames_unsnappy },
	{ "lz4", frames_unlz4 },
};

static bool is_word(struct slice s, const char *word)
{
	return s.len == strlen(word) && !strncasecmp(s.data, word, s.len);
}

bool coding_is_identity(struct slice name)
{
	return !name.len || is_word(name, "identity");
}

static decode_f *find(struct slice name)
{
	for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++)
		if (is_word(name, codings[i].name))
			return codings[i].decode;
	return NULL;
}

bool coding_is_known(struct slice name)
{
	return coding_is_identity(name) || find(name);
}

int coding_decode(struct slice name, struct slice bytes, size_t max_bytes, struct strbuf *out,
		  struct err *err)
{
	decode_f *decode = find(name);

	if (!decode)
		return err_set(err, ERR_UNSUPPORTED, "content coding \"%.*s\" (known: %s)",
			       SLICE_FMT(name), CODING_NAMES);
	return decode(bytes, max_bytes, out, err);
}

/* "q=0", "q=0.0", ...: a weight of nothing (RFC 9110 section 12.4.2). */
static bool is_refused(struct slice parameters)
{
	parameters = slice_trim(parameters);
	if (parameters.len < 3 || strncasecmp(parameters.data, "q=0", 3) != 0)
		return false;
	for (size_t i = 3; i < parameters.len; i++)
		if (parameters.data[i] != '0' && parameters.data[i] != '.')
			return false;
	return true;
}

bool coding_accepts_gzip(struct slice accept_encoding)
{
	bool any = false;

	while (accept_encoding.len) {
		struct slice item = slice_cut(accept_encoding, ',', &accept_encoding);
		struct slice parameters;
		struct slice name = slice_trim(slice_cut(item, ';', &parameters));

		if (is_word(name, "gzip") || is_word(name, "x-gzip"))
			return !is_refused(parameters);
		if (is_word(name, "*"))
			any = !is_refused(parameters);
	}
	return any;
}

bool coding_pays(const char *content_type, size_t bytes)
{
	/* octet-stream: flame graphs, two thirds of which are saved; what is packed says so itself.
	 */
	static const char *const types[] = { "text/",
					     "application/json",
					     "application/javascript",
					     "application/manifest+json",
					     "application/octet-stream",
					     "image/svg+xml" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (bytes > PAYS_BYTES_MIN && !strncmp(content_type, types[i], strlen(types[i])))
			return true;
	return false;
}
