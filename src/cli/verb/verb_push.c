/* SPDX-License-Identifier: Apache-2.0 */
/* firn push - sends profile files to a server; says success only when all of them are durable
 * there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/whole_file.h"
#include "cli/client_flags.h"
#include "cli/verb.h"
#include "codec/archive/compress.h"
#include "codec/wire/pb.h"
#include "codec/profile/pprof.h"
#include "server/ingest/ingest.h"
#include "server/serve/intake/write_summary.h"

#define FILE_BYTES_MAX ((size_t)128 << 20)
#define UNPACKED_BYTES_MAX ((size_t)1 << 30)
#define ELEMENTS_MAX ((size_t)1 << 28)
#define PUSH_TIMEOUT_NS (60 * CLOCK_NS_PER_S)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define ATTEMPTS_MAX 5
#define RETRY_PAUSE_NS (500 * CLOCK_NS_PER_MS)
#define GRPC_OK 0
#define GRPC_UNAVAILABLE 14

struct push_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *name;
	struct option_list labels;
};

#define AT(member) offsetof(struct push_verb_options, member)

static const struct option options[] = {
	CLIENT_FLAGS_OPTIONS(struct push_verb_options),
	{ 0, "name", OPTION_TEXT, AT(name), "NAME",
	  "the profile's name (default: by its sample types)", 0, 0 },
	{ 0, "label", OPTION_LIST, AT(labels), "K=V", "a label of the series; may be repeated", 0,
	  0 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "push",
	.operands = "FILE...",
	.summary = "send profile files to a server",
	.details = "Takes pprof files, gzip-compressed or not. Without --name: process_cpu when a "
		   "sample type\n"
		   "is CPU time, memory for heap types, mutex, block, goroutine for those, else "
		   "the file's stem.\n"
		   "Prints the types, rows and totals that the server made of each, and what it "
		   "repaired.\n"
		   "Exits 0 only when the server has acknowledged all of them as durable; running "
		   "it again\n"
		   "is safe: a profile that says its time counts once, compressed anew too.\n\n"
		   "  firn push --label job=api --label version=1.4.2 cpu.pb.gz heap.pb.gz",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static void put_label(struct strbuf *out, struct slice name, struct slice value)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, name);
	pb_put_bytes(out, 2, value);
	pb_end(out, begun);
}

static int put_labels(const struct push_verb_options *values, struct slice name, struct strbuf *out,
		      struct err *err)
{
	size_t begun = pb_begin(out, 1);

	put_label(out, SLICE_LITERAL("__name__"), name);
	for (size_t i = 0; i < values->labels.count; i++) {
		struct slice value, key = slice_cut(slice_of(values->labels.items[i]), '=', &value);

		if (!key.len || !strchr(values->labels.items[i], '='))
			return err_set(err, ERR_INVALID, "--label: \"%s\" is not KEY=VALUE",
				       values->labels.items[i]);
		put_label(out, key, value);
	}
	pb_end(out, begun);
	return 0;
}

/* WriteRawRequest{ series = 2 { labels = 1; samples = 2 { raw_profile = 1 } } } */
static int put_request(const struct push_verb_options *values, struct slice name,
		       struct slice profile, struct strbuf *out, struct err *err)
{
	size_t series = pb_begin(out, 2), sample;
	int rc = put_labels(values, name, out, err);

	if (rc)
		return rc;
	sample = pb_begin(out, 2);
	pb_put_bytes(out, 1, profile);
	pb_end(out, sample);
	pb_end(out, series);
	return 0;
}

static bool may_retry(int rc, const struct net_reply *reply)
{
	if (rc)
		return true;
	return reply->grpc_status == GRPC_UNAVAILABLE;
}

static int send_once(struct net_client *client, struct slice request, struct net_reply *reply,
		     struct err *err)
{
	struct net_call call = {
		.method = "POST",
		.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
		.content_type = "application/grpc",
		.body = request,
		.headers = WRITE_SUMMARY_HEADER ": 1\r\n",
		.grpc = true,
		.timeout_ns = PUSH_TIMEOUT_NS,
		.body_bytes_max = ANSWER_BYTES_MAX,
	};
	int rc = net_client_call(client, &call, reply, err);

	if (rc)
		return rc;
	if (reply->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "the server answers HTTP %d", reply->status);
	if (reply->grpc_status != GRPC_OK)
		return err_set(err, ERR_INVALID, "the server refuses: %s", reply->grpc_message);
	return 0;
}

/* What the server says that it made of the file; others than ours say nothing. */
static void print_summary(const char *path, struct slice answer)
{
	struct pb_reader in = pb_reader_of(answer);
	struct pb_field field;

	printable_print(stdout, "%s: stored\n", path);
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == WRITE_SUMMARY_FIELD)
			printable_write(stdout, field.bytes);
}

/* A retry sends the same bytes, which count once. */
static int send_profile(struct net_client *client, const char *path, struct slice request,
			struct err *err)
{
	int64_t pause_ns = RETRY_PAUSE_NS;
	int rc = 0;

	for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		struct net_reply reply = { .grpc_status = -1 };

		rc = send_once(client, request, &reply, err);
		if (!rc)
			print_summary(path, strbuf_slice(&reply.body));
		strbuf_free(&reply.body);
		if (!rc || !may_retry(reply.status ? 0 : rc, &reply))
			return rc;
		if (attempt + 1 < ATTEMPTS_MAX) {
			int64_t wait_ns = reply.retry_after_ns ? reply.retry_after_ns : pause_ns;
			struct timespec wait = { wait_ns / CLOCK_NS_PER_S,
						 wait_ns % CLOCK_NS_PER_S };

			nanosleep(&wait, NULL);
			pause_ns *= 2;
		}
	}
	return rc;
}

/* The file's name without folders and without what follows the first dot. */
static struct slice stem_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct slice rest;

	return slice_cut(slice_of(slash ? slash + 1 : path), '.', &rest);
}

/* The name that the rule in --help gives to a profile. */
static int name_profile(struct slice file, struct slice stem, struct strbuf *ret, struct err *err)
{
	struct strbuf unpacked = { 0 };
	struct pprof profile;
	int rc = 0;

	pprof_init(&profile);
	if (compress_is_gzip(file)) {
		rc = compress_gunzip(file, UNPACKED_BYTES_MAX, &unpacked, err);
		file = strbuf_slice(&unpacked);
	}
	if (!rc)
		rc = pprof_decode(file, ELEMENTS_MAX, &profile, err);
	if (!rc)
		strbuf_add_slice(ret, ingest_default_name(&profile, stem));
	pprof_free(&profile);
	strbuf_free(&unpacked);
	return rc;
}

static int push_file(const struct push_verb_options *values, struct net_client *client,
		     const char *path, struct err *err)
{
	struct strbuf file = { 0 }, request = { 0 }, name = { 0 };
	int rc = whole_file_read(path, FILE_BYTES_MAX, &file, err);

	if (!rc && values->name)
		strbuf_add_text(&name, values->name);
	else if (!rc)
		rc = name_profile(strbuf_slice(&file), stem_of(path), &name, err);
	if (!rc)
		rc = put_request(values, strbuf_slice(&name), strbuf_slice(&file), &request, err);
	if (!rc)
		rc = send_profile(client, path, strbuf_slice(&request), err);
	strbuf_free(&file);
	strbuf_free(&request);
	strbuf_free(&name);
	return rc ? err_wrap(err, "%s", path) : 0;
}

static int run(int argc, char **argv)
{
	struct push_verb_options values = { 0 };
	struct option_operands operands;
	struct net_client *client;
	struct err err;
	int code = verb_parse(&verb_push, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (!operands.count) {
		err_set(&err, ERR_INVALID, "expected profile files, for example cpu.pb.gz");
		return verb_error(&verb_push, &err);
	}
	if (client_flags_open(&values.client, &client, &err))
		return verb_error(&verb_push, &err);
	code = VERB_OK;
	for (size_t i = 0; i < operands.count; i++)
		if (push_file(&values, client, operands.items[i], &err))
			code = verb_error(&verb_push, &err);
	net_client_free(client);
	return code;
}

const struct verb verb_push = { &spec, run, LOG_WARN };
