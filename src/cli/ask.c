/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/printable.h"
#include "cli/output_file.h"
#include "cli/short_type.h"

#define ANSWER_BYTES_MAX ((size_t)1 << 30)
#define SMALL_BYTES_MAX ((size_t)1 << 20)
#define ANSWER_TIMEOUT_NS (120 * CLOCK_NS_PER_S)
#define SMALL_TIMEOUT_NS (2 * CLOCK_NS_PER_S)
#define LOOK_EVERY_NS (500 * CLOCK_NS_PER_MS)
#define MEBIBYTE (1024.0 * 1024.0)

/* The observer while the answer is awaited. */
struct watch {
	const struct client_flags *flags;
	char id[32];
	sigset_t signals; /* SIGINT, and SIGUSR1 of this process to itself: the answer is here */
	bool shows;	  /* progress, on a terminal */
	bool shown;
};

void ask_add_parameter(struct strbuf *path, const char *name, const char *value)
{
	if (!value)
		return;
	strbuf_addf(path, "%c%s=", strchr(strbuf_text(path), '?') ? '&' : '?', name);
	strbuf_add_for_uri(path, slice_of(value), "");
}

/* A short call about the query itself; whether it was answered. */
static bool call_about(const struct watch *watch, struct net_client *client, const char *method,
		       struct strbuf *ret)
{
	struct strbuf path = { 0 };
	struct net_reply reply = { 0 };
	struct net_call call = { .method = method,
				 .timeout_ns = SMALL_TIMEOUT_NS,
				 .body_bytes_max = SMALL_BYTES_MAX };
	int rc;

	strbuf_addf(&path, "/api/v1/queries?id=%s", watch->id);
	call.path = strbuf_text(&path);
	rc = net_client_call(client, &call, &reply, NULL);
	strbuf_clear(ret);
	strbuf_add_slice(ret, strbuf_slice(&reply.body));
	strbuf_free(&reply.body);
	strbuf_free(&path);
	return !rc && reply.status == 200;
}

static double number_of(const struct strbuf *json, const char *key)
{
	const char *at = strstr(strbuf_text(json), key);

	return at ? strtod(at + strlen(key), NULL) : 0;
}

static void show(struct watch *watch, const struct strbuf *state)
{
	double done = number_of(state, "\"blocks_done\":"),
	       all = number_of(state, "\"blocks_all\":");

	if (all <= 0)
		fprintf(stderr, "\r\033[Klooking for what matches ...");
	else
		fprintf(stderr, "\r\033[Kread %.0f %% of %.1f MiB ...", 100 * done / all,
			number_of(state, "\"bytes_all\":") / MEBIBYTE);
	watch->shown = true;
}

static void hide(const struct watch *watch)
{
	if (watch->shown)
		fprintf(stderr, "\r\033[K");
}

static void *watch_answer(void *context)
{
	struct timespec pause = { 0, LOOK_EVERY_NS };
	struct watch *watch = context;
	struct net_client *client = NULL;
	struct strbuf state = { 0 };
	int number;

	for (;;) {
		number = sigtimedwait(&watch->signals, NULL, &pause);
		if (number > 0)
			break;
		if (errno == EINTR || !watch->shows ||
		    (!client && client_flags_open(watch->flags, &client, NULL)))
			continue;
		if (call_about(watch, client, "GET", &state))
			show(watch, &state);
	}
	hide(watch);
	if (number == SIGINT) {
		if (client || !client_flags_open(watch->flags, &client, NULL))
			call_about(watch, client, "DELETE", &state);
		_exit(ASK_INTERRUPTED);
	}
	net_client_free(client);
	strbuf_free(&state);
	return NULL;
}

static int begin_watch(struct watch *watch, const struct client_flags *flags, pthread_t *ret)
{
	*watch = (struct watch){ .flags = flags, .shows = isatty(STDERR_FILENO) };
	snprintf(watch->id, sizeof(watch->id), "cli-%d-%llx", (int)getpid(),
		 (unsigned long long)clock_real_ns());
	sigemptyset(&watch->signals);
	sigaddset(&watch->signals, SIGINT);
	sigaddset(&watch->signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &watch->signals, NULL);
	return pthread_create(ret, NULL, watch_answer, watch);
}

/* A verb is told what to do when nobody answers. */
static int add_remedy(int rc, struct err *err)
{
	char message[ERR_MESSAGE_BYTES];

	if (rc != -ERR_UNAVAILABLE || !err)
		return rc;
	memcpy(message, err->message, sizeof(message));
	return err_set(err, ERR_UNAVAILABLE,
		       "%s (is a server there? `firn up` starts one, --server names another)",
		       message);
}

int ask(const struct client_flags *flags, const char *path, struct net_reply *reply,
	struct err *err)
{
	struct strbuf with_id = { 0 };
	struct net_call call = { .method = "GET",
				 .headers = "accept: text/plain\r\n",
				 .timeout_ns = ANSWER_TIMEOUT_NS,
				 .body_bytes_max = ANSWER_BYTES_MAX };
	struct net_client *client;
	struct watch watch;
	pthread_t thread;
	bool watched;
	int rc = client_flags_open(flags, &client, err);

	if (rc)
		return rc;
	watched = !begin_watch(&watch, flags, &thread);
	strbuf_add_text(&with_id, path);
	ask_add_parameter(&with_id, "id", watch.id);
	call.path = strbuf_text(&with_id);
	rc = net_client_call(client, &call, reply, err);
	if (watched) {
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
	}
	pthread_sigmask(SIG_UNBLOCK, &watch.signals, NULL);
	strbuf_free(&with_id);
	net_client_free(client);
	return add_remedy(rc, err);
}

int ask_complete_type(const struct client_flags *flags, const char *selector, const char *from,
		      const char *to, char **ret, struct err *err)
{
	struct strbuf path = { 0 };
	struct net_reply reply = { 0 };
	int rc;

	if (short_type_is_whole(selector)) {
		*ret = mem_strndup(selector, strlen(selector));
		return 0;
	}
	strbuf_add_text(&path, "/api/v1/types");
	ask_add_parameter(&path, "from", from);
	ask_add_parameter(&path, "to", to);
	rc = ask(flags, strbuf_text(&path), &reply, err);
	if (!rc && reply.status != 200) /* a server says itself what is wrong, with the selector */
		*ret = mem_strndup(selector, strlen(selector));
	else if (!rc)
		rc = short_type_find(strbuf_slice(&reply.body), selector, ret, err);
	strbuf_free(&path);
	strbuf_free(&reply.body);
	return rc;
}

int ask_print(const struct verb *verb, const struct net_reply *reply, bool is_text,
	      struct slice *ret_notes)
{
	struct slice body = strbuf_slice(&reply->body), rest;
	const char *end = is_text && body.len ? memrchr(body.data, '\f', body.len) : NULL;
	struct err err;
	int rc;

	*ret_notes = (struct slice){ 0 };
	if (reply->status != 200) {
		printable_print(stderr, "firn %s: %.*s\n", verb->spec->name,
				SLICE_FMT(slice_cut(body, '\n', &rest)));
		return reply->status == 404 ? VERB_NEGATIVE : VERB_ERROR;
	}
	if (end) {
		*ret_notes = slice_tail(body, (size_t)(end - body.data) + 1);
		body.len = (size_t)(end - body.data);
	}
	rc = is_text ? output_file_print("-", body, &err) : output_file_write("-", body, &err);
	return rc ? verb_error(verb, &err) : VERB_OK;
}
