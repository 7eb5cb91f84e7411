/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_handles - what an agent opens before it gives up privileges: the helper processes that open
 * files for it, and the kernel's symbols, whose addresses the kernel shows according to the
 * privileges at open.
 */
#ifndef FIRN_AGENT_ATTACH_HOST_HANDLES_H
#define FIRN_AGENT_ATTACH_HOST_HANDLES_H

#include "agent/describe/kernel_symbols.h"
#include "agent/files/lender.h"
#include "agent/files/root_files.h"

struct host_handles {
	struct lender *lender;
	struct root_files *root_files;
	struct kernel_symbol_files kernel;
};

int host_handles_open(struct host_handles *ret, struct err *err);
void host_handles_close(struct host_handles *handles);

#endif
