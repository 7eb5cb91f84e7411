/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop - a temporary directory with programs compiled from a small C++ source, for the tests
 * of the resolver. Programs come from whatever compilers the host has.
 */
#ifndef FIRN_TESTS_RESOLVE_WORKSHOP_H
#define FIRN_TESTS_RESOLVE_WORKSHOP_H

#include <stdbool.h>
#include <stddef.h>

struct workshop {
	char directory[64];
};

void workshop_open(struct workshop *workshop); /* with the source, "shapes.cc", in it */
void workshop_close(struct workshop *workshop);

/* Runs a shell command in the directory; whether it succeeded. */
bool workshop_run(const struct workshop *workshop, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The path of a file in the directory, in `into`. */
const char *workshop_path(const struct workshop *workshop, const char *name, char into[256]);

/*
 * What this test's workers are told to do (NULL: nothing); a worker gets to know by workshop_told,
 * "" when nothing was said. They have no environment: it is a file by the test's process id.
 */
void workshop_tell(const char *what);
const char *workshop_told(void);

#define WORKSHOP_ARG_NOTE 9 /* of a worker's arguments: why debug information is not to be read */

#endif
