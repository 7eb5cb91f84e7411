/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_up - asks for the unwind tables that the first samples will need, so that a recording of
 * chosen processes begins with whole stacks. What cannot be read is left to the samples.
 */
#ifndef FIRN_AGENT_COLLECT_WARM_UP_H
#define FIRN_AGENT_COLLECT_WARM_UP_H

#include <stdint.h>

#include "agent/files/lender.h"
#include "agent/unwind/loader.h"

/* The files that a process has mapped executable. */
void warm_up_process(struct unwind_loader *loader, struct lender *lender, uint32_t pid);

/* A program that is about to be run. */
void warm_up_program(struct unwind_loader *loader, struct lender *lender, const char *path);

#endif
