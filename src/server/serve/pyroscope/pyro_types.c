/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/pyroscope/pyro_types.h"

#include "base/regex.h"

#define OWN_CPU "on_cpu"
#define THEIR_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static struct slice id_of(const struct profile_type *type, struct arena *arena)
{
	struct profile_type without_delta = *type;
	struct strbuf id = { 0 };
	struct slice text;

	without_delta.delta = false;
	profile_type_format(&id, &without_delta);
	text = arena_copy(arena, strbuf_slice(&id));
	strbuf_free(&id);
	return text;
}

/* If a gauge and a delta have the same name here, the delta (query.h: deltas_first). */
static bool is_hidden(const struct query_type *types, size_t count, const struct profile_type *type)
{
	struct profile_type delta = *type;

	delta.delta = true;
	for (size_t i = 0; !type->delta && i < count; i++)
		if (profile_type_equal(&types[i].type, &delta))
			return true;
	return false;
}

/* What is there, with CPU time under the name by which Pyroscope's users know it. */
static size_t add_known(const struct query_type *types, size_t count, struct arena *arena,
			struct pyro_type *ret)
{
	bool has_own = false, has_theirs = false;
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_hidden(types, count, &types[i].type))
			continue;
		ret[known++] = (struct pyro_type){ types[i].type, id_of(&types[i].type, arena) };
		has_own |= slice_is(types[i].type.name, OWN_CPU);
		has_theirs |= slice_is(ret[known - 1].id, THEIR_CPU);
	}
	if (has_own && !has_theirs) {
		ret[known].id = SLICE_LITERAL(THEIR_CPU);
		profile_type_parse(ret[known].id, &ret[known].type, NULL);
		known++;
	}
	return known;
}

static int list_all(struct query_request *query, struct pyro_type **ret, size_t *ret_count,
		    struct err *err)
{
	struct query_type *types;
	size_t count;
	int rc = query_types(&query->source, query->asked.params.from_ns, query->asked.params.to_ns,
			     &query->asked.arena, &types, &count, err);

	if (rc)
		return rc;
	*ret = arena_new_array(&query->asked.arena, struct pyro_type, count + 1);
	if (!*ret)
		return err_set(err, ERR_LIMIT, "too many profile types");
	*ret_count = add_known(types, count, &query->asked.arena, *ret);
	return 0;
}

int pyro_types_list(struct query_request *query, const struct pyro_types *meant,
		    struct pyro_type **ret, size_t *ret_count, struct err *err)
{
	if (!meant->chosen)
		return list_all(query, ret, ret_count, err);
	*ret = meant->list;
	*ret_count = meant->count;
	return 0;
}

static bool fits(const struct matcher *matchers, size_t count, struct slice id)
{
	for (size_t i = 0; i < count; i++)
		if (!matcher_matches(&matchers[i], id))
			return false;
	return true;
}

/* Takes those of __profile_type__ out of the selector; they are for the caller to free. */
static struct matcher *take_matchers(struct selector *selector, struct arena *arena, size_t *ret)
{
	struct matcher *taken = arena_new_array(arena, struct matcher, selector->matchers_count);
	size_t kept = 0;

	*ret = 0;
	for (size_t i = 0; taken && i < selector->matchers_count; i++) {
		if (slice_is(selector->matchers[i].name, PYRO_TYPE_LABEL))
			taken[(*ret)++] = selector->matchers[i];
		else
			selector->matchers[kept++] = selector->matchers[i];
	}
	if (taken)
		selector->matchers_count = kept;
	return taken;
}

static void free_matchers(struct matcher *matchers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		regex_free(matchers[i].regex);
}

/* Those that are there, once the snapshot is no longer one of the label, which nothing has. */
static int choose(struct query_request *query, const struct matcher *matchers, size_t count,
		  struct pyro_types *ret, struct err *err)
{
	struct pyro_type *all;
	size_t all_count;
	int rc = query_request_list(query, err);

	if (!rc)
		rc = list_all(query, &all, &all_count, err);
	if (rc)
		return rc;
	*ret = (struct pyro_types){ .chosen = true, .list = all };
	for (size_t i = 0; i < all_count; i++)
		if (fits(matchers, count, all[i].id))
			ret->list[ret->count++] = all[i];
	return 0;
}

int pyro_types_match(struct query_request *query, struct pyro_types *ret, struct err *err)
{
	struct selector *selector = &query->asked.selector;
	struct matcher *matchers;
	size_t count;
	int rc = 0;

	*ret = (struct pyro_types){ 0 };
	matchers = take_matchers(selector, &query->asked.arena, &count);
	if (!count)
		return 0;
	if (!selector->has_type)
		rc = choose(query, matchers, count, ret, err);
	else if (!fits(matchers, count, id_of(&selector->type, &query->asked.arena)))
		rc = err_set(err, ERR_INVALID,
			     "the matcher of " PYRO_TYPE_LABEL " does not fit the profile type");
	free_matchers(matchers, count);
	return rc;
}
