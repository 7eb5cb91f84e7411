/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_targets - Parca's ScrapeService (parca/scrape/v1alpha1/scrape.proto): whom the server asks
 * for profiles. Its answer has a map by job, which the tables of schema.h have no word for: the
 * JSON gateway's form is written here, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "codec/wire/json.h"
#include "codec/wire/pb.h"
#include "server/scrape/scrape.h"
#include "server/serve/serve.h"
#include "server/serve/tenant.h"

enum state { STATE_ANY, STATE_ACTIVE, STATE_DROPPED, STATES };

static const char *const state_names[STATES] = { "STATE_ANY_UNSPECIFIED", "STATE_ACTIVE",
						 "STATE_DROPPED" };

static bool is_shown(const struct rule_label *label, bool public_only)
{
	return !public_only || target_labels_is_public(label->name);
}

/* Protobuf: TargetsResponse{ targets = 1: map of job to Targets{ targets = 1 } } */

struct writing_pb {
	struct strbuf *out;
	struct strbuf job; /* Targets of the job that is being written */
};

/* LabelSet{ labels = 1: Label{ name = 1; value = 2 } } */
static void put_labels(struct strbuf *out, uint32_t field, const struct label_list *list,
		       bool public_only)
{
	size_t set = pb_begin(out, field);

	for (size_t i = 0; i < list->count; i++) {
		size_t label;

		if (!is_shown(&list->labels[i], public_only))
			continue;
		label = pb_begin(out, 1);
		pb_put_bytes(out, 1, list->labels[i].name);
		pb_put_bytes(out, 2, list->labels[i].value);
		pb_end(out, label);
	}
	pb_end(out, set);
}

static void put_discovered(struct strbuf *out, const struct scrape_origin *origin,
			   const struct scrape_job *job)
{
	struct label_list list = scrape_origin_labels(origin, job, out->len);

	put_labels(out, 1, &list, false);
	label_list_free(&list);
}

/* Timestamp or Duration{ seconds = 1; nanos = 2 } */
static void put_ns(struct strbuf *out, uint32_t field, int64_t ns)
{
	size_t begun = pb_begin(out, field);

	pb_put_varint(out, 1, (uint64_t)(ns / CLOCK_NS_PER_S));
	pb_put_varint(out, 2, (uint64_t)(ns % CLOCK_NS_PER_S));
	pb_end(out, begun);
}

static void put_active(void *context, const struct scrape_target *target)
{
	struct strbuf *out = &((struct writing_pb *)context)->job;
	size_t begun = pb_begin(out, 1);

	put_discovered(out, &target->origin, target->job);
	put_labels(out, 2, &target->after, true);
	pb_put_bytes(out, 3, slice_of(target->error ? target->error : ""));
	if (target->last_at_ns) {
		put_ns(out, 4, target->last_at_ns);
		put_ns(out, 5, target->last_duration_ns);
	}
	pb_put_bytes(out, 6, slice_of(target->url));
	pb_put_varint(out, 7, target->health);
	pb_end(out, begun);
}

static void put_dropped(void *context, const struct scrape_job *job,
			const struct scrape_dropped *dropped)
{
	struct strbuf *out = &((struct writing_pb *)context)->job;
	size_t begun = pb_begin(out, 1);

	put_discovered(out, &dropped->origin, job);
	pb_end(out, begun);
}

static void put_job(void *context, const struct scrape_job *job, size_t active, size_t dropped)
{
	struct writing_pb *writing = context;
	size_t entry = pb_begin(writing->out, 1);

	(void)active;
	(void)dropped;
	pb_put_bytes(writing->out, 1, job->name);
	pb_put_bytes_always(writing->out, 2, strbuf_slice(&writing->job));
	pb_end(writing->out, entry);
	strbuf_clear(&writing->job);
}

/* The file is the operator's: other tenants have no such targets. */
static int scrape_of(const struct serve *serve, const struct net_request *request,
		     struct scrape **ret, struct err *err)
{
	struct slice tenant;
	int rc = tenant_of(serve, request, &tenant, err);

	if (!rc)
		*ret = tenant.len ? NULL : serve->scrape;
	return rc;
}

/* TargetsRequest{ state = 1 } */
static int read_state(struct slice body, uint64_t *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(body);
	struct pb_field field;

	*ret = STATE_ANY;
	while (pb_next(&in, &field))
		if (field.wire == PB_VARINT && field.number == 1)
			*ret = field.value;
	if (in.problem)
		return pb_fail(&in, "TargetsRequest", err);
	return *ret < STATES ? 0 : err_set(err, ERR_INVALID, "TargetsRequest: unknown state");
}

void rpc_targets(void *context, const struct net_request *request, struct net_response *response)
{
	struct writing_pb writing = { .out = &response->body };
	struct scrape_visitor visitor = { .job = put_job, .context = &writing };
	struct scrape *scrape;
	uint64_t state;
	struct err err;

	if (scrape_of(context, request, &scrape, &err) || read_state(request->body, &state, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	visitor.active = state == STATE_DROPPED ? NULL : put_active;
	visitor.dropped = state == STATE_ACTIVE ? NULL : put_dropped;
	if (scrape)
		scrape_visit(scrape, &visitor);
	strbuf_free(&writing.job);
}

/* JSON: all of a job in one object */

struct writing_json {
	struct json json;
	struct slice job; /* whose list is open */
};

static void open_job(struct writing_json *writing, const struct scrape_job *job)
{
	if (writing->job.data == job->name.data)
		return;
	json_put_key_slice(&writing->json, job->name);
	json_open_object(&writing->json);
	json_member_array(&writing->json, "targets");
	writing->job = job->name;
}

static void write_labels(struct json *json, const char *key, const struct label_list *list,
			 bool public_only)
{
	json_member_object(json, key);
	json_member_array(json, "labels");
	for (size_t i = 0; i < list->count; i++) {
		if (!is_shown(&list->labels[i], public_only))
			continue;
		json_open_object(json);
		json_member_string(json, "name", list->labels[i].name);
		json_member_string(json, "value", list->labels[i].value);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void write_discovered(struct json *json, const struct scrape_origin *origin,
			     const struct scrape_job *job)
{
	struct label_list list = scrape_origin_labels(origin, job, json->out->len);

	write_labels(json, "discoveredLabels", &list, false);
	label_list_free(&list);
}

static void write_times(struct json *json, const struct scrape_target *target)
{
	time_t seconds = (time_t)(target->last_at_ns / CLOCK_NS_PER_S);
	char day[32], text[64];
	struct tm tm;

	if (!target->last_at_ns) {
		json_put_key(json, "lastScrape");
		json_put_null(json);
		json_put_key(json, "lastScrapeDuration");
		json_put_null(json);
		return;
	}
	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%09" PRId64 "Z", day,
		 (int64_t)(target->last_at_ns % CLOCK_NS_PER_S));
	json_member_text(json, "lastScrape", text);
	snprintf(text, sizeof(text), "%" PRId64 ".%09" PRId64 "s",
		 (int64_t)(target->last_duration_ns / CLOCK_NS_PER_S),
		 (int64_t)(target->last_duration_ns % CLOCK_NS_PER_S));
	json_member_text(json, "lastScrapeDuration", text);
}

static void write_active(void *context, const struct scrape_target *target)
{
	static const char *const health[] = { "HEALTH_UNKNOWN_UNSPECIFIED", "HEALTH_GOOD",
					      "HEALTH_BAD" };
	struct writing_json *writing = context;
	struct json *json = &writing->json;

	open_job(writing, target->job);
	json_open_object(json);
	write_discovered(json, &target->origin, target->job);
	write_labels(json, "labels", &target->after, true);
	json_member_text(json, "lastError", target->error ? target->error : "");
	write_times(json, target);
	json_member_text(json, "url", target->url);
	json_member_text(json, "health", health[target->health]);
	json_close_object(json);
}

static void write_dropped(void *context, const struct scrape_job *job,
			  const struct scrape_dropped *dropped)
{
	struct writing_json *writing = context;

	open_job(writing, job);
	json_open_object(&writing->json);
	write_discovered(&writing->json, &dropped->origin, job);
	json_close_object(&writing->json);
}

static void close_job(void *context, const struct scrape_job *job, size_t active, size_t dropped)
{
	struct writing_json *writing = context;

	(void)active;
	(void)dropped;
	open_job(writing, job);
	json_close_array(&writing->json);
	json_close_object(&writing->json);
	writing->job.data = NULL;
}

/* The parameter is a name or a number of the enumeration. */
static int state_parameter(const struct net_request *request, enum state *ret, struct err *err)
{
	struct strbuf text = { 0 };
	char number[2] = { '0', 0 };
	bool is_known;

	*ret = STATE_ANY;
	is_known = !net_request_parameter(request, "state", 0, &text) || !text.len;
	for (int i = 0; i < STATES && !is_known; i++) {
		number[0] = (char)('0' + i);
		is_known = !strcmp(strbuf_text(&text), state_names[i]) ||
			   !strcmp(strbuf_text(&text), number);
		*ret = (enum state)i;
	}
	strbuf_free(&text);
	return is_known ? 0 : err_set(err, ERR_INVALID, "parameter \"state\" is not a state");
}

void answer_parca_targets(void *context, const struct net_request *request,
			  struct net_response *response)
{
	struct writing_json writing = { .job = { NULL, 0 } };
	struct scrape_visitor visitor = { .job = close_job, .context = &writing };
	struct scrape *scrape;
	enum state state;
	struct err err;

	if (scrape_of(context, request, &scrape, &err) || state_parameter(request, &state, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	visitor.active = state == STATE_DROPPED ? NULL : write_active;
	visitor.dropped = state == STATE_ACTIVE ? NULL : write_dropped;
	response->content_type = "application/json";
	json_begin(&writing.json, &response->body);
	json_open_object(&writing.json);
	json_member_object(&writing.json, "targets");
	if (scrape)
		scrape_visit(scrape, &visitor);
	json_close_object(&writing.json);
	json_close_object(&writing.json);
}
