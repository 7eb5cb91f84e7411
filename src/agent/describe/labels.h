/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels - the labels of a series: which program, where.
 *
 *   node  comm  executable  cgroup  systemd_unit  thread_name (by choice)
 *   service_name  version  environment  vcs_revision   as the process or its file says
 *   instance_id  instance_type  zone         of the cloud, by choice
 *   container  container_id  image           of containers
 *   namespace  pod  workload  app            of Kubernetes
 *
 * docs/labels.md says where each comes from. Never the pid: all processes with equal labels are one
 * series. A label without a value is left out.
 */
#ifndef FIRN_AGENT_DESCRIBE_LABELS_H
#define FIRN_AGENT_DESCRIBE_LABELS_H

#include "agent/identify/agent_config.h"
#include "agent/identify/cloud_names.h"
#include "agent/identify/container_names.h"
#include "agent/identify/pod_names.h"
#include "agent/procs/process.h"
#include "model/tables.h"

/* The sources of labels beside the process itself. */
struct label_sources {
	const char *node;
	struct container_names *containers; /* NULL = no names of containers */
	struct pod_names *pods;		    /* NULL = nothing from Kubernetes' API server */
	struct cloud_names *cloud;	    /* NULL = no cloud */
	const struct agent_config *config;  /* NULL = no rules */
};

#define LABELS_DROPPED (TABLES_FULL - 1) /* a rule leaves the process out */

/* The file that a process runs, as far as it is known. NULL members: not known. */
struct label_file {
	const struct elf_info *elf;
	const struct elf_origin *origin;
};

struct label_file labels_file(const struct process *process);

/* The id of the label set, or LABELS_DROPPED; `thread_name` may be empty. */
uint32_t labels_of_process(struct tables *tables, const struct label_sources *sources,
			   const struct process *process, struct slice thread_name);

/* Gives the labels of a process that rules see: its own, and `__meta_...` of all else that is
 * known. */
void labels_known(const struct label_sources *sources, const struct process *process,
		  const struct label_file *file, struct slice thread_name, struct rule_labels *ret);

#endif
