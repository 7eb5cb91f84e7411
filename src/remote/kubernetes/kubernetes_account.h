/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_account - where the API server is and who we are to it, inside a cluster: what
 * Kubernetes gives each pod (KUBERNETES_SERVICE_HOST and _PORT, and the files of its service
 * account: token, authority, namespace). Any thread.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_ACCOUNT_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_ACCOUNT_H

#include "base/strbuf.h"
#include "config/http_access_config.h"

/* True if this is a pod. */
bool kubernetes_account_is_there(void);

/*
 * Appends "https://HOST:PORT"; *access gets the authority and the token's file, which is read anew
 * for each request. False when this is no pod.
 */
bool kubernetes_account_find(struct strbuf *server, struct http_access_config *access);

/* The pod's namespace. */
int kubernetes_account_namespace(struct strbuf *ret, struct err *err);

#endif
