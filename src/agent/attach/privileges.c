/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/privileges.h"

#include <string.h>

#include "agent/attach/host_checks.h"

static void add_remedy(struct strbuf *out, const char *remedy, const char *command)
{
	const char *example = strstr(remedy, HOST_CHECKS_EXAMPLE);

	if (command && example)
		strbuf_addf(out, "%.*ssudo %s%s", (int)(example - remedy), remedy, command,
			    example + strlen(HOST_CHECKS_EXAMPLE));
	else
		strbuf_add_text(out, remedy);
}

void privileges_missing(const char *command, struct strbuf *out)
{
	struct host_checks checks;

	host_checks_run(&checks);
	for (size_t i = 0; i < checks.count; i++) {
		const struct host_check *check = &checks.items[i];

		if (!check->needed || check->state != HOST_CHECK_MISSING)
			continue;
		strbuf_addf(out, "%s (%s) Remedy: ", check->meaning, check->found);
		add_remedy(out, check->remedy, command);
		strbuf_add_text(out, ".\n");
	}
}

int privileges_explain(const char *command, struct err *err)
{
	struct strbuf missing = { 0 };
	struct slice first, rest;

	if (!err)
		return -ERR_DENIED;
	privileges_missing(command, &missing);
	first = slice_cut(strbuf_slice(&missing), '\n', &rest);
	if (first.len) {
		struct err cause = *err;

		err_set(err, ERR_DENIED, "%.*s (%s)", SLICE_FMT(first), cause.message);
	}
	strbuf_free(&missing);
	return -(int)err->code;
}
