/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a bucket, which are a stranger's: a line each, as a list of debug information. What comes
 * out is in order, and each object's keys are those that it came from.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/debuginfo/shared_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slice input;

static int list(struct bucket *bucket, const char *prefix, const char *after, bool folders,
		bucket_entry_f *entry, void *context, struct err *err)
{
	struct slice left = input;
	int rc = 0;

	(void)bucket, (void)prefix, (void)after, (void)folders;
	while (!rc && left.len) {
		struct bucket_entry item = { .key = slice_cut(left, '\n', &left) };

		rc = entry(context, &item, err);
	}
	return rc;
}

static bool is_there(const struct shared_key *key)
{
	return memmem(input.data, input.len, key->text, strlen(key->text)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bucket bucket = { .list = list };
	struct shared_list made = { 0 };

	input = slice_from((const char *)data, size);
	if (shared_list_read(&made, &bucket, 1, NULL))
		abort(); /* so few bytes are no reason to fail */
	for (size_t i = 0; i < made.count; i++) {
		const struct shared_object *object = &made.objects[i];
		struct shared_key file = shared_file_key(object);

		if (!is_there(&file) || !shared_list_find(&made, slice_of(object->build_id),
							  object->kind, object->sha256))
			abort();
	}
	shared_list_free(&made);
	return 0;
}
