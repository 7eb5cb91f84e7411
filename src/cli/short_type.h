/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_type - completes profile types on the command line: the start of a type is enough, such as
 * `on_cpu{comm="nginx"}`, or none if the server has a single one, such as `{comm="nginx"}`.
 */
#ifndef FIRN_CLI_SHORT_TYPE_H
#define FIRN_CLI_SHORT_TYPE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

/* True if the selector names all parts of its type. */
bool short_type_is_whole(const char *selector);

/*
 * *ret is the selector with its whole type: of `types`, the body of /api/v1/types, the one that
 * begins with what is given and a colon. Free *ret. ERR_INVALID: no type begins so, or several do;
 * the message names them.
 */
MUST_USE int short_type_find(struct slice types, const char *selector, char **ret, struct err *err);

#endif
