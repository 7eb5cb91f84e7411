/* SPDX-License-Identifier: Apache-2.0 */
/* What sockets of container runtimes answer: the first byte says which answer the rest is. */
#include <stdlib.h>

#include "agent/identify/cri_answer.h"
#include "agent/identify/engine_answer.h"
#include "agent/identify/workload.h"

#define ID "f00d"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct meta_labels *labels)
{
	if (labels->count > META_LABELS_MAX || labels->text.len > META_LABELS_BYTES_MAX)
		abort();
	for (size_t i = 0; i < labels->count; i++)
		if (!slice_is_utf8(meta_labels_value(labels, i)) ||
		    !slice_starts_with(meta_labels_name(labels, i), SLICE_LITERAL("__meta_")))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct meta_labels labels = { 0 };
	struct strbuf sandbox = { 0 }, image = { 0 };
	struct slice id = SLICE_LITERAL(ID), rest;

	if (!size)
		return 0;
	rest = slice_from(data + 1, size - 1);
	switch (data[0]) {
	case 'e':
		engine_answer_read(rest, id, &labels, NULL);
		break;
	case 'c':
		cri_read_container(rest, id, &labels, &sandbox, &image, NULL);
		break;
	case 's':
		cri_read_status(rest, &image, NULL);
		break;
	default:
		cri_read_sandbox(rest, id, &labels, NULL);
		workload_add(&labels);
	}
	if (sandbox.len > size || image.len > size)
		abort();
	check(&labels);
	meta_labels_free(&labels);
	strbuf_free(&sandbox);
	strbuf_free(&image);
	return 0;
}
