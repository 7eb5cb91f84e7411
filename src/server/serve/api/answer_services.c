/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_services - GET /api/v1/services: the services of a range, with what CPU time each has over
 * time, its share of all, and who sends it.
 *
 * One time series by service is asked for of each name of profiles, of the types with that name the
 * one that is CPU time, if any. A service that is sampled in several ways would be counted twice:
 * its cores are of the agent's samples where there are some, else of the first type in order.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "codec/wire/json.h"
#include "config/units.h"
#include "model/service.h"
#include "server/query/work.h"
#include "server/serve/api/query_request.h"
#include "server/serve/api/service_senders.h"

#define STEPS_DEFAULT 60
#define STEPS_MAX 1000
#define LIMIT_DEFAULT 500

struct entry {
	struct slice name;
	double *cores;	     /* by step; NULL: no CPU time is known */
	uint8_t *is_there;   /* likewise */
	double cpu_ns;	     /* the sum */
	int64_t newest_ns;   /* start of the last step in which a report starts */
	uint64_t profiles;   /* bit i: it has the listing's type i */
	struct slice sender; /* of what has the CPU time: the type's name */
};

struct listing {
	struct query_request *query;
	struct query_type *types; /* one for each name, CPU time of the agent first */
	size_t types_count;
	int64_t first_ns, step_ns;
	size_t steps;
	uint8_t *is_covered; /* by step: some CPU time is known */
	struct entry *list;
	size_t count, capacity;
	struct idmap map;
	struct err *err;
};

static bool is_of_samples(const struct profile_type *type)
{
	return slice_is(type->sample_unit, "count") && slice_is(type->sample_type, "samples") &&
	       slice_is(type->period_type, "cpu") && slice_is(type->period_unit, "nanoseconds");
}

/* CPU time, or samples of it that are worth their period. */
static bool is_cpu(const struct profile_type *type)
{
	return type->delta && (is_of_samples(type) || (slice_is(type->sample_type, "cpu") &&
						       slice_is(type->sample_unit, "nanoseconds")));
}

static int type_rank(const struct profile_type *type)
{
	return is_cpu(type) ? !slice_is(type->name, "on_cpu") : 2;
}

static int type_order(const void *left, const void *right)
{
	const struct profile_type *a = &((const struct query_type *)left)->type;
	const struct profile_type *b = &((const struct query_type *)right)->type;
	int order = type_rank(a) - type_rank(b);

	if (!order)
		order = slice_compare(a->name, b->name);
	return order ? order : (int)is_of_samples(a) - (int)is_of_samples(b);
}

/* Keeps the first type of each name. */
static void choose_types(struct listing *listing)
{
	size_t kept = 0;

	if (listing->types_count)
		qsort(listing->types, listing->types_count, sizeof(*listing->types), type_order);
	for (size_t i = 0; i < listing->types_count && kept < 64; i++) {
		bool known = false;

		for (size_t k = 0; k < kept; k++)
			known |= slice_equal(listing->types[k].type.name,
					     listing->types[i].type.name);
		if (!known)
			listing->types[kept++] = listing->types[i];
	}
	listing->types_count = kept;
}

static bool is_entry(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct listing *)context)->list[id].name,
			   *(const struct slice *)key);
}

static struct entry *entry_of(struct listing *listing, struct slice name)
{
	uint64_t hash = hash_bytes(name.data, name.len);
	struct arena *arena = &listing->query->asked.arena;
	uint32_t id = idmap_find(&listing->map, hash, is_entry, listing, &name);

	if (id == IDMAP_NONE) {
		if (!WORK_GROW(arena, listing->list, listing->count, listing->capacity))
			return NULL;
		id = (uint32_t)listing->count;
		listing->list[listing->count++] =
			(struct entry){ .name = arena_copy(arena, name), .newest_ns = INT64_MIN };
		idmap_add(&listing->map, hash, id);
	}
	return &listing->list[id];
}

static int add_line(struct listing *listing, const struct query_series *line, size_t type)
{
	struct slice name =
		line->labels_count ? line->labels[0].value : SLICE_LITERAL(SERVICE_UNKNOWN);
	struct arena *arena = &listing->query->asked.arena;
	struct entry *entry = entry_of(listing, name);
	bool counts = entry && !entry->cores && is_cpu(&listing->types[type].type);

	if (counts) {
		entry->cores = arena_new_array(arena, double, listing->steps);
		entry->is_there = arena_new_array(arena, uint8_t, listing->steps);
		entry->sender = listing->types[type].type.name;
	}
	if (!entry || (counts && (!entry->cores || !entry->is_there)))
		return err_set(listing->err, ERR_NO_MEMORY, "list services: out of memory");
	entry->profiles |= 1ull << type;
	for (size_t i = 0; i < line->points_count; i++) {
		const struct query_point *point = &line->points[i];
		size_t step = (size_t)((point->at_ns - listing->first_ns) / listing->step_ns);

		if (point->reports && point->at_ns > entry->newest_ns)
			entry->newest_ns = point->at_ns;
		if (!counts || point->at_ns < listing->first_ns || step >= listing->steps)
			continue;
		entry->cores[step] = point->per_second / 1e9;
		entry->is_there[step] = listing->is_covered[step] = 1;
		entry->cpu_ns += (double)point->value;
	}
	return 0;
}

static int add_type(struct listing *listing, size_t type)
{
	struct query_request *query = listing->query;
	const struct profile_type *asked = &listing->types[type].type;
	struct query_range_params range;
	struct query_series_set set;
	int rc;

	query->asked.selector.has_type = true;
	query->asked.selector.type = *asked;
	range = (struct query_range_params){ .base = query->asked.params,
					     .step_ns = listing->step_ns,
					     .spread = true };
	range.base.selector = &query->asked.selector;
	range.base.group_by[0] = SLICE_LITERAL(SERVICE_LABEL);
	range.base.group_by_count = 1;
	range.base.by_period = is_of_samples(asked);
	query_request_forget(query);
	rc = query_request_series(query, &range, &set, listing->err);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < set.series_count; i++)
		rc = add_line(listing, &set.series[i], type);
	query_series_free(&set);
	return rc;
}

static int by_cpu(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->cpu_ns != b->cpu_ns)
		return a->cpu_ns < b->cpu_ns ? 1 : -1;
	return slice_compare(a->name, b->name);
}

static void put_cores(struct json *json, const struct listing *listing, const struct entry *entry)
{
	json_member_array(json, "cores");
	for (size_t i = 0; entry->cores && i < listing->steps; i++) {
		if (entry->is_there[i])
			json_put_double(json, entry->cores[i]);
		else if (listing->is_covered[i])
			json_put_int(json, 0);
		else
			json_put_null(json);
	}
	json_close_array(json);
}

/* Those of the service, which stand together in the list. */
static void put_senders(struct json *json, const struct service_sender *list, size_t count,
			struct slice service, int64_t *newest_ns)
{
	size_t low = 0, high = count;

	service = service_senders_name(service);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slice_compare(slice_of(list[middle].service), service) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	json_member_array(json, "senders");
	for (; low < count && slice_is(service, list[low].service); low++) {
		json_open_object(json);
		json_member_text(json, "sender", list[low].sender);
		json_member_int(json, "last_ms", list[low].last_at_ns / CLOCK_NS_PER_MS);
		json_close_object(json);
		if (list[low].newest_ns > *newest_ns)
			*newest_ns = list[low].newest_ns;
	}
	json_close_array(json);
}

/* What the shares are of, and how long CPU time is known for. */
struct whole {
	double cpu_ns, seconds;
};

static struct whole whole_of(const struct listing *listing)
{
	const struct query_params *params = &listing->query->asked.params;
	struct whole whole = { 0 };

	for (size_t i = 0; i < listing->count; i++)
		whole.cpu_ns += listing->list[i].cpu_ns;
	for (size_t i = 0; i < listing->steps; i++) {
		int64_t from_ns = listing->first_ns + (int64_t)i * listing->step_ns;
		int64_t to_ns = from_ns + listing->step_ns;

		from_ns = from_ns < params->from_ns ? params->from_ns : from_ns;
		to_ns = to_ns > params->to_ns ? params->to_ns : to_ns;
		if (listing->is_covered[i])
			whole.seconds += (double)(to_ns - from_ns) / 1e9;
	}
	return whole;
}

static void put_entry(struct json *json, const struct listing *listing, const struct entry *entry,
		      const struct whole *whole, const struct service_sender *senders,
		      size_t senders_count)
{
	int64_t newest_ns = entry->newest_ns;

	json_open_object(json);
	json_member_string(json, "service", entry->name);
	json_put_key(json, "cores_mean");
	if (entry->cores && whole->seconds > 0)
		json_put_double(json, entry->cpu_ns / 1e9 / whole->seconds);
	else
		json_put_null(json);
	json_put_key(json, "share");
	if (entry->cores && whole->cpu_ns > 0)
		json_put_double(json, entry->cpu_ns / whole->cpu_ns);
	else
		json_put_null(json);
	put_cores(json, listing, entry);
	json_member_string(json, "cores_of", entry->sender);
	json_member_array(json, "types");
	for (size_t i = 0; i < listing->types_count; i++) {
		struct strbuf text = { 0 };

		if (!((entry->profiles >> i) & 1))
			continue;
		profile_type_format(&text, &listing->types[i].type);
		json_put_string(json, strbuf_slice(&text));
		strbuf_free(&text);
	}
	json_close_array(json);
	put_senders(json, senders, senders_count, entry->name, &newest_ns);
	json_member_int(json, "newest_ms", newest_ns / CLOCK_NS_PER_MS);
	json_close_object(json);
}

static void put_listing(const struct listing *listing, uint64_t limit, struct strbuf *out)
{
	struct whole whole = whole_of(listing);
	struct query_request *query = listing->query;
	size_t shown = limit < listing->count ? (size_t)limit : listing->count, senders_count;
	struct service_sender *senders =
		service_senders_list(query->serve->service_senders, query->tenant, &senders_count);
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	json_member_int(&json, "from_ms", listing->first_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "to_ms", query->asked.params.to_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "step_ms", listing->step_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "now_ms", clock_real_ns() / CLOCK_NS_PER_MS);
	json_put_key(&json, "cores_mean");
	json_put_double(&json, whole.seconds > 0 ? whole.cpu_ns / 1e9 / whole.seconds : 0);
	json_member_uint(&json, "left_out", listing->count - shown);
	json_member_array(&json, "services");
	for (size_t i = 0; i < shown; i++)
		put_entry(&json, listing, &listing->list[i], &whole, senders, senders_count);
	json_close_array(&json);
	json_close_object(&json);
	free(senders);
}

static int read_parameters(struct listing *listing, const struct net_request *request,
			   uint64_t *ret_limit)
{
	struct query_request *query = listing->query;
	struct slice step = parameters_text(&query->asked, request, "step", "");
	struct slice limit = parameters_text(&query->asked, request, "limit", "");
	int64_t range_ns = query->asked.params.to_ns - query->asked.params.from_ns, rest;

	*ret_limit = LIMIT_DEFAULT;
	if (limit.len && (!slice_parse_u64(limit, ret_limit) || !*ret_limit))
		return err_set(listing->err, ERR_INVALID,
			       "parameter \"limit\": not a number of services: \"%.*s\"",
			       (int)limit.len, limit.data);
	listing->step_ns = flamechart_round_step(range_ns, STEPS_DEFAULT);
	if (step.len && units_parse_duration(step, &listing->step_ns, listing->err))
		return err_wrap(listing->err, "parameter \"step\"");
	if (listing->step_ns < CLOCK_NS_PER_MS || range_ns / listing->step_ns >= STEPS_MAX)
		return err_set(listing->err, ERR_LIMIT, "parameter \"step\": more than %d steps",
			       STEPS_MAX);
	rest = query->asked.params.from_ns % listing->step_ns;
	listing->first_ns =
		query->asked.params.from_ns - (rest < 0 ? rest + listing->step_ns : rest);
	if (query->asked.params.to_ns > listing->first_ns)
		listing->steps = (size_t)((query->asked.params.to_ns - 1 - listing->first_ns) /
					  listing->step_ns) +
				 1;
	listing->is_covered = arena_new_array(&query->asked.arena, uint8_t, listing->steps + 1);
	return listing->is_covered
		       ? 0
		       : err_set(listing->err, ERR_NO_MEMORY, "list services: out of memory");
}

static int list_all(struct listing *listing)
{
	struct query_request *query = listing->query;
	int rc = query_types(&query->source, query->asked.params.from_ns, query->asked.params.to_ns,
			     &query->asked.arena, &listing->types, &listing->types_count,
			     listing->err);

	if (rc)
		return rc;
	choose_types(listing);
	for (size_t i = 0; !rc && i < listing->types_count; i++)
		rc = add_type(listing, i);
	if (!rc && listing->count)
		qsort(listing->list, listing->count, sizeof(*listing->list), by_cpu);
	return rc;
}

void answer_services(void *context, const struct net_request *request,
		     struct net_response *response)
{
	struct query_request query;
	struct err err;
	struct listing listing = { .query = &query, .err = &err };
	uint64_t limit;
	int rc;

	if (query_request_begin(context, request, PARAMETERS_SELECTOR_OPTIONAL, &query, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	if (query.asked.selector.has_type)
		rc = err_set(&err, ERR_INVALID,
			     "parameter \"query\": expected label matchers without a type");
	else
		rc = read_parameters(&listing, request, &limit);
	if (!rc)
		rc = list_all(&listing);
	if (rc) {
		net_response_error(request, response, &err);
	} else {
		response->content_type = "application/json";
		put_listing(&listing, limit, &response->body);
	}
	idmap_free(&listing.map);
	query_request_end(&query);
}
