/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_answer - a list of Kubernetes' API (v1: PodList, NodeList, ServiceList in JSON) as
 * targets with the labels of Prometheus' discovery, __meta_kubernetes_*:
 *
 *   pod      one for each port of each container, or one without a port; none while it has no
 *            address
 *   node     the kubelet's port at the first of InternalIP, ExternalIP, LegacyHostIP, Hostname
 *   service  one for each port, at NAME.NAMESPACE.svc
 */
#ifndef FIRN_SERVER_SCRAPE_KUBERNETES_ANSWER_H
#define FIRN_SERVER_SCRAPE_KUBERNETES_ANSWER_H

#include "base/strbuf.h"
#include "config/discovery_config.h"
#include "server/scrape/found.h"

/*
 * Adds to `into`. *ret_next is what the request for the next page has to say, or empty. ERR_INVALID
 * says what is wrong; then some may have been added.
 */
int kubernetes_answer_read(struct slice list, enum discovery_role role, struct found *into,
			   struct strbuf *ret_next, struct err *err);

#endif
