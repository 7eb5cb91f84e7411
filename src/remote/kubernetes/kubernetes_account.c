/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kubernetes/kubernetes_account.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/whole_file.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define NAMESPACE_BYTES_MAX 256u

bool kubernetes_account_is_there(void)
{
	return getenv("KUBERNETES_SERVICE_HOST") && !access(ACCOUNT "token", F_OK);
}

bool kubernetes_account_find(struct strbuf *server, struct http_access_config *access)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	if (!host || !port)
		return false;
	strbuf_addf(server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	access->tls.ca_file = slice_of(ACCOUNT "ca.crt");
	access->bearer_token_file = slice_of(ACCOUNT "token");
	return true;
}

int kubernetes_account_namespace(struct strbuf *ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = whole_file_read(ACCOUNT "namespace", NAMESPACE_BYTES_MAX, &text, err);

	if (!rc)
		strbuf_add_slice(ret, slice_trim(strbuf_slice(&text)));
	strbuf_free(&text);
	return rc;
}
