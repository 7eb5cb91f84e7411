/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consent - whether the debuginfod servers that are offered may be asked. The answer is a file
 * beside the others, "yes" or "no" and the servers it is about:
 *
 *     <folder>/debuginfod-consent
 */
#ifndef FIRN_SERVER_DEBUGINFO_CONSENT_H
#define FIRN_SERVER_DEBUGINFO_CONSENT_H

#include "server/debuginfo/debuginfo_int.h"

/* Starts asking where servers are configured, or consent was given before. */
int consent_open(struct debuginfo *debuginfo, struct err *err);
void consent_close(struct debuginfo *debuginfo);

#endif
