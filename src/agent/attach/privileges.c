/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/privileges.h"

#include "agent/attach/host_checks.h"

void privileges_missing(struct strbuf *out)
{
	struct host_checks checks;

	host_checks_run(&checks);
	for (size_t i = 0; i < checks.count; i++) {
		const struct host_check *check = &checks.items[i];

		if (check->needed && check->state == HOST_CHECK_MISSING)
			strbuf_addf(out, "%s (%s) Remedy: %s.\n", check->meaning, check->found,
				    check->remedy);
	}
}

int privileges_explain(struct err *err)
{
	struct strbuf missing = { 0 };
	struct slice first, rest;

	if (!err)
		return -ERR_DENIED;
	privileges_missing(&missing);
	first = slice_cut(strbuf_slice(&missing), '\n', &rest);
	if (first.len) {
		struct err cause = *err;

		err_set(err, ERR_DENIED, "%.*s (%s)", SLICE_FMT(first), cause.message);
	}
	strbuf_free(&missing);
	return -(int)err->code;
}
