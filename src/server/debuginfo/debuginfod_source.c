/* SPDX-License-Identifier: Apache-2.0 */
/* Source files from debuginfod servers. */

#include "codec/wire/sha256.h"
#include "server/debuginfo/debuginfod_int.h"
#include "server/debuginfo/source_tar.h"

static void source_name(struct slice build_id, struct slice path, struct strbuf *ret)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, build_id.data, build_id.len);
	sha256_add(&sha, " ", 1);
	sha256_add(&sha, path.data, path.len);
	sha256_finish(&sha, digest);
	strbuf_add_text(ret, DEBUGINFOD_SOURCE_PREFIX);
	for (size_t i = 0; i < sizeof(digest); i++)
		strbuf_addf(ret, "%02x", digest[i]);
}

static int take_source(void *context, struct slice bytes, struct err *err)
{
	(void)err;
	strbuf_add_slice(context, bytes);
	return 0;
}

/* Without "." and "..": a proxy before the server would take them for another part of its site. */
static void resolve_dots(struct slice path, struct strbuf *ret)
{
	while (path.len) {
		struct slice name = slice_cut(path, '/', &path);

		if (slice_is(name, "..")) {
			while (ret->len && ret->data[ret->len - 1] != '/')
				ret->len--;
			ret->len -= ret->len > 0;
		} else if (name.len && !slice_is(name, ".")) {
			strbuf_add_byte(ret, '/');
			strbuf_add_slice(ret, name);
		}
	}
}

/* 1, 0 when it does not have it, or a negative code. */
static int fetch_source(struct debuginfod *debuginfod, size_t index, struct slice build_id,
			struct slice path, int64_t until_ns, struct strbuf *out, struct err *err)
{
	const struct strbuf *server = &debuginfod->urls[index];
	struct strbuf url = { 0 }, resolved = { 0 };
	struct fetch fetch = { .tls = debuginfod->tls,
			       .deadline_at_ns = until_ns,
			       .body_bytes_max = SOURCE_FILE_BYTES_MAX,
			       .take = take_source,
			       .context = out,
			       .cancelled = &debuginfod->idle };
	int status = 0, rc = debuginfod_check_up(debuginfod, index, err);

	if (rc)
		return rc;

	strbuf_addf(&url, "%s/buildid/%.*s/source", strbuf_text(server), SLICE_FMT(build_id));
	resolve_dots(path, &resolved);
	fetch_add_path(&url, strbuf_slice(&resolved));
	strbuf_free(&resolved);
	fetch.url = strbuf_text(&url);
	strbuf_clear(out);
	rc = fetch_get(&fetch, &status, err);
	strbuf_free(&url);
	debuginfod_note_reached(debuginfod, index, rc, status);
	metric_add(rc		   ? &debuginfod_failed
		   : status == 200 ? &debuginfod_fetched
				   : &debuginfod_not_there,
		   1);
	if (rc)
		return rc;
	if (status == 200)
		return FOUND;
	return status == 404 ? 0
			     : err_set(err, ERR_UNAVAILABLE, "\"%s\" answers HTTP %d",
				       strbuf_text(server), status);
}

int debuginfod_source(struct debuginfod *debuginfod, struct slice build_id, struct slice path,
		      int64_t until_ns, struct strbuf *out, struct strbuf *why, struct err *err)
{
	struct strbuf name = { 0 }, none = { 0 };
	bool has_failed = false, is_miss;
	int rc = 0;

	(void)err;
	if (path.data[0] != '/') {
		strbuf_add_text(why, "; debuginfod needs a path that begins with /");
		return 0;
	}
	source_name(build_id, path, &name);
	strbuf_addf(&none, "%s" DEBUGINFOD_NONE_SUFFIX, strbuf_text(&name));
	is_miss = debuginfod_read_miss(debuginfod, strbuf_text(&none));
	if (debuginfod_read_source(debuginfod, strbuf_text(&name), out))
		rc = FOUND;
	for (size_t i = 0; !rc && !is_miss && i < debuginfod->urls_count; i++) {
		struct err one;

		if (atomic_load(&debuginfod->paused)) {
			has_failed = true;
			break;
		}
		rc = fetch_source(debuginfod, i, build_id, path,
				  debuginfod_share(debuginfod, i, until_ns), out, &one);
		if (rc == FOUND) {
			debuginfod_keep_source(debuginfod, strbuf_text(&name), strbuf_slice(out));
		} else if (rc) {
			has_failed = true;
			strbuf_addf(why, "; debuginfod: %s", one.message);
			rc = 0;
		}
	}
	if (!rc && !has_failed) {
		strbuf_add_text(why, "; no debuginfod server has it");
		if (!is_miss)
			debuginfod_write_miss(debuginfod, strbuf_text(&none));
	}
	strbuf_free(&name);
	strbuf_free(&none);
	return rc;
}
