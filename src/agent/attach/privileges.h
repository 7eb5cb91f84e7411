/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges - the host_checks without which there are no samples: what is missing, and the
 * remedies.
 */
#ifndef FIRN_AGENT_ATTACH_PRIVILEGES_H
#define FIRN_AGENT_ATTACH_PRIVILEGES_H

#include "base/err.h"
#include "base/strbuf.h"

/* One line per lack, with its remedy; `command` is what to run then, NULL = `firn up`. */
void privileges_missing(const char *command, struct strbuf *out);

/*
 * Appends what is missing to the error of a failed start; then the code becomes ERR_DENIED. Returns
 * -err->code.
 */
int privileges_explain(const char *command, struct err *err);

#endif
