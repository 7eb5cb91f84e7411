/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_answer - reads JSON answers of Kubernetes' API one object at a time: lists, as they
 * arrive, and the events of a watch.
 *
 * A list of a node's pods may have megabytes, about 10 kB per pod, and parsed JSON takes ten times
 * the memory of its text. Therefore the list is split into its objects before it is parsed: a count
 * of open brackets outside of strings finds the beginning and end of each element of "items". Each
 * object is parsed and freed before the next. The list without its items is parsed at the end.
 *
 * Bounded: an object (its text, and the memory while it is parsed), and the list without its items.
 * One thread at a time. ERR_INVALID and ERR_LIMIT say what is wrong; the objects before the error
 * have been passed on.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_ANSWER_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_ANSWER_H

#include <jansson.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/strbuf.h"

#define KUBERNETES_OBJECT_BYTES_MAX ((size_t)4 << 20) /* Kubernetes takes none above 1.5 MiB */

/*
 * Receives objects. A result other than 0 ends the reading. The object stays the reader's; `take`
 * may change it.
 */
struct kubernetes_sink {
	int (*take)(void *context, json_t *object, bool is_there, struct err *err);
	void *context;
	struct budget *memory; /* the budget for an object while it is read; NULL: none */
};

/* Reading a list. */
struct kubernetes_list {
	struct kubernetes_sink sink;
	struct strbuf object; /* the current item, as far as it has arrived */
	struct strbuf rest;   /* the list without its items */
	unsigned depth;	      /* number of open brackets */
	bool in_text, is_escaped, in_items;
	bool is_first;	/* the string follows '{' or ',' of the list itself: it is a key */
	size_t name_at; /* where the last such key begins in `rest` */
};

void kubernetes_list_begin(struct kubernetes_list *list, const struct kubernetes_sink *sink);
int kubernetes_list_add(struct kubernetes_list *list, struct slice bytes, struct err *err);

/*
 * The end of the list. *ret_version is the version from which a watch begins, *ret_next the token
 * for the request of the next page, or empty.
 */
int kubernetes_list_end(struct kubernetes_list *list, struct strbuf *ret_version,
			struct strbuf *ret_next, struct err *err);
void kubernetes_list_free(struct kubernetes_list *list); /* in any case */

/*
 * Reads one line of a watch; *version becomes that of its object. ERR_NOT_FOUND: the watch's
 * version is too old, and a new list is needed (410). ERR_BUSY: the server ended it with another
 * error.
 */
int kubernetes_event_read(struct slice line, const struct kubernetes_sink *sink,
			  struct strbuf *version, struct err *err);

/* Reads the answer to a request for a single object, and passes the object on. */
int kubernetes_object_read(struct slice text, const struct kubernetes_sink *sink, struct err *err);

#endif
