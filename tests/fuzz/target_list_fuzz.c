/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a list of targets, or an error that names where it came from. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/target_list.h"

#define WHERE "http://lister/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int read_f(struct slice text, const char *name, const char *where, struct found *into,
		   struct err *err);

static void try_one(read_f *read_list, struct slice text)
{
	struct found *found = found_new();
	struct err err = { 0 };

	if (read_list(text, "__meta_url", WHERE, found, &err) &&
	    strncmp(err.message, WHERE, strlen(WHERE)) != 0)
		abort();
	for (size_t i = 0; i < found->count; i++) {
		bool has_origin = false;

		for (size_t j = 0; j < found->targets[i].count; j++)
			has_origin |= slice_is(found->targets[i].labels[j].value, WHERE);
		if (!has_origin)
			abort();
	}
	found_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_one(target_list_read_json, slice_from(data, size));
	try_one(target_list_read_yaml, slice_from(data, size));
	return 0;
}
