/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload - what a pod is one of: its deployment, stateful set, daemon set or job.
 *
 * Without the API server, which alone knows owners, the labels tell that the controllers of
 * Kubernetes put on their pods, together with how they name them:
 *
 *   pod-template-hash H, a pod "NAME-H-xxxxx"          ReplicaSet NAME-H of deployment NAME
 *   statefulset.kubernetes.io/pod-name, "NAME-N"       StatefulSet NAME
 *   controller-revision-hash, pod-template-generation  DaemonSet NAME of "NAME-xxxxx"
 *   batch.kubernetes.io/job-name, job-name             Job
 *
 * Where name and label do not fit (names that were cut), nothing is said.
 */
#ifndef FIRN_AGENT_IDENTIFY_WORKLOAD_H
#define FIRN_AGENT_IDENTIFY_WORKLOAD_H

#include "agent/identify/meta_labels.h"

#define WORKLOAD_META "__meta_kubernetes_"

/* Adds pod_controller_kind, pod_controller_name, pod_workload from pod_name and pod_label_*. */
void workload_add(struct meta_labels *labels);

#endif
