/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of object storage and of metadata services: lists, errors, keys; any bytes. */
#include <assert.h>

#include "net/s3/s3_answer.h"
#include "net/s3/s3_credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct s3_list *list, size_t size)
{
	size_t bytes = 0;

	assert(list->count <= size);
	assert(!list->is_cut || list->next.len);
	for (size_t i = 0; i < list->count; i++)
		bytes += list->entries[i].key.len;
	assert(bytes <= size); /* decoding makes no text longer */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = slice_from(data, size);
	struct s3_credentials keys;
	struct strbuf text = { 0 };
	struct s3_error why;
	struct s3_list list;
	struct err err;

	if (!s3_answer_list(body, &list, &err)) {
		check_list(&list, size);
		s3_list_free(&list);
	}
	s3_answer_error(body, &why);
	assert(memchr(why.code, '\0', sizeof(why.code)));
	if (!s3_answer_text(body, "UploadId", &text, &err))
		assert(text.len && text.len <= size);
	strbuf_free(&text);
	if (!s3_credentials_of_json(body, &keys, &err)) {
		assert(keys.access_key.len && keys.secret_key.len);
		s3_credentials_free(&keys);
	}
	if (!s3_credentials_of_file(body, "default", &keys, &err)) {
		assert(keys.access_key.len && keys.secret_key.len);
		s3_credentials_free(&keys);
	}
	return 0;
}
