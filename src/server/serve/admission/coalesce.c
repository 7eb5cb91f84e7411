/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/coalesce.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

/* Waits for another's answer; on the stack of who asks. */
struct follower {
	struct follower *next;
	struct net_response *response;
	bool is_done; /* it was told something: */
	bool is_answered;
	struct lock_condition wake;
};

struct coalesce_lead {
	struct coalesce_lead *next; /* of those that others can join */
	struct strbuf key;
	struct follower *followers; /* the oldest first */
};

struct coalesce {
	struct lock lock; /* guards the rest, leads and followers */
	struct admission *admission;
	struct coalesce_lead *open;
};

static METRIC_COUNTER(shared_total, "firn_queries_shared_total", "",
		      "Queries that were answered by the answer to another one like them.");

struct coalesce *coalesce_new(struct admission *admission)
{
	static struct metric *const metrics[] = { &shared_total };
	struct coalesce *coalesce = mem_new(struct coalesce);

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	lock_init(&coalesce->lock, "coalesce", LOCK_SERVE);
	coalesce->admission = admission;
	return coalesce;
}

void coalesce_free(struct coalesce *coalesce)
{
	if (!coalesce)
		return;
	lock_free(&coalesce->lock);
	free(coalesce);
}

struct parameter {
	struct slice name; /* of an arena, as the next */
	struct slice value;
	size_t place;
};

static int by_name(const void *a, const void *b)
{
	const struct parameter *left = a, *right = b;
	int order = slice_compare(left->name, right->name);

	return order ? order : (left->place > right->place) - (left->place < right->place);
}

static bool makes_the_answer(struct slice name)
{
	return !slice_is(name, "id") && !slice_is(name, "from") && !slice_is(name, "to") &&
	       !slice_is(name, "at");
}

static void add_part(struct strbuf *out, struct slice part)
{
	strbuf_add_varint(out, part.len);
	strbuf_add_slice(out, part);
}

static bool read_parameters(struct slice query, struct arena *arena, struct parameter *ret,
			    size_t *ret_count)
{
	struct strbuf name = { 0 }, value = { 0 };
	size_t count = 0;
	int rc;

	while ((rc = net_parameter_next(&query, &name, &value)) > 0) {
		if (!makes_the_answer(strbuf_slice(&name)))
			continue;
		if (count == COALESCE_PARAMETERS_MAX)
			break;
		ret[count] = (struct parameter){ arena_copy(arena, strbuf_slice(&name)),
						 arena_copy(arena, strbuf_slice(&value)), count };
		count++;
	}
	strbuf_free(&name);
	strbuf_free(&value);
	*ret_count = count;
	return !rc;
}

bool coalesce_key(const struct net_request *request, struct slice tenant, struct slice times,
		  struct strbuf *ret)
{
	struct parameter parameters[COALESCE_PARAMETERS_MAX];
	struct arena arena;
	size_t count;
	bool is_known;

	if (request->rpc != NET_RPC_NONE || request->body.len)
		return false;
	arena_init(&arena, 0);
	is_known = read_parameters(request->query, &arena, parameters, &count);
	if (is_known) {
		qsort(parameters, count, sizeof(*parameters), by_name);
		add_part(ret, request->method);
		add_part(ret, request->path);
		add_part(ret, tenant);
		add_part(ret, times);
		for (size_t i = 0; i < count; i++) {
			add_part(ret, parameters[i].name);
			add_part(ret, parameters[i].value);
		}
	}
	arena_free(&arena);
	return is_known;
}

static struct coalesce_lead *find(const struct coalesce *coalesce, struct slice key)
{
	struct coalesce_lead *lead = coalesce->open;

	lock_assert_held(&coalesce->lock);
	while (lead && !slice_equal(strbuf_slice(&lead->key), key))
		lead = lead->next;
	return lead;
}

static struct coalesce_lead *begin_lead(struct coalesce *coalesce, struct slice key)
{
	struct coalesce_lead *lead = mem_new(struct coalesce_lead);

	strbuf_add_slice(&lead->key, key);
	lead->next = coalesce->open;
	coalesce->open = lead;
	return lead;
}

/* Where the list has it, or ends: they are few. */
static struct follower **place_of(struct coalesce_lead *lead, const struct follower *follower)
{
	struct follower **at = &lead->followers;

	while (*at && *at != follower)
		at = &(*at)->next;
	return at;
}

/* While it is in the list the lead is there: it is told something before that goes. */
static int follow(struct coalesce *coalesce, const struct admission_ask *ask,
		  struct coalesce_lead *lead, struct follower *follower, struct err *err)
{
	int rc;

	lock_assert_held(&coalesce->lock);
	follower->is_done = false;
	follower->next = NULL;
	*place_of(lead, NULL) = follower;
	rc = admission_wait(ask, &coalesce->lock, &follower->wake, &follower->is_done, err);
	if (rc)
		*place_of(lead, follower) = follower->next;
	return rc;
}

int coalesce_enter(struct coalesce *coalesce, struct slice key, const struct admission_ask *ask,
		   struct net_response *response, struct coalesce_lead **ret, struct err *err)
{
	struct follower follower = { .response = response };
	struct coalesce_lead *lead;
	struct admission_seat *place = NULL;
	int rc = 0;

	*ret = NULL;
	lock_condition_init(&follower.wake);
	lock_take(&coalesce->lock);
	while (!rc && !follower.is_answered) {
		lead = find(coalesce, key);
		if (!lead) {
			*ret = begin_lead(coalesce, key);
			break;
		}
		if (!place)
			rc = admission_join(coalesce->admission, ask, &place, err);
		if (!rc)
			rc = follow(coalesce, ask, lead, &follower, err);
	}
	lock_give(&coalesce->lock);
	if (place)
		admission_leave(coalesce->admission, place);
	lock_condition_free(&follower.wake);
	return rc;
}

static void close_lead(struct coalesce *coalesce, struct coalesce_lead *lead)
{
	struct coalesce_lead **at = &coalesce->open;

	lock_assert_held(&coalesce->lock);
	while (*at && *at != lead)
		at = &(*at)->next;
	if (*at)
		*at = lead->next;
}

void coalesce_close(struct coalesce *coalesce, struct coalesce_lead *lead)
{
	lock_take(&coalesce->lock);
	close_lead(coalesce, lead);
	lock_give(&coalesce->lock);
}

void coalesce_finish(struct coalesce *coalesce, struct coalesce_lead *lead,
		     const struct net_response *response)
{
	size_t room = COALESCE_BYTES_MAX;

	lock_take(&coalesce->lock);
	close_lead(coalesce, lead);
	for (struct follower *at = lead->followers, *next; at; at = next) {
		next = at->next;
		if (response && response->body.len <= room) {
			room -= response->body.len;
			net_response_copy(response, at->response);
			at->is_answered = true;
			metric_add(&shared_total, 1);
		}
		at->is_done = true;
		lock_signal(&at->wake);
	}
	lock_give(&coalesce->lock);
	strbuf_free(&lead->key);
	free(lead);
}
