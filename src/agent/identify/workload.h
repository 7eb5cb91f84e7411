/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload - the deployment, stateful set, daemon set or job of a pod.
 *
 * Only the API server knows owners. Without it, the labels that Kubernetes' controllers put on
 * pods, together with the pods' names, tell:
 *
 *   pod-template-hash H, a pod "NAME-H-xxxxx"          ReplicaSet NAME-H of deployment NAME
 *   statefulset.kubernetes.io/pod-name, "NAME-N"       StatefulSet NAME
 *   controller-revision-hash, pod-template-generation  DaemonSet NAME of "NAME-xxxxx"
 *   batch.kubernetes.io/job-name, job-name             Job
 *
 * If name and label do not fit (truncated names), there is no workload. The API server
 * (pod_names.h) tells the controller, and only its owner has to be found.
 */
#ifndef FIRN_AGENT_IDENTIFY_WORKLOAD_H
#define FIRN_AGENT_IDENTIFY_WORKLOAD_H

#include "agent/identify/meta_labels.h"

#define WORKLOAD_META "__meta_kubernetes_"

/*
 * Adds pod_controller_kind, pod_controller_name, pod_workload, pod_workload_kind from pod_name and
 * pod_label_*.
 */
void workload_add(struct meta_labels *labels);

/* The deployment of a ReplicaSet "NAME-HASH" whose pods have this pod-template-hash. */
bool workload_of_replica_set(struct slice name, struct slice hash, struct slice *ret);

/*
 * Guesses the owner of a ReplicaSet or Job by its name alone: "NAME-HASH" belongs to deployment
 * NAME, if the hash has the letters that Kubernetes makes hashes of, "NAME-DIGITS" to cron job
 * NAME, any other to nobody: it is its own workload.
 */
void workload_guess(struct slice kind, struct slice name, struct strbuf *ret,
		    struct strbuf *ret_kind);

#endif
