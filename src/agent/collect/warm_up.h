/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_up - opens the files that the first samples will need, and asks for their unwind tables, so
 * that a recording of chosen processes begins with whole stacks, also of a program that is replaced
 * by another before it can be looked at. What cannot be read is left to the samples.
 */
#ifndef FIRN_AGENT_COLLECT_WARM_UP_H
#define FIRN_AGENT_COLLECT_WARM_UP_H

#include <stdint.h>

#include "agent/files/lender.h"
#include "agent/procs/binaries.h"

/* The files that a process has mapped executable. */
void warm_up_process(struct binaries *binaries, struct lender *lender, uint32_t pid);

/* A program that is about to be run. */
void warm_up_program(struct binaries *binaries, struct lender *lender, const char *path);

#endif
