/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kubernetes/kubernetes_answer.h"

#include "base/budget.h"
#include "codec/wire/json_read.h"

#define MEMORY_BYTES_MAX ((int64_t)32 << 20) /* of one object that is read */
#define REST_BYTES_MAX ((size_t)64 << 10)
#define DEPTH_MAX 1000u
#define ITEMS "\"items\""
#define LIST_DEPTH 1u /* inside the list, outside of its items */
#define ITEMS_DEPTH 2u
#define GONE 410 /* what a watch begins with is not known any more */

static int read_object(struct slice text, const char *what, const struct kubernetes_sink *sink,
		       struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX, .parent = sink->memory };
	struct json_read read;
	int rc = json_read(text, 0, what, &budget, &read, err);

	if (!rc && !json_is_object(read.root))
		rc = err_set(err, ERR_INVALID, "%s: it is no object", what);
	if (!rc)
		rc = sink->take(sink->context, read.root, true, err);
	json_read_free(&read);
	return rc;
}

int kubernetes_object_read(struct slice text, const struct kubernetes_sink *sink, struct err *err)
{
	return read_object(text, "Kubernetes' object", sink, err);
}

/* Lists */

void kubernetes_list_begin(struct kubernetes_list *list, const struct kubernetes_sink *sink)
{
	*list = (struct kubernetes_list){ .sink = *sink };
}

void kubernetes_list_free(struct kubernetes_list *list)
{
	strbuf_free(&list->object);
	strbuf_free(&list->rest);
}

static int keep(struct strbuf *buffer, char c, size_t max_bytes, const char *what, struct err *err)
{
	if (buffer->len >= max_bytes)
		return err_set(err, ERR_LIMIT, "Kubernetes' list: %s of more than %zu KiB", what,
			       max_bytes >> 10);
	strbuf_add_byte(buffer, c);
	return 0;
}

static bool begins_items(const struct kubernetes_list *list, char c)
{
	struct slice name = slice_tail(strbuf_slice(&list->rest), list->name_at);

	return c == '[' && list->depth == LIST_DEPTH &&
	       slice_starts_with(name, SLICE_LITERAL(ITEMS));
}

/* A byte between the items, or the first or last one of an item. */
static int add_between(struct kubernetes_list *list, char c, struct err *err)
{
	switch (c) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
	case ',':
		return 0;
	case '{':
		list->depth++;
		return keep(&list->object, c, KUBERNETES_OBJECT_BYTES_MAX, "an object", err);
	case ']':
		list->in_items = false;
		list->depth--;
		return keep(&list->rest, c, REST_BYTES_MAX, "metadata", err);
	default:
		return err_set(err, ERR_INVALID, "Kubernetes' list: an item is no object");
	}
}

static void follow_text(struct kubernetes_list *list, char c)
{
	if (list->is_escaped)
		list->is_escaped = false;
	else if (c == '\\')
		list->is_escaped = true;
	else if (c == '"')
		list->in_text = false;
}

/* Outside of texts: how deep we are, and where names of the list's own members begin. */
static int follow_structure(struct kubernetes_list *list, char c, struct err *err)
{
	if (c == '"') {
		list->in_text = true;
		if (list->depth == LIST_DEPTH && list->is_first)
			list->name_at = list->rest.len;
		list->is_first = false;
	} else if (c == '{' || c == '[') {
		list->is_first = c == '{' && !list->depth;
		if (++list->depth > DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "Kubernetes' list: more than %u levels",
				       DEPTH_MAX);
	} else if (c == '}' || c == ']') {
		if (!list->depth)
			return err_set(err, ERR_INVALID, "Kubernetes' list: it ends twice");
		list->depth--;
	} else if (c == ',' && list->depth == LIST_DEPTH) {
		list->is_first = true;
	}
	return 0;
}

static int end_object(struct kubernetes_list *list, struct err *err)
{
	int rc = read_object(strbuf_slice(&list->object), "Kubernetes' list", &list->sink, err);

	strbuf_clear(&list->object);
	return rc;
}

static int add_byte(struct kubernetes_list *list, char c, struct err *err)
{
	bool in_text = list->in_text, in_items = list->in_items;
	int rc = 0;

	if (in_items && !in_text && list->depth == ITEMS_DEPTH)
		return add_between(list, c, err);
	if (!in_text && begins_items(list, c))
		list->in_items = true;
	if (in_text)
		follow_text(list, c);
	else
		rc = follow_structure(list, c, err);
	if (rc)
		return rc;
	if (!in_items)
		return keep(&list->rest, c, REST_BYTES_MAX, "metadata", err);
	rc = keep(&list->object, c, KUBERNETES_OBJECT_BYTES_MAX, "an object", err);
	return !rc && !list->in_text && list->depth == ITEMS_DEPTH ? end_object(list, err) : rc;
}

int kubernetes_list_add(struct kubernetes_list *list, struct slice bytes, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < bytes.len; i++)
		rc = add_byte(list, bytes.data[i], err);
	return rc;
}

static void copy_text(struct strbuf *to, struct slice text)
{
	strbuf_clear(to);
	strbuf_add_slice(to, text);
}

int kubernetes_list_end(struct kubernetes_list *list, struct strbuf *ret_version,
			struct strbuf *ret_next, struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX };
	struct json_read read;
	int rc = json_read(strbuf_slice(&list->rest), 0, "Kubernetes' list", &budget, &read, err);
	const json_t *items = json_object_get(read.root, "items");
	const json_t *about = json_object_get(read.root, "metadata");

	/* Go writes an empty list as null. */
	if (!rc && !json_is_array(items) && !json_is_null(items))
		rc = err_set(err, ERR_INVALID, "Kubernetes' list: there are no \"items\"");
	if (!rc) {
		copy_text(ret_version, json_text_at(about, "resourceVersion"));
		copy_text(ret_next, json_text_at(about, "continue"));
	}
	json_read_free(&read);
	return rc;
}

/* Watches */

static int refuse(const json_t *object, struct err *err)
{
	bool is_gone = json_integer_value(json_object_get(object, "code")) == GONE;
	struct slice message = json_text_at(object, "message");

	return err_set(err, is_gone ? ERR_NOT_FOUND : ERR_BUSY, "Kubernetes ended the watch: %.*s",
		       (int)(message.len < 200 ? message.len : 200), message.data);
}

int kubernetes_event_read(struct slice line, const struct kubernetes_sink *sink,
			  struct strbuf *version, struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX, .parent = sink->memory };
	struct json_read read;
	int rc = json_read(line, 0, "Kubernetes' watch", &budget, &read, err);
	struct slice type = json_text_at(read.root, "type"), now;
	json_t *object = json_object_get(read.root, "object");
	bool is_there = slice_is(type, "ADDED") || slice_is(type, "MODIFIED");

	if (!rc && slice_is(type, "ERROR"))
		rc = refuse(object, err);
	else if (!rc && !json_is_object(object))
		rc = err_set(err, ERR_INVALID, "Kubernetes' watch: there is no \"object\"");
	if (!rc) {
		now = json_text_at(json_object_get(object, "metadata"), "resourceVersion");
		if (now.len)
			copy_text(version, now);
		if (is_there || slice_is(type, "DELETED")) /* others are bookmarks */
			rc = sink->take(sink->context, object, is_there, err);
	}
	json_read_free(&read);
	return rc;
}
