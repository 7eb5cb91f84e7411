/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig - reads kubectl's file: the address of an API server and our credentials there, from
 * the current context. Other keys are ignored. Format: Kubernetes' "Organizing Cluster Access Using
 * kubeconfig Files" (client-go, tools/clientcmd/api/v1).
 *
 * Programs that print credentials (exec, auth-provider) are not run: a user without other
 * credentials is refused. Any thread; each struct belongs to one.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBECONFIG_H
#define FIRN_REMOTE_KUBERNETES_KUBECONFIG_H

#include "config/http_access_config.h"

#define KUBECONFIG_BYTES_MAX ((size_t)1 << 20)

struct kubeconfig {
	struct slice server; /* "https://HOST:PORT", as in the file */
	struct http_access_config access;
	struct document *document; /* `document` and `arena` own the texts */
	struct arena arena;
};

/* `path` is for messages, and the base of relative paths. Free the result in any case. */
MUST_USE int kubeconfig_parse(struct slice text, const char *path, struct kubeconfig *ret,
			      struct err *err);
/* The same from the file. */
MUST_USE int kubeconfig_read(const char *path, struct kubeconfig *ret, struct err *err);
void kubeconfig_free(struct kubeconfig *config); /* accepts a zeroed one */

#endif
