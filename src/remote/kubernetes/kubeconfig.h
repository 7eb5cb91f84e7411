/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig - kubectl's file: where an API server is, and who we are to it, by the current
 * context. Keys that say something else are read over. Format: Kubernetes' "Organizing Cluster
 * Access Using kubeconfig Files" (client-go, tools/clientcmd/api/v1).
 *
 * Programs that print credentials (exec, auth-provider) are not run: who has nothing else is
 * refused. Any thread; a struct belongs to one.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBECONFIG_H
#define FIRN_REMOTE_KUBERNETES_KUBECONFIG_H

#include "config/http_access_config.h"

#define KUBECONFIG_BYTES_MAX ((size_t)1 << 20)

struct kubeconfig {
	struct slice server; /* "https://HOST:PORT", as the file has it */
	struct http_access_config access;
	struct document *document; /* these two have the texts */
	struct arena arena;
};

/* `path` is for messages, and where relative paths begin. Free it in any case. */
MUST_USE int kubeconfig_parse(struct slice text, const char *path, struct kubeconfig *ret,
			      struct err *err);
/* The same from the file. */
MUST_USE int kubeconfig_read(const char *path, struct kubeconfig *ret, struct err *err);
void kubeconfig_free(struct kubeconfig *config); /* accepts a zeroed one */

#endif
