/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/cloud_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/client/rest.h"

#define ADDRESS "http://169.254.169.254"
#define ASK_NS CLOCK_NS_PER_S
#define ANSWER_BYTES_MAX ((uint64_t)64 << 10)
#define TOKEN_BYTES_MAX 512u
#define RETRY_NS (10 * CLOCK_NS_PER_S)
#define RETRY_MAX_NS (600 * CLOCK_NS_PER_S)
#define GCE_PATH "/computeMetadata/v1/instance/"
#define GCE_HEADERS "metadata-flavor: Google\r\n"
#define AZURE_PATH "/metadata/instance/compute?api-version=2021-02-01&format=json"

struct cloud_names {
	const char *provider; /* of the table; NULL = each of them */
	struct rest *rest;    /* the thread's */
	pthread_t thread;
	bool has_thread;
	_Atomic bool stops;
	struct lock lock; /* guards what follows */
	struct lock_condition changed;
	struct meta_labels found;
	unsigned rounds;
};

/* ---- requests ---- */

static int ask(struct cloud_names *names, const char *method, const char *target,
	       const char *headers, struct strbuf *ret, struct err *err)
{
	const struct rest_request request = { .method = method,
					      .target = target,
					      .headers = slice_of(headers),
					      .deadline_at_ns = clock_monotonic_ns() + ASK_NS,
					      .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	int rc;

	if (atomic_load(&names->stops))
		return err_set(err, ERR_CANCELLED, "%s: the request was abandoned", target);
	rc = rest_ask(names->rest, &request, &answer, err);
	if (rc)
		return rc;
	if (answer.status != 200)
		rc = err_set(err, ERR_UNAVAILABLE, "%s: status %d", target, answer.status);
	else
		strbuf_add_slice(ret, strbuf_slice(&answer.body));
	rest_answer_free(&answer);
	return rc;
}

/* What would break out of a header is no token. */
static bool is_token(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return text.len && text.len <= TOKEN_BYTES_MAX;
}

static int ask_aws(struct cloud_names *names, struct meta_labels *ret, struct err *err)
{
	struct strbuf token = { 0 }, headers = { 0 }, text = { 0 };
	int rc = ask(names, "PUT", "/latest/api/token",
		     "x-aws-ec2-metadata-token-ttl-seconds: 60\r\n", &token, err);

	if (!rc && !is_token(strbuf_slice(&token)))
		rc = err_set(err, ERR_INVALID, "aws: no token");
	strbuf_addf(&headers, "x-aws-ec2-metadata-token: %s\r\n", strbuf_text(&token));
	if (!rc)
		rc = ask(names, "GET", "/latest/dynamic/instance-identity/document",
			 strbuf_text(&headers), &text, err);
	if (!rc)
		rc = cloud_read_aws(strbuf_slice(&text), ret, err);
	strbuf_wipe(&token);
	strbuf_wipe(&headers);
	strbuf_free(&text);
	return rc;
}

static int ask_gce(struct cloud_names *names, struct meta_labels *ret, struct err *err)
{
	struct strbuf id = { 0 }, type = { 0 }, zone = { 0 };
	int rc = ask(names, "GET", GCE_PATH "id", GCE_HEADERS, &id, err);

	if (!rc)
		rc = ask(names, "GET", GCE_PATH "machine-type", GCE_HEADERS, &type, err);
	if (!rc)
		rc = ask(names, "GET", GCE_PATH "zone", GCE_HEADERS, &zone, err);
	if (!rc)
		rc = cloud_read_gce(strbuf_slice(&id), strbuf_slice(&type), strbuf_slice(&zone),
				    ret, err);
	strbuf_free(&id);
	strbuf_free(&type);
	strbuf_free(&zone);
	return rc;
}

static int ask_azure(struct cloud_names *names, struct meta_labels *ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = ask(names, "GET", AZURE_PATH, "metadata: true\r\n", &text, err);

	if (!rc)
		rc = cloud_read_azure(strbuf_slice(&text), ret, err);
	strbuf_free(&text);
	return rc;
}

static const struct provider {
	const char *name;
	int (*ask)(struct cloud_names *names, struct meta_labels *ret, struct err *err);
} providers[] = {
	{ "aws", ask_aws },
	{ "gce", ask_gce },
	{ "azure", ask_azure },
};

#define PROVIDERS (sizeof(providers) / sizeof(providers[0]))

/* ---- the thread ---- */

static bool ask_round(struct cloud_names *names, struct err *err)
{
	for (size_t i = 0; i < PROVIDERS; i++) {
		struct meta_labels found = { 0 };

		if (names->provider && strcmp(names->provider, providers[i].name) != 0)
			continue;
		if (providers[i].ask(names, &found, err)) {
			meta_labels_free(&found);
			continue;
		}
		lock_take(&names->lock);
		names->found = found;
		lock_give(&names->lock);
		return true;
	}
	return false;
}

static void *run(void *data)
{
	struct cloud_names *names = data;
	int64_t pause_ns = RETRY_NS;

	while (!atomic_load(&names->stops)) {
		struct err err = { 0 };
		bool is_known = ask_round(names, &err);
		int64_t until_ns = clock_monotonic_ns() + pause_ns;

		if (!is_known && !names->rounds && !atomic_load(&names->stops))
			log_warn("agent", "the cloud's metadata service does not answer",
				 "error=\"%s\"", err.message);
		lock_take(&names->lock);
		names->rounds++;
		lock_broadcast(&names->changed);
		while (!is_known && !atomic_load(&names->stops) &&
		       lock_wait_until(&names->changed, &names->lock, until_ns))
			continue;
		lock_give(&names->lock);
		if (is_known)
			break;
		pause_ns = pause_ns < RETRY_MAX_NS / 2 ? 2 * pause_ns : RETRY_MAX_NS;
	}
	return NULL;
}

/* ---- for others ---- */

static int find_provider(const char *name, const char **ret, struct err *err)
{
	*ret = NULL;
	if (!strcmp(name, "auto"))
		return 0;
	for (size_t i = 0; i < PROVIDERS; i++)
		if (!strcmp(name, providers[i].name))
			*ret = providers[i].name;
	return *ret ? 0
		    : err_set(err, ERR_INVALID,
			      "--metadata-cloud \"%s\" is not one of: off, auto, aws, gce, azure",
			      name);
}

int cloud_names_new(const struct cloud_names_options *options, struct cloud_names **ret,
		    struct err *err)
{
	struct cloud_names *names;
	const char *provider;
	int rc;

	*ret = NULL;
	if (!options->provider || !strcmp(options->provider, "off"))
		return 0;
	rc = find_provider(options->provider, &provider, err);
	if (rc)
		return rc;
	names = mem_new(struct cloud_names);
	names->provider = provider;
	lock_init(&names->lock, "cloud_names", LOCK_AGENT + 13);
	lock_condition_init(&names->changed);
	rc = rest_new(options->address ? options->address : ADDRESS, NULL, &names->rest, err);
	if (rc) {
		cloud_names_free(names);
		return err_wrap(err, "--metadata-cloud-address");
	}
	names->has_thread = !pthread_create(&names->thread, NULL, run, names);
	if (names->has_thread)
		pthread_setname_np(names->thread, "firn-cloud");
	*ret = names;
	return 0;
}

void cloud_names_free(struct cloud_names *names)
{
	if (!names)
		return;
	lock_take(&names->lock);
	atomic_store(&names->stops, true);
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
	if (names->rest)
		rest_end_by(names->rest, clock_monotonic_ns());
	if (names->has_thread)
		pthread_join(names->thread, NULL);
	rest_free(names->rest);
	meta_labels_free(&names->found);
	lock_condition_free(&names->changed);
	lock_free(&names->lock);
	free(names);
}

void cloud_names_find(struct cloud_names *names, struct meta_labels *ret)
{
	if (!names)
		return;
	lock_take(&names->lock);
	meta_labels_copy(ret, &names->found);
	lock_give(&names->lock);
}

void cloud_names_settle(struct cloud_names *names, int64_t timeout_ns)
{
	int64_t until_ns = clock_monotonic_ns() + timeout_ns;
	bool in_time = true;

	if (!names)
		return;
	lock_take(&names->lock);
	while (in_time && !names->rounds)
		in_time = lock_wait_until(&names->changed, &names->lock, until_ns);
	lock_give(&names->lock);
}
