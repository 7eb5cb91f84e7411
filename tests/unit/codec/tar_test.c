/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar and unpack: archives of GNU tar 1.34, bsdtar's pax layout and Python's tarfile, in several
 * compressions, in pieces of any size; what is cut or damaged; archives made here, read by tar.
 * The archives are the fuzz target's seeds: `src` with main.c, empty.h, a long name, a link.
 */
#include "codec/archive/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/archive/unpack.h"

struct listing {
	struct strbuf text; /* "name size:content-bytes first-byte\n" of files */
	struct tar_reader tar;
	uint64_t got;
};

static int list_entry(void *context, const struct tar_entry *entry, bool *ret_wanted,
		      struct err *err)
{
	struct listing *listing = context;

	(void)err;
	if (!entry->is_file)
		return 0;
	strbuf_addf(&listing->text, "%.*s %llu", SLICE_FMT(entry->name),
		    (unsigned long long)entry->bytes);
	*ret_wanted = true;
	listing->got = 0;
	return 0;
}

static int list_content(void *context, struct slice bytes, uint64_t left, struct err *err)
{
	struct listing *listing = context;

	(void)err;
	if (bytes.len && !listing->got)
		strbuf_addf(&listing->text, ":%c", bytes.data[0]);
	listing->got += bytes.len;
	if (!left)
		strbuf_addf(&listing->text, ":%llu\n", (unsigned long long)listing->got);
	return 0;
}

static int add_plain(void *context, struct slice plain, struct err *err)
{
	struct listing *listing = context;

	return tar_add(&listing->tar, plain, err);
}

static int list(struct slice bytes, size_t piece_bytes, uint64_t max, struct strbuf *ret,
		struct err *err)
{
	struct listing listing = { .got = 0 };
	const struct tar_sink sink = { list_entry, list_content, &listing };
	struct unpack *unpack = unpack_new(max, add_plain, &listing);
	int rc = 0;

	tar_begin(&listing.tar, &sink);
	while (!rc && bytes.len) {
		struct slice piece = bytes;

		if (piece.len > piece_bytes)
			piece.len = piece_bytes;
		rc = unpack_add(unpack, piece, err);
		bytes = slice_tail(bytes, piece.len);
	}
	if (!rc)
		rc = unpack_end(unpack, err);
	if (!rc)
		rc = tar_end(&listing.tar, err);
	tar_free(&listing.tar);
	unpack_free(unpack);
	strbuf_free(ret);
	*ret = listing.text;
	return rc;
}

static struct strbuf read_seed(const char *name)
{
	struct strbuf bytes = { 0 };
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/tar/%s", getenv("FIRN_TESTS"), name);
	file = fopen(path, "r");
	assert_non_null(file);
	fgetc(file); /* the fuzz target's own byte */
	bytes.len = fread(strbuf_reserve(&bytes, 1 << 16), 1, 1 << 16, file);
	fclose(file);
	return bytes;
}

static const char *const seeds[] = {
	"g_tar", "p_tar", "py_tar", "g_tar_gz", "p_tar_zst", "g_tar_xz"
};

static void archives_of_other_tools_are_read_in_pieces_of_any_size(void **state)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 100000 };
	struct strbuf text = { 0 };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
		struct strbuf bytes = read_seed(seeds[i]);

		for (size_t j = 0; j < sizeof(pieces) / sizeof(*pieces); j++) {
			int rc = list(strbuf_slice(&bytes), pieces[j], 1 << 20, &text, &err);

			if (rc)
				fail_msg("%s: %s", seeds[i], err.message);
			assert_non_null(strstr(text.data, "src/main.c 29:i:29\n"));
			assert_non_null(strstr(text.data, "src/empty.h 0:0\n"));
			assert_non_null(strstr(text.data, "src/long.c 1500:z:1500\n"));
			assert_non_null(strstr(text.data, "/aaaaaaaa"));
			assert_non_null(strstr(text.data, "aaaaaaaa.c 2:x:2\n"));
			assert_null(strstr(text.data, "link.c"));
		}
		strbuf_free(&bytes);
	}
	strbuf_free(&text);
}

static void what_is_cut_or_too_large_is_refused(void **state)
{
	struct strbuf text = { 0 };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
		struct strbuf bytes = read_seed(seeds[i]);
		struct slice half = slice_from(bytes.data, bytes.len / 2 + 100);

		assert_int_equal(list(half, 100000, 1 << 20, &text, &err), -ERR_INVALID);
		assert_int_equal(list(strbuf_slice(&bytes), 100000, 4096, &text, &err), -ERR_LIMIT);
		strbuf_free(&bytes);
	}
	assert_int_equal(list(SLICE_LITERAL("just text"), 9, 1000, &text, &err), -ERR_INVALID);
	assert_int_equal(list((struct slice){ 0 }, 9, 1000, &text, &err), -ERR_INVALID);
	strbuf_free(&text);
}

static void archives_made_here_are_read_by_tar(void **state)
{
	static const char zeros[2 * TAR_BLOCK_BYTES];
	char path[] = "/tmp/firn-tar-XXXXXX", command[64], line[512];
	struct strbuf archive = { 0 }, text = { 0 };
	char name[300];
	struct err err;
	FILE *file;
	int fd = mkstemp(path);

	(void)state;
	memset(name, 'n', sizeof(name));
	tar_put_header(&archive, SLICE_LITERAL("home/a b.c"), 3);
	strbuf_add_text(&archive, "abc");
	strbuf_add(&archive, zeros, TAR_BLOCK_BYTES - 3);
	tar_put_header(&archive, slice_from(name, sizeof(name)), 0);
	strbuf_add(&archive, zeros, sizeof(zeros));
	assert_int_equal(write(fd, archive.data, archive.len), archive.len);
	close(fd);
	snprintf(command, sizeof(command), "tar -tf %s", path);
	file = popen(command, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, "home/a b.c\n");
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(strlen(line), sizeof(name) + 1);
	assert_int_equal(pclose(file), 0);
	assert_int_equal(list(strbuf_slice(&archive), 999, 1 << 20, &text, &err), 0);
	assert_int_equal(strncmp(text.data, "home/a b.c 3:a:3\nnnn", 20), 0);
	unlink(path);
	strbuf_free(&archive);
	strbuf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(archives_of_other_tools_are_read_in_pieces_of_any_size),
		cmocka_unit_test(what_is_cut_or_too_large_is_refused),
		cmocka_unit_test(archives_made_here_are_read_by_tar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
