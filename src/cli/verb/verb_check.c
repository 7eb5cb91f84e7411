/* SPDX-License-Identifier: Apache-2.0 */
/* firn check config - whether a configuration file is right, before a server reads it. */
#include <stdio.h>

#include "agent/identify/agent_config.h"
#include "base/printable.h"
#include "cli/verb.h"
#include "config/scrape_config.h"
#include "config/web_config.h"
#include "server/access/access.h"

struct check_verb_options {
	struct verb_common common;
};

static const struct option options[] = {
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "check config",
	.operands = "FILE...",
	.summary = "check a configuration file and the files it names",
	.details = "FILE is one of\n"
		   "\n"
		   "  a file for --web-config-file (docs/web-config.md): TLS, users, tokens; the "
		   "certificates,\n"
		   "    keys and token files that it names are read, too\n"
		   "  a file for --config-file (docs/scraping.md), known by global, scrape_configs "
		   "or object_storage\n"
		   "  a file for the agent's --config-path (docs/labels.md), known by "
		   "relabel_configs or external_labels\n"
		   "\n"
		   "Each mistake is reported with its file, line and remedy.\n"
		   "\n"
		   "  firn check config /etc/firn/web.yml && systemctl reload firn\n"
		   "\n"
		   "Exits 0 when every file is valid, 1 when one is not, 2 when the command line\n"
		   "is wrong.",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static int check_scraping(const char *path, struct err *err)
{
	struct scrape_config *config;
	int rc = scrape_config_load(path, &config, err);

	if (rc)
		return rc;
	printable_print(stdout, "%s: right: %zu scrape jobs%s\n", path, config->jobs_count,
			config->has_object_storage ? "; object_storage is ignored" : "");
	scrape_config_free(config);
	return 0;
}

static int check_agent(const char *path, struct err *err)
{
	struct agent_config *config;
	int rc = agent_config_load(path, &config, err);

	if (rc)
		return rc;
	printable_print(stdout, "%s: right: %zu rules, %zu external labels\n", path,
			agent_config_rules(config), agent_config_external_labels(config));
	agent_config_free(config);
	return 0;
}

static int check_web(const char *path, struct err *err)
{
	struct web_config config;
	struct access *access;
	int rc = web_config_load(path, &config, err);

	if (rc)
		return rc;
	rc = access_open(path, NULL, &access, err);
	if (!rc) {
		printable_print(stdout, "%s: right: %s, %zu users, %zu tokens%s\n", path,
				access_has_tls(access) ? "TLS" : "no TLS", config.users_count,
				config.tokens_count,
				access_is_open(access) ? "; anyone who connects may do everything"
						       : "");
		access_close(access);
	}
	web_config_free(&config);
	return rc;
}

static int check(const char *path, struct err *err)
{
	if (scrape_config_is_meant(path))
		return check_scraping(path, err);
	return agent_config_is_meant(path) ? check_agent(path, err) : check_web(path, err);
}

static int run(int argc, char **argv)
{
	struct check_verb_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_check_config, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (!operands.count) {
		err_set(&err, ERR_INVALID, "expected a file, for example web.yml");
		return verb_error(&verb_check_config, &err);
	}
	code = VERB_OK;
	for (size_t i = 0; i < operands.count; i++) {
		const char *path = operands.items[i];

		if (!check(path, &err))
			continue;
		printable_print(stderr, "%s\n", err.message);
		code = VERB_NEGATIVE;
	}
	return code;
}

const struct verb verb_check_config = { &spec, run, LOG_WARN };
