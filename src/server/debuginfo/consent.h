/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consent - whether the user allows requests to the offered debuginfod servers. A file has the
 * answer, "yes" or "no", and the servers that it is about:
 *
 *     <folder>/debuginfod-consent
 */
#ifndef FIRN_SERVER_DEBUGINFO_CONSENT_H
#define FIRN_SERVER_DEBUGINFO_CONSENT_H

#include "server/debuginfo/debuginfo_int.h"

/* Starts debuginfod if servers are configured, or consent was given before. */
int consent_open(struct debuginfo *debuginfo, struct err *err);
void consent_close(struct debuginfo *debuginfo);

#endif
