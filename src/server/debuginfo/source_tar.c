/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/source_tar.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/archive/tar.h"
#include "codec/archive/unpack.h"

#define READ_BYTES ((size_t)256 * 1024)

/* One reading of an archive. */
struct reading {
	struct tar_reader tar;
	struct slice wanted; /* without its leading "/"; empty: all is only looked at */
	struct slice chosen; /* read the entry of this name, exactly */
	struct strbuf best;  /* name of the best entry so far */
	size_t best_len;     /* components' bytes that agree */
	struct strbuf *out;
};

struct slice source_tar_path(struct slice path)
{
	while (path.len && (path.data[0] == '/' || slice_starts_with(path, SLICE_LITERAL("./"))))
		path = slice_tail(path, path.data[0] == '/' ? 1 : 2);
	return path;
}

static void compare(struct reading *reading, struct slice name)
{
	size_t len = 0;

	if (slice_ends_in_path(reading->wanted, name))
		len = name.len;
	else if (slice_ends_in_path(name, reading->wanted))
		len = reading->wanted.len;
	if (len <= reading->best_len)
		return;
	reading->best_len = len;
	strbuf_clear(&reading->best);
	strbuf_add_slice(&reading->best, name);
}

static int see_entry(void *context, const struct tar_entry *entry, bool *ret_wanted,
		     struct err *err)
{
	struct reading *reading = context;
	struct slice name = source_tar_path(entry->name);

	if (!entry->is_file)
		return 0;
	if (reading->chosen.len)
		*ret_wanted = slice_equal(name, reading->chosen);
	else if (reading->wanted.len)
		*ret_wanted = slice_equal(name, reading->wanted);
	if (*ret_wanted && entry->bytes > SOURCE_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the file has %llu bytes, more than %zu",
			       (unsigned long long)entry->bytes, SOURCE_FILE_BYTES_MAX);
	if (!*ret_wanted && reading->wanted.len && !reading->chosen.len)
		compare(reading, name);
	return 0;
}

static int see_content(void *context, struct slice bytes, uint64_t left, struct err *err)
{
	struct reading *reading = context;

	(void)err;
	strbuf_add_slice(reading->out, bytes);
	return left ? 0 : SOURCE_TAR_FOUND;
}

static int see_plain(void *context, struct slice plain, struct err *err)
{
	struct reading *reading = context;

	return tar_add(&reading->tar, plain, err);
}

static int read_archive(int fd, struct reading *reading, struct err *err)
{
	const struct tar_sink sink = { see_entry, see_content, reading };
	struct unpack *unpack = unpack_new(SOURCE_ARCHIVE_BYTES_MAX, see_plain, reading);
	char *bytes = mem_calloc(READ_BYTES, 1);
	ssize_t got = 1;
	off_t at = 0;
	int rc = 0;

	tar_begin(&reading->tar, &sink);
	while (!rc && got > 0) {
		got = pread(fd, bytes, READ_BYTES, at);
		if (got < 0)
			rc = err_set_errno(err, errno, "read the archive");
		else if (got > 0)
			rc = unpack_add(unpack, slice_from(bytes, (size_t)got), err);
		at += got;
	}
	if (!rc)
		rc = unpack_end(unpack, err);
	if (!rc)
		rc = tar_end(&reading->tar, err);
	tar_free(&reading->tar);
	unpack_free(unpack);
	free(bytes);
	return rc;
}

int source_tar_check(int fd, struct err *err)
{
	struct reading reading = { .wanted = { 0 } };

	return read_archive(fd, &reading, err);
}

int source_tar_find(int fd, struct slice path, struct strbuf *out, struct err *err)
{
	struct reading reading = { .wanted = source_tar_path(path), .out = out };
	int rc = read_archive(fd, &reading, err);

	if (!rc && reading.best_len) {
		reading.chosen = strbuf_slice(&reading.best);
		rc = read_archive(fd, &reading, err);
	}
	strbuf_free(&reading.best);
	return rc;
}
