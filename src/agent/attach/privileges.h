/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges - whether this process may sample this host, and what to do when not.
 *
 * Each check asks the host for the thing itself (a capability, a file, a system call), never for a
 * version.
 */
#ifndef FIRN_AGENT_ATTACH_PRIVILEGES_H
#define FIRN_AGENT_ATTACH_PRIVILEGES_H

#include "base/err.h"
#include "base/strbuf.h"

/* One line per lack, with its remedy. */
void privileges_missing(struct strbuf *out);

/* Adds to a failed start what is missing; returns -err->code, which becomes ERR_DENIED if so. */
int privileges_explain(struct err *err);

#endif
