/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_targets - objects of Kubernetes as targets, with the labels of Prometheus' discovery,
 * __meta_kubernetes_*:
 *
 *   pod            one for each port of each container, or one without a port; none while it has
 *                  no address
 *   node           the kubelet's port at the first of InternalIP, ExternalIP, LegacyHostIP and
 *                  Hostname
 *   service        one for each port, at NAME.NAMESPACE.svc
 *   endpoints, endpointslice
 *                  one for each address and port, with the labels of the service and of the pod
 *                  behind it; and one for each port of these pods that is no endpoint
 *   ingress        one for each path of each host
 */
#ifndef FIRN_SERVER_SCRAPE_KUBERNETES_TARGETS_H
#define FIRN_SERVER_SCRAPE_KUBERNETES_TARGETS_H

#include "config/discovery_config.h"
#include "server/scrape/found.h"
#include "server/scrape/kubernetes_objects.h"

/* All known resources that the role needs: several sets of one kind where namespaces are named. */
struct kubernetes_view {
	const struct kubernetes_objects *const *sets;
	size_t count;
	bool attaches_nodes; /* labels of nodes to pods and endpoints */
};

/* Bits, 1 << enum kubernetes_resource. */
unsigned kubernetes_targets_needs(enum discovery_role role, bool attaches_nodes);

/* Adds to `into`. */
void kubernetes_targets_make(const struct kubernetes_view *view, enum discovery_role role,
			     struct found *into);

#endif
