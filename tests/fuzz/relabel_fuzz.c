/* SPDX-License-Identifier: Apache-2.0 */
/* Relabelling: a document of rules, and what they do to a target. */
#include "config/document.h"
#include "config/relabel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document *document;
	struct relabel *relabel;
	struct label_set set;

	if (document_parse(slice_from(data, size), "f", &document, NULL))
		return 0;
	if (!relabel_read(document, document_root(document), &relabel, NULL)) {
		label_set_init(&set);
		label_set_put(&set, slice_of("__address__"), slice_of("host:1"));
		label_set_put(&set, slice_of("a"), slice_of("some-name-value"));
		label_set_sort(&set);
		relabel_apply(relabel, &set, NULL);
		label_set_free(&set);
		relabel_free(relabel);
	}
	document_free(document);
	return 0;
}
