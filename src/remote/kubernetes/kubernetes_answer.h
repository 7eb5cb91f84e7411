/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_answer - what Kubernetes' API answers in JSON, an object at a time: lists, as they
 * arrive, and the events of a watch.
 *
 * A list of a node's pods may have megabytes, each pod some 10 kB, and read JSON takes ten times
 * its text. So the list is cut into its objects first: a counter of brackets, which knows texts
 * from structure, finds where the elements of "items" begin and end; each is read and let go before
 * the next. What is left of the list, with its items cut out, is read at the end.
 *
 * Bounded: an object (text, and memory while it is read), what is left of a list. One thread at a
 * time. ERR_INVALID and ERR_LIMIT say what is wrong; objects before it have been handed over.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_ANSWER_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_ANSWER_H

#include <jansson.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/strbuf.h"

#define KUBERNETES_OBJECT_BYTES_MAX ((size_t)4 << 20) /* Kubernetes takes none above 1.5 MiB */

/* Who takes objects. What is not 0 ends the reading. The object is the reader's; it may be changed.
 */
struct kubernetes_sink {
	int (*take)(void *context, json_t *object, bool is_there, struct err *err);
	void *context;
	struct budget *memory; /* pays for an object while it is read; NULL: nobody does */
};

/* Reading a list. */
struct kubernetes_list {
	struct kubernetes_sink sink;
	struct strbuf object; /* of the items, as far as it has come */
	struct strbuf rest;   /* the list without its items */
	unsigned depth;	      /* of brackets that are open */
	bool in_text, is_escaped, in_items;
	bool is_first;	/* the text is the first after '{' or ',' of the list itself: a name */
	size_t name_at; /* where the last such name begins in the rest */
};

void kubernetes_list_begin(struct kubernetes_list *list, const struct kubernetes_sink *sink);
int kubernetes_list_add(struct kubernetes_list *list, struct slice bytes, struct err *err);

/*
 * The list is over. *ret_version is where a watch begins, *ret_next what the request for the next
 * page has to say, or empty.
 */
int kubernetes_list_end(struct kubernetes_list *list, struct strbuf *ret_version,
			struct strbuf *ret_next, struct err *err);
void kubernetes_list_free(struct kubernetes_list *list); /* in any case */

/*
 * One line of a watch; *version becomes that of its object. ERR_NOT_FOUND: what the watch began
 * with is over, and a list is needed (410). ERR_BUSY: the server ended it with another error.
 */
int kubernetes_event_read(struct slice line, const struct kubernetes_sink *sink,
			  struct strbuf *version, struct err *err);

/* An object that was asked for alone: handed over. */
int kubernetes_object_read(struct slice text, const struct kubernetes_sink *sink, struct err *err);

#endif
