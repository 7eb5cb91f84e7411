/* SPDX-License-Identifier: Apache-2.0 */
/* Relabelling: a document of rules, and what they do to a target. */
#include "config/document.h"
#include "config/relabel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document *document;
	struct relabel *relabel;
	struct rule_labels set;

	if (document_parse(slice_from(data, size), "f", &document, NULL))
		return 0;
	if (!relabel_read(document, document_root(document), &relabel, NULL)) {
		rule_labels_init(&set);
		rule_labels_put(&set, slice_of("__address__"), slice_of("host:1"));
		rule_labels_put(&set, slice_of("a"), slice_of("some-name-value"));
		rule_labels_sort(&set);
		relabel_apply(relabel, &set, NULL);
		rule_labels_free(&set);
		relabel_free(relabel);
	}
	document_free(document);
	return 0;
}
