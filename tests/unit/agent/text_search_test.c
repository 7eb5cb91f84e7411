/* SPDX-License-Identifier: Apache-2.0 */
/* Text is found wherever the pieces of a file end, counted once, and only in the part asked for. */
#include "agent/runtime/text_search.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT "version 1.2.3"
#define OFFSET 100

struct found {
	size_t whole, own, pieces;
	size_t stop_after; /* pieces; 0 = never */
};

static bool look(void *context, const char *piece, size_t len, size_t own)
{
	struct found *found = context;
	const char *at = piece;

	assert_int_equal(piece[len], 0);
	assert_true(own <= len);
	while ((at = memmem(at, (size_t)(piece + len - at), TEXT, strlen(TEXT)))) {
		found->whole++;
		found->own += (size_t)(at - piece) < own;
		at++;
	}
	return ++found->pieces == found->stop_after;
}

/* A file of `bytes` behind OFFSET, with the text at `at` of them. */
static int file_with(size_t bytes, size_t at)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(OFFSET + bytes)), 0);
	assert_int_equal(pwrite(fd, TEXT, strlen(TEXT), (off_t)(OFFSET + at)), strlen(TEXT));
	return fd;
}

static struct found search(size_t bytes, size_t at, size_t asked)
{
	struct found found = { 0 };
	int fd = file_with(bytes, at);

	assert_false(text_search(fd, OFFSET, asked, look, &found));
	close(fd);
	return found;
}

static void text_across_pieces_is_whole_in_one(void **state)
{
	const size_t piece = TEXT_SEARCH_PIECE_BYTES, bytes = 3 * piece;

	(void)state;
	for (size_t at = piece - strlen(TEXT) - 1; at <= piece + 1; at++)
		assert_int_equal(search(bytes, at, bytes).own, 1);
	assert_int_equal(search(bytes, piece, bytes).whole, 2);
	assert_int_equal(search(bytes, bytes - strlen(TEXT), bytes).own, 1);
	assert_int_equal(search(bytes, 0, bytes).own, 1);
}

static void what_is_behind_the_part_is_not_looked_at(void **state)
{
	(void)state;
	assert_int_equal(search(1000, 500, 500 + strlen(TEXT)).whole, 1);
	assert_int_equal(search(1000, 500, 500 + strlen(TEXT) - 1).whole, 0);
	assert_int_equal(search(1000, 500, 0).pieces, 0);
}

/* A file may be shorter than its headers say. */
static void a_piece_that_is_not_there_is_the_end(void **state)
{
	(void)state;
	assert_int_equal(search(1000, 500, 2000).pieces, 0);
	assert_int_equal(
		search(2 * TEXT_SEARCH_PIECE_BYTES, 500, 3 * TEXT_SEARCH_PIECE_BYTES).pieces, 1);
}

static void it_ends_where_nothing_more_is_looked_for(void **state)
{
	struct found found = { .stop_after = 2 };
	const size_t bytes = 4 * TEXT_SEARCH_PIECE_BYTES;
	int fd = file_with(bytes, 0);

	(void)state;
	assert_true(text_search(fd, OFFSET, bytes, look, &found));
	assert_int_equal(found.pieces, 2);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_across_pieces_is_whole_in_one),
		cmocka_unit_test(what_is_behind_the_part_is_not_looked_at),
		cmocka_unit_test(a_piece_that_is_not_there_is_the_end),
		cmocka_unit_test(it_ends_where_nothing_more_is_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
