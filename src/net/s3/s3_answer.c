/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/s3_answer.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/wire/xml.h"

#define ENTRIES_MAX 10000u /* of one answer; S3 gives 1,000 */

/* Elements that have text and no others within them, one after the other. */
struct leaves {
	struct xml_reader xml;
	struct slice name, parent; /* of the leaf */
	struct strbuf text;
	struct slice opened[XML_DEPTH_MAX];
	bool has_children; /* of the element that closes next */
};

/* 1 with a leaf, 0 at the end, or an error. Ends of elements that have others are passed over. */
static int next_leaf(struct leaves *leaves, struct err *err)
{
	for (;;) {
		struct xml_piece piece;
		int rc = xml_next(&leaves->xml, &piece, err);

		if (rc || piece.kind == XML_END)
			return rc;
		if (piece.kind == XML_OPEN) {
			strbuf_clear(&leaves->text);
			leaves->opened[leaves->xml.depth - 1] = piece.text;
			leaves->has_children = false;
		} else if (piece.kind == XML_TEXT && !leaves->has_children) {
			rc = xml_add_text(piece.text, &leaves->text, err);
			if (rc)
				return rc;
		} else if (piece.kind == XML_CLOSE) {
			bool is_leaf = !leaves->has_children;

			leaves->has_children = true;
			if (!is_leaf)
				continue;
			leaves->name = piece.text;
			leaves->parent = leaves->xml.depth ? leaves->opened[leaves->xml.depth - 1]
							   : (struct slice){ 0 };
			return 1;
		}
	}
}

static void begin(struct leaves *leaves, struct slice body)
{
	*leaves = (struct leaves){ 0 };
	xml_begin(&leaves->xml, body);
}

static void copy_text(char *to, size_t bytes, const struct strbuf *text)
{
	if (!to[0])
		snprintf(to, bytes, "%s", strbuf_text(text));
}

void s3_answer_error(struct slice body, struct s3_error *ret)
{
	struct leaves leaves;

	*ret = (struct s3_error){ 0 };
	begin(&leaves, body);
	while (next_leaf(&leaves, NULL) > 0) {
		if (slice_is(leaves.name, "Code"))
			copy_text(ret->code, sizeof(ret->code), &leaves.text);
		else if (slice_is(leaves.name, "Message"))
			copy_text(ret->message, sizeof(ret->message), &leaves.text);
	}
	strbuf_free(&leaves.text);
}

static struct s3_list_entry *add_entry(struct s3_list *list, const struct strbuf *key)
{
	struct s3_list_entry *entry;

	mem_grow(list->entries, list->count, list->capacity);
	entry = &list->entries[list->count++];
	*entry = (struct s3_list_entry){ 0 };
	strbuf_add_slice(&entry->key, strbuf_slice(key));
	return entry;
}

static int take_leaf(struct s3_list *list, const struct leaves *leaves, struct err *err)
{
	struct slice text = strbuf_slice(&leaves->text);
	bool of_object = slice_is(leaves->parent, "Contents");

	if (list->count >= ENTRIES_MAX)
		return err_set(err, ERR_INVALID, "the list has more than %u names", ENTRIES_MAX);
	if ((of_object && slice_is(leaves->name, "Key")) ||
	    (slice_is(leaves->parent, "CommonPrefixes") && slice_is(leaves->name, "Prefix")))
		add_entry(list, &leaves->text);
	else if (of_object && slice_is(leaves->name, "Size") && list->count &&
		 !slice_parse_u64(text, &list->entries[list->count - 1].bytes))
		return err_set(err, ERR_INVALID, "the list has a size that is none");
	else if (slice_is(leaves->name, "IsTruncated"))
		list->is_cut = slice_is(text, "true");
	else if (slice_is(leaves->name, "NextContinuationToken")) {
		strbuf_clear(&list->next);
		strbuf_add_slice(&list->next, text);
	}
	return 0;
}

int s3_answer_list(struct slice body, struct s3_list *ret, struct err *err)
{
	struct s3_list list = { 0 };
	struct leaves leaves;
	int rc = 0, more = 0;

	begin(&leaves, body);
	while (!rc && (more = next_leaf(&leaves, err)) > 0)
		rc = take_leaf(&list, &leaves, err);
	if (!rc)
		rc = more;
	if (!rc && !slice_is(leaves.opened[0], "ListBucketResult"))
		rc = err_set(err, ERR_INVALID, "the answer is not a list");
	if (!rc && list.is_cut && !list.next.len)
		rc = err_set(err, ERR_INVALID, "the list is cut and does not say where it goes on");
	strbuf_free(&leaves.text);
	if (rc) {
		s3_list_free(&list);
		return rc;
	}
	*ret = list;
	return 0;
}

void s3_list_free(struct s3_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		strbuf_free(&list->entries[i].key);
	free(list->entries);
	strbuf_free(&list->next);
}

int s3_answer_text(struct slice body, const char *name, struct strbuf *out, struct err *err)
{
	struct leaves leaves;
	int more;

	begin(&leaves, body);
	while ((more = next_leaf(&leaves, err)) > 0) {
		if (!slice_is(leaves.name, name))
			continue;
		strbuf_add_slice(out, strbuf_slice(&leaves.text));
		break;
	}
	if (!more || (more > 0 && !leaves.text.len))
		more = err_set(err, ERR_INVALID, "the answer has no %s", name);
	strbuf_free(&leaves.text);
	return more < 0 ? more : 0;
}
