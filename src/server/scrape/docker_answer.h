/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker_answer - converts the running containers of Docker's Engine API
 * (docs.docker.com/engine/api, v1.24 on; also Podman) to targets: one for each TCP port of each
 * network, with the labels of Prometheus' discovery.
 *
 *   __meta_docker_container_{id,name,network_mode,label_NAME}
 *   __meta_docker_network_{id,name,ip,scope,internal,ingress,label_NAME}
 *   __meta_docker_port_{private,public,public_ip}
 *
 * A container without such a port gets the configured one. One that shares another's network is
 * found at the other's addresses.
 */
#ifndef FIRN_SERVER_SCRAPE_DOCKER_ANSWER_H
#define FIRN_SERVER_SCRAPE_DOCKER_ANSWER_H

#include "config/discovery_config.h"
#include "server/scrape/found.h"

/*
 * `containers` answers GET /containers/json, `networks` GET /networks. ERR_INVALID says which of
 * them is something else; then some targets may have been added.
 */
int docker_answer_read(struct slice containers, struct slice networks,
		       const struct discovery_config *config, struct found *into, struct err *err);

#endif
