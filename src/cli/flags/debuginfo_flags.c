/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/debuginfo_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/debuginfo/distribution.h"

/* As gdb and elfutils understand it: addresses between blanks. */
static void take_environment(struct debuginfo_flags *flags)
{
	const char *variable = getenv("DEBUGINFOD_URLS");
	char *rest = NULL;

	snprintf(flags->environment, sizeof(flags->environment), "%s", variable ? variable : "");
	for (char *url = strtok_r(flags->environment, " ", &rest); url;
	     url = strtok_r(NULL, " ", &rest)) {
		bool is_address = !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);

		/* There are others than addresses: "ima:enforcing". */
		if (is_address && flags->urls.count < OPTION_LIST_MAX)
			flags->urls.items[flags->urls.count++] = url;
	}
}

/* "auto" stands for the servers of this host's distribution. */
static int put_auto(struct debuginfo_flags *flags, struct err *err)
{
	struct strbuf servers = { 0 };
	char *rest = NULL;
	size_t kept = 0;
	bool is_auto = false;

	for (size_t i = 0; i < flags->urls.count; i++) {
		if (!strcmp(flags->urls.items[i], "auto"))
			is_auto = true;
		else
			flags->urls.items[kept++] = flags->urls.items[i];
	}
	flags->urls.count = kept;
	if (!is_auto)
		return 0;
	distribution_servers("", &servers);
	snprintf(flags->automatic, sizeof(flags->automatic), "%s", strbuf_text(&servers));
	strbuf_free(&servers);
	if (!flags->automatic[0])
		return err_set(
			err, ERR_NOT_FOUND,
			"--debuginfod-url auto: no debuginfod server of this distribution is "
			"known (/etc/debuginfod, /etc/os-release); name one");
	for (char *url = strtok_r(flags->automatic, " ", &rest); url;
	     url = strtok_r(NULL, " ", &rest))
		if (flags->urls.count < OPTION_LIST_MAX)
			flags->urls.items[flags->urls.count++] = url;
	return 0;
}

/* An empty one says that none is meant. */
static void drop_empty(struct option_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i][0])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

int debuginfo_flags_apply(struct debuginfo_flags *flags, struct server_options *options,
			  struct err *err)
{
	bool is_said = flags->urls.count;

	if (put_auto(flags, err))
		return -ERR_NOT_FOUND;
	if (!is_said)
		take_environment(flags);
	drop_empty(&flags->urls);
	drop_empty(&flags->source_paths);
	options->debuginfod_urls = flags->urls.items;
	options->debuginfod_urls_count = flags->urls.count;
	options->debuginfod_offer = !is_said && !flags->urls.count;
	options->debuginfod_timeout_ns = flags->timeout_ns;
	options->debuginfod_bytes_max = flags->bytes_max.bytes;
	options->source_paths = flags->source_paths.items;
	options->source_paths_count = flags->source_paths.count;
	return 0;
}
