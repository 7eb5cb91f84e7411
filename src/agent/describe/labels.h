/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels - the labels of a series: which program, where.
 *
 *   node  comm  executable  cgroup  systemd_unit  container  thread_name (by choice)
 *
 * Never the pid: all processes with equal labels are one series. A label without a value is left
 * out.
 */
#ifndef FIRN_AGENT_DESCRIBE_LABELS_H
#define FIRN_AGENT_DESCRIBE_LABELS_H

#include "agent/procs/process.h"
#include "model/tables.h"

/* The id of the label set; `thread_name` may be empty. */
uint32_t labels_of_process(struct tables *tables, const char *node, const struct process *process,
			   struct slice thread_name);

#endif
