/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupts - which functions of a tree are interrupt work: what runs when a timer, a device or
 * another CPU interrupts a program. It says what the host did, not what the program did. Entry
 * points are known by their names in Linux 5 and 6, x86_64 and aarch64. Pure functions.
 */
#ifndef FIRN_SERVER_QUERY_DIFF_INTERRUPTS_H
#define FIRN_SERVER_QUERY_DIFF_INTERRUPTS_H

#include "server/query/tree/functions.h"

/* Indexed by row: more than half of its value, on both sides, is below an interrupt. To free.
 */
bool *interrupts_find(const struct tree *tree, const struct functions *functions);

#endif
