/* SPDX-License-Identifier: Apache-2.0 */
/* firn store delete - has a server delete the profiles that a selector means. */
#include <stdio.h>

#include "base/printable.h"
#include "cli/ask.h"
#include "cli/flags/client_flags.h"
#include "cli/verb.h"

#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define TIMEOUT_NS (300 * CLOCK_NS_PER_S) /* what is in memory is written first */

struct delete_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *from, *to;
};

#define AT(member) offsetof(struct delete_verb_options, member)

static const struct option delete_options[] = {
	CLIENT_FLAGS_OPTIONS(struct delete_verb_options),
	OPTION_AT(DELETE_FROM, AT(from)),
	OPTION_AT(DELETE_TO, AT(to)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb delete_spec = {
	.name = "store delete",
	.operands = "SELECTOR",
	.summary = "delete series that a server has",
	.details = "SELECTOR is the same as for `firn query`, and selects whole series by their\n"
		   "labels, not single samples by theirs. Types that were sent together (the four\n"
		   "of a heap profile) are deleted together. Queries stop finding them at once;\n"
		   "the bytes go with the next compaction. Profiles that arrive later are kept.\n"
		   "The server records who deleted what, and when; `firn store stat` shows it.\n"
		   "\n"
		   "  firn store delete --to now-1d '{comm=\"secret\"}'",
	.options = delete_options,
	.options_count = VERB_COUNT_OF(delete_options),
};

static int ask_deletion(const struct delete_verb_options *values, const char *selector,
			struct net_reply *reply, struct err *err)
{
	struct net_call call = { .method = "POST",
				 .headers = "accept: application/json\r\n",
				 .timeout_ns = TIMEOUT_NS,
				 .body_bytes_max = ANSWER_BYTES_MAX };
	struct strbuf path = { 0 };
	struct net_client *client;
	int rc = client_flags_open(&values->client, &client, err);

	if (rc)
		return rc;
	strbuf_add_text(&path, "/api/v1/admin/delete");
	ask_add_parameter(&path, "query", selector);
	ask_add_parameter(&path, "from", values->from);
	ask_add_parameter(&path, "to", values->to);
	call.path = strbuf_text(&path);
	rc = net_client_call(client, &call, reply, err);
	strbuf_free(&path);
	net_client_free(client);
	return rc;
}

static int run_delete(int argc, char **argv)
{
	struct delete_verb_options values = { 0 };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct slice text, rest;
	struct err err;
	int code = verb_parse(&verb_store_delete, argc, argv, &values, &operands);

	if (code < 0 && operands.count != 1) {
		err_set(&err, ERR_INVALID, "expected one selector, for example '{comm=\"nginx\"}'");
		code = verb_error(&verb_store_delete, &err);
	}
	if (code >= 0)
		return code;
	if (ask_deletion(&values, operands.items[0], &reply, &err))
		return verb_error(&verb_store_delete, &err);
	text = slice_cut(strbuf_slice(&reply.body), '\n', &rest);
	if (reply.status == 200)
		printable_print(stdout, "deleted: %.*s\n", SLICE_FMT(text));
	else
		printable_print(stderr, "firn store delete: %.*s\n", SLICE_FMT(text));
	strbuf_free(&reply.body);
	return reply.status == 200 ? VERB_OK : VERB_ERROR;
}

const struct verb verb_store_delete = { &delete_spec, run_delete, LOG_WARN };
