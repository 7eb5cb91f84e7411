/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a kubeconfig that can be used, or an error that names the file. */
#include <stdlib.h>
#include <string.h>

#include "remote/kubernetes/kubeconfig.h"

#define FILE_NAME "dir/config"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubeconfig config;
	struct err err = { 0 };

	if (kubeconfig_parse(slice_from(data, size), FILE_NAME, &config, &err)) {
		if (strncmp(err.message, FILE_NAME ":", strlen(FILE_NAME ":")) != 0)
			abort();
	} else if (config.server.len < strlen("http://")) {
		abort();
	}
	kubeconfig_free(&config);
	return 0;
}
