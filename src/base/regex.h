/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex - RE2 behind C: linear time, no back-references. Thread-safe after compiling.
 * Implemented in regex.cc, because RE2 is C++.
 */
#ifndef FIRN_BASE_REGEX_H
#define FIRN_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct regex;

#define REGEX_PATTERN_BYTES_MAX 4096

/*
 * Compiles `pattern`; dot matches newline. Returns NULL and writes a message to `error` on a
 * pattern that RE2 refuses, that is too long, or that contains \C.
 */
struct regex *regex_new(const char *pattern, size_t pattern_len, bool ignore_case, char *error,
			size_t error_bytes);
void regex_free(struct regex *regex);

bool regex_matches_whole(const struct regex *regex, const char *text, size_t len); /* anchored */
/*
 * The most that a match of `len` bytes can cost, in steps of a few nanoseconds. Patterns whose
 * states do not fit into memory cost the whole program for each byte.
 */
uint32_t regex_steps(const struct regex *regex, size_t len);
bool regex_matches_part(const struct regex *regex, const char *text, size_t len); /* search */

/* The text that a group matched; start NULL: the group took no part. */
struct regex_group {
	const char *start;
	size_t len;
};

/*
 * Fills `count` groups (0 is the whole match): if the whole text matches; for regex_find, of the
 * first match from `from` on. Groups that the pattern lacks are NULL.
 */
#define REGEX_GROUPS_MAX 64
bool regex_capture_whole(const struct regex *regex, const char *text, size_t len,
			 struct regex_group *groups, size_t count);
bool regex_find(const struct regex *regex, const char *text, size_t len, size_t from,
		struct regex_group *groups, size_t count);

/* The number of the group (?P<name>...), or -1. */
int regex_group_named(const struct regex *regex, const char *name, size_t len);

#ifdef __cplusplus
}
#endif

#endif
