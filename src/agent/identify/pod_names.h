/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_names - meta labels (__meta_kubernetes_*) of the pods of this node, their containers and
 * owners, from Kubernetes' API server.
 *
 * Two threads. One lists and watches the pods of this node (remote/kubernetes), so that a pod is
 * known before its first container runs; the other asks who owns a ReplicaSet or Job if the names
 * do not tell (workload.h), and every five minutes for the labels of the node, if wanted. A pod is
 * found by its uid, which is in the path of control groups, or by the id of a container; static
 * pods by the uid from the kubelet (kubernetes.io/config.mirror). A deleted pod is kept for ten
 * minutes.
 *
 * pod_names_find only takes a lock and never waits for the server. A server that hangs blocks only
 * these threads; pods of other nodes are ignored. Limits: POD_NAMES_MAX pods, POD_NAMES_BYTES_MAX
 * of text; pods beyond them are left out and counted.
 */
#ifndef FIRN_AGENT_IDENTIFY_POD_NAMES_H
#define FIRN_AGENT_IDENTIFY_POD_NAMES_H

#include "agent/identify/cgroup.h"
#include "agent/identify/meta_labels.h"
#include "base/clock.h"

#define POD_NAMES_MAX 2048u
#define POD_NAMES_BYTES_MAX ((size_t)16 << 20)
#define POD_NAMES_WAIT_NS (2 * CLOCK_NS_PER_S)

struct pod_names;

struct pod_names_options {
	/* "auto" (or NULL): the server of the pod that this is, if it is one; "off"; a kubeconfig.
	 */
	const char *place;
	const char *node; /* name of this node; NULL = $NODE_NAME, else the host's name */
	bool node_labels; /* labels and annotations of the node are wanted, too */
};

/* *ret is NULL when there is no server to ask. Errors name the file. */
int pod_names_new(const struct pod_names_options *options, struct pod_names **ret, struct err *err);
/* Ends the threads, or leaves behind one that hangs in a look-up of a host's name. Accepts NULL. */
void pod_names_free(struct pod_names *names);

/* For one thread; `names` may be NULL, then nothing is known. */

/* This container is seen now. */
void pod_names_want(struct pod_names *names, const struct cgroup *cgroup, int64_t now_ns);

/* Adds what is known of it, and of the node. */
void pod_names_find(struct pod_names *names, const struct cgroup *cgroup, struct meta_labels *ret);

/* True if something about a new container may be told soon: for two seconds at most. */
bool pod_names_is_pending(struct pod_names *names, int64_t now_ns);

/* Waits for that, no longer than told. */
void pod_names_settle(struct pod_names *names, int64_t timeout_ns);

/* Forgets those that have gone long ago. */
void pod_names_sweep(struct pod_names *names, int64_t now_ns);

void pod_names_metrics_register(void); /* once per process */

#endif
