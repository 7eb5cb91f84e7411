/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_account - inside a cluster, the address of the API server and the service account, as
 * Kubernetes gives them to each pod (KUBERNETES_SERVICE_HOST and _PORT, and the files token, CA
 * certificate and namespace). Any thread.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_ACCOUNT_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_ACCOUNT_H

#include "base/strbuf.h"
#include "config/http_access_config.h"

/* True if this process runs in a pod. */
bool kubernetes_account_is_there(void);

/*
 * Appends "https://HOST:PORT"; *access gets the CA certificate and the token's file, which is read
 * again for each request. False outside of a pod.
 */
bool kubernetes_account_find(struct strbuf *server, struct http_access_config *access);

/* The pod's namespace. */
int kubernetes_account_namespace(struct strbuf *ret, struct err *err);

#endif
