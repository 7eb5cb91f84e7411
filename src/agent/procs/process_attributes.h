/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_attributes - a thread (firn-attributes) that reads the labels that processes declare
 * themselves (identify/process_reading.h), while sampling continues.
 *
 * A process is read when it is first seen, after 2 s, 10 s, a minute, and then every five minutes
 * while it has samples. A program publishes its context after its libraries are set up, so none is
 * looked for in its first second. The pause after a reading is at least a thousand times as long as
 * the reading, so one process never costs more than a thousandth of a core.
 *
 * For the drain thread, like the processes.
 */
#ifndef FIRN_AGENT_PROCS_PROCESS_ATTRIBUTES_H
#define FIRN_AGENT_PROCS_PROCESS_ATTRIBUTES_H

#include "agent/procs/process.h"

#define PROCESS_ATTRIBUTES_WAITING_MAX 256

struct process_attributes;

typedef struct process *process_find_f(void *context, const struct process_identity *identity);

struct process_attributes *process_attributes_new(void);
void process_attributes_free(struct process_attributes *attributes); /* accepts NULL */

/* Names of environment variables that are read besides; all processes are read again. */
void process_attributes_set_variables(struct process_attributes *attributes,
				      const struct slice *names, size_t count);

/* The process is seen now: has it read when it is time to. */
void process_attributes_want(struct process_attributes *attributes, struct process *process,
			     int64_t now_ns);

/* Hands what was read to the processes that still exist. */
void process_attributes_take(struct process_attributes *attributes, process_find_f *find,
			     void *context, int64_t now_ns);

/* Waits for what is being read; process_attributes_take is to follow. */
void process_attributes_settle(struct process_attributes *attributes, int64_t timeout_ns);

void process_attributes_metrics_register(void); /* once per process */

#endif
