/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges - whether this process may sample this host at all, and what to do when not: those of
 * the host_checks without which there is no sample.
 */
#ifndef FIRN_AGENT_ATTACH_PRIVILEGES_H
#define FIRN_AGENT_ATTACH_PRIVILEGES_H

#include "base/err.h"
#include "base/strbuf.h"

/* One line per lack, with its remedy; `command` is what to run then, NULL = `firn up`. */
void privileges_missing(const char *command, struct strbuf *out);

/* Adds to a failed start what is missing; returns -err->code, which becomes ERR_DENIED if so. */
int privileges_explain(const char *command, struct err *err);

#endif
