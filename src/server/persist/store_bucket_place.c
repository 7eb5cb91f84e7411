/* SPDX-License-Identifier: Apache-2.0 */
/* The file BUCKET: lines of NAME=VALUE, replaced as a whole. */
#include <stdio.h>

#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define FILE_BYTES_MAX 8192
#define FIRST_LINE "firn-bucket 1"

static void copy(char *to, size_t bytes, struct slice value)
{
	snprintf(to, bytes, "%.*s", SLICE_FMT(value));
}

/* True if the value is well-formed; names of a later firn are passed over. */
static bool take_line(struct bucket_place *place, struct slice name, struct slice value)
{
	uint64_t number = 0;

	if (slice_is(name, "url"))
		copy(place->url, sizeof(place->url), value);
	else if (slice_is(name, "store") && bucket_is_id(value))
		copy(place->store, sizeof(place->store), value);
	else if (slice_is(name, "writer") && bucket_is_id(value))
		copy(place->writer, sizeof(place->writer), value);
	else if (slice_is(name, "manifest"))
		return slice_parse_u64(value, &place->manifest);
	else if (slice_is(name, "generation"))
		return slice_parse_u64(value, &place->generation);
	else if (slice_is(name, "saved_ns")) {
		if (!slice_parse_u64(value, &number) || number > INT64_MAX)
			return false;
		place->saved_ns = (int64_t)number;
	}
	return true;
}

static int parse(struct slice text, struct bucket_place *ret, struct err *err)
{
	bool ok = slice_is(slice_cut(text, '\n', &text), FIRST_LINE);

	while (ok && text.len) {
		struct slice value, line = slice_cut(text, '\n', &text);
		struct slice name = slice_cut(line, '=', &value);

		ok = take_line(ret, name, value);
	}
	if (ok && ret->store[0] && ret->writer[0])
		return 0;
	return err_set(err, ERR_CORRUPT,
		       "the file BUCKET is damaged; remove it, and the store "
		       "is uploaded to the bucket again");
}

int bucket_place_read(struct bucket_place *ret, const char *url, const struct vfs *vfs,
		      const char *dir, bool *ret_is_known, struct err *err)
{
	struct layout_path path = layout_join(dir, LAYOUT_BUCKET);
	struct strbuf text = { 0 };
	int rc = vfs_read_whole(vfs, path.text, FILE_BYTES_MAX, &text, err);

	*ret = (struct bucket_place){ 0 };
	if (!rc)
		rc = parse(strbuf_slice(&text), ret, err);
	else if (rc == -ERR_NOT_FOUND)
		rc = 0;
	strbuf_free(&text);
	if (rc)
		return rc;
	*ret_is_known = ret->store[0] && !strcmp(ret->url, url);
	if (!*ret_is_known) {
		*ret = (struct bucket_place){ 0 };
		copy(ret->url, sizeof(ret->url), slice_of(url));
		bucket_make_id(ret->store);
		bucket_make_id(ret->writer);
	}
	return 0;
}

int bucket_place_write(const struct bucket_place *place, const struct vfs *vfs, const char *dir,
		       struct err *err)
{
	struct layout_path path = layout_join(dir, LAYOUT_BUCKET);
	struct strbuf text = { 0 };
	int rc;

	strbuf_addf(&text,
		    FIRST_LINE "\nurl=%s\nstore=%s\nwriter=%s\nmanifest=%llu\ngeneration=%llu\n"
			       "saved_ns=%lld\n",
		    place->url, place->store, place->writer, (unsigned long long)place->manifest,
		    (unsigned long long)place->generation, (long long)place->saved_ns);
	rc = vfs_replace(vfs, dir, path.text, strbuf_slice(&text), err);
	strbuf_free(&text);
	return rc;
}
