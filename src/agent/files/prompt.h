/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt - lets a thread run soon after it is woken up, however many others want the CPU.
 *
 * What reads other processes races with their lives: code that has run for a millisecond is gone
 * the next. Such a thread asks the scheduler for short slices, which come early and give no larger
 * share (Linux 6.12; kernels before take no notice). Its priority stays that of its process.
 */
#ifndef FIRN_AGENT_FILES_PROMPT_H
#define FIRN_AGENT_FILES_PROMPT_H

/* The calling thread, and what it starts from now on. */
void prompt_begin(void);

#endif
