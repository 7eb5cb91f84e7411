/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a web configuration, or an error that names the file. */
#include <stdlib.h>
#include <string.h>

#include "config/web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct web_config *config)
{
	for (size_t i = 0; i < config->users_count; i++)
		if (config->users[i].bcrypt.len != 60 || !config->users[i].name.len)
			abort();
	for (size_t i = 0; i < config->tokens_count; i++)
		if (!config->tokens[i].roles || !config->tokens[i].name.len)
			abort();
	if (config->has_tls && !config->key.text.len && !config->key.file.len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct web_config config;
	struct err err = { 0 };

	if (web_config_parse(slice_from(data, size), "dir/web.yml", &config, &err)) {
		if (strncmp(err.message, "dir/web.yml:", strlen("dir/web.yml:")) != 0)
			abort();
		return 0;
	}
	check(&config);
	web_config_free(&config);
	return 0;
}
