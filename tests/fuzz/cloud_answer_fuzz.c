/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is an instance of a cloud, with names that are names, or an error; an error adds
 * nothing. */
#include <stdlib.h>

#include "agent/identify/cloud_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int code, struct meta_labels *found)
{
	if (code ? found->count != 0 : !meta_labels_find(found, CLOUD_META "instance_id").len)
		abort();
	for (size_t i = 0; i < found->count; i++) {
		struct slice value = meta_labels_value(found, i);

		for (size_t j = 0; j < value.len; j++)
			if (value.data[j] <= ' ' || value.data[j] > 'z')
				abort();
	}
	meta_labels_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size), type, zone, id = slice_cut(text, '\n', &type);
	struct meta_labels found = { 0 };

	check(cloud_read_aws(text, &found, NULL), &found);
	check(cloud_read_azure(text, &found, NULL), &found);
	type = slice_cut(type, '\n', &zone);
	check(cloud_read_gce(id, type, zone, &found, NULL), &found);
	return 0;
}
