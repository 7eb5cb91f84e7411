/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/pyroscope/pyro_request.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec/wire/pb.h"
#include "config/units.h"
#include "base/regex.h"
#include "server/query/series_part.h"

/* Location{ name = 1 } */
static int add_call(const struct pb_reader *outer, struct slice bytes, struct pyro_request *ret,
		    struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	if (ret->call_site_count == PYRO_CALL_SITE_MAX)
		return err_set(err, ERR_LIMIT, "call_site: more than %d", PYRO_CALL_SITE_MAX);
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			ret->call_site[ret->call_site_count] = field.bytes;
	ret->call_site_count++;
	return in.problem ? pb_fail(&in, "Location", err) : 0;
}

/* StackTraceSelector{ call_site = 1; go_pgo = 2 } */
static int read_stack_selector(const struct pb_reader *outer, struct slice bytes,
			       struct pyro_request *ret, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		int rc = 0;

		if (field.wire == PB_BYTES && field.number == 1)
			rc = add_call(&in, field.bytes, ret, err);
		else if (field.wire == PB_BYTES && field.number == 2)
			rc = err_set(err, ERR_UNSUPPORTED,
				     "go_pgo: ask for the whole profile; Go's compiler reads it");
		if (rc)
			return rc;
	}
	return in.problem ? pb_fail(&in, "StackTraceSelector", err) : 0;
}

static const char *const id_labels[PYRO_IDS] = {
	[PYRO_SPAN] = PYRO_SPAN_LABEL, [PYRO_TRACE] = "trace_id", [PYRO_PROFILE] = "profile_id"
};

static int add_id(enum pyro_id kind, struct slice id, struct pyro_request *ret, struct err *err)
{
	size_t *count = &ret->ids_count[kind];

	if (*count == PYRO_IDS_MAX)
		return err_set(err, ERR_LIMIT, "selector of %s: more than %d", id_labels[kind],
			       PYRO_IDS_MAX);
	for (size_t i = 0; i < id.len; i++)
		if (slice_hex_digit(id.data[i]) < 0 && !(kind == PYRO_PROFILE && id.data[i] == '-'))
			return err_set(err, ERR_INVALID, "selector of %s: not hexadecimal",
				       id_labels[kind]);
	if (!id.len)
		return err_set(err, ERR_INVALID, "selector of %s: an empty one", id_labels[kind]);
	ret->ids[kind][(*count)++] = id;
	return 0;
}

static int read_text(const struct pyro_shape *shape, const struct pb_reader *in,
		     const struct pb_field *field, struct pyro_request *ret, struct err *err)
{
	if (field->number == shape->type)
		ret->type = field->bytes;
	else if (field->number == shape->selector) {
		if (ret->selectors_count == PYRO_SELECTORS_MAX)
			return err_set(err, ERR_LIMIT, "matchers: more than %d",
				       PYRO_SELECTORS_MAX);
		ret->selectors[ret->selectors_count++] = field->bytes;
	} else if (field->number == shape->label)
		ret->label = field->bytes;
	else if (field->number == shape->stack_selector)
		return read_stack_selector(in, field->bytes, ret, err);
	else if (field->number == shape->group_by) {
		if (ret->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group_by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		ret->group_by[ret->group_by_count++] = field->bytes;
	}
	for (int kind = 0; kind < PYRO_IDS; kind++)
		if (field->number == shape->ids[kind])
			return add_id((enum pyro_id)kind, field->bytes, ret, err);
	return 0;
}

static void read_number(const struct pyro_shape *shape, const struct pb_field *field,
			struct pyro_request *ret)
{
	if (field->number == shape->start)
		ret->start_ms = (int64_t)field->value;
	else if (field->number == shape->end)
		ret->end_ms = (int64_t)field->value;
	else if (field->number == shape->max_nodes)
		ret->max_nodes = (int64_t)field->value;
	else if (field->number == shape->format)
		ret->format = (int64_t)field->value;
	else if (field->number == shape->exemplars)
		ret->exemplars = (int64_t)field->value;
	else if (field->number == shape->aggregation)
		ret->aggregation = (int64_t)field->value;
	else if (field->number == shape->limit)
		ret->limit = (int64_t)field->value;
}

int pyro_read(const struct pyro_shape *shape, struct slice bytes, struct pyro_request *ret,
	      struct err *err)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;

	*ret = (struct pyro_request){ 0 };
	while (pb_next(&in, &field)) {
		int rc = 0;

		if (field.wire == PB_BYTES)
			rc = read_text(shape, &in, &field, ret, err);
		else if (field.wire == PB_VARINT)
			read_number(shape, &field, ret);
		else if (field.wire == PB_FIXED64 && field.number == shape->step)
			memcpy(&ret->step_s, &field.value, sizeof(ret->step_s));
		if (rc)
			return rc;
	}
	return in.problem ? pb_fail(&in, shape->name, err) : 0;
}

static int64_t ns_of_ms(int64_t ms)
{
	if (ms > UNITS_TIME_MAX_NS / CLOCK_NS_PER_MS)
		return UNITS_TIME_MAX_NS;
	return ms < UNITS_TIME_MIN_NS / CLOCK_NS_PER_MS ? UNITS_TIME_MIN_NS : ms * CLOCK_NS_PER_MS;
}

/* What stands between the braces. */
static void add_inner(struct slice text, struct strbuf *out)
{
	text = slice_trim(text);
	if (text.len && text.data[0] == '{')
		text = slice_tail(text, 1);
	if (text.len && text.data[text.len - 1] == '}')
		text.len--;
	text = slice_trim(text);
	if (!text.len)
		return;
	strbuf_add_slice(out, text);
	if (text.data[text.len - 1] != ',')
		strbuf_add_byte(out, ',');
}

static void add_ids(const struct pyro_request *pyro, enum pyro_id kind, struct strbuf *out)
{
	for (size_t i = 0; i < pyro->ids_count[kind]; i++) {
		if (i)
			strbuf_add_byte(out, '|');
		else
			strbuf_addf(out, "%s=~\"", id_labels[kind]);
		strbuf_add_slice(out, pyro->ids[kind][i]);
	}
	if (pyro->ids_count[kind])
		strbuf_add_text(out, "\",");
}

/* The matchers of all selectors, and one for each kind of ids. */
static void add_matchers(const struct pyro_request *pyro, struct strbuf *out)
{
	bool has_ids = false;

	for (int kind = 0; kind < PYRO_IDS; kind++)
		has_ids |= pyro->ids_count[kind] > 0;
	if (pyro->selectors_count == 1 && !has_ids) {
		strbuf_add_slice(out, slice_trim(pyro->selectors[0]));
		return;
	}
	strbuf_add_byte(out, '{');
	for (size_t i = 0; i < pyro->selectors_count; i++)
		add_inner(pyro->selectors[i], out);
	for (int kind = 0; kind < PYRO_IDS; kind++)
		add_ids(pyro, (enum pyro_id)kind, out);
	strbuf_add_byte(out, '}');
}

static void read_id(struct slice hex, uint8_t *ret, size_t bytes)
{
	/* W3C writes ids in full; leading zeros may be left out. */
	for (size_t i = 0; i < hex.len && i < 2 * bytes; i++) {
		uint8_t digit = (uint8_t)slice_hex_digit(hex.data[hex.len - 1 - i]);

		ret[bytes - 1 - i / 2] |= (uint8_t)(i % 2 ? digit << 4 : digit);
	}
}

/* The matcher that add_matchers made. */
static void drop_matcher(struct selector *selector, const char *name)
{
	size_t at = selector->matchers_count;

	while (at > 0 && !slice_is(selector->matchers[at - 1].name, name))
		at--;
	if (!at)
		return;
	regex_free(selector->matchers[at - 1].regex);
	selector->matchers_count--;
	memmove(&selector->matchers[at - 1], &selector->matchers[at],
		(selector->matchers_count - (at - 1)) * sizeof(*selector->matchers));
}

/* Links choose from now on, not labels. False when no ids are asked for, or several kinds. */
static bool ask_links(const struct pyro_request *pyro, struct query_request *query)
{
	const enum pyro_id kind = pyro->ids_count[PYRO_SPAN] ? PYRO_SPAN : PYRO_TRACE;
	const size_t count = pyro->ids_count[kind];
	struct trace_link *links;

	if (!count || pyro->ids_count[PYRO_PROFILE] ||
	    (kind == PYRO_SPAN && pyro->ids_count[PYRO_TRACE]))
		return false;
	links = arena_new_array(&query->asked.arena, struct trace_link, count);
	for (size_t i = 0; links && i < count; i++) {
		if (kind == PYRO_SPAN)
			read_id(pyro->ids[kind][i], links[i].span_id, sizeof(links[i].span_id));
		else
			read_id(pyro->ids[kind][i], links[i].trace_id, sizeof(links[i].trace_id));
	}
	query->asked.params.links = links;
	query->asked.params.links_count = links ? count : 0;
	query->asked.params.by_times = true;
	drop_matcher(&query->asked.selector, id_labels[kind]);
	return links != NULL;
}

void pyro_report_id(const struct query_series *series, int64_t start_ns,
		    char ret[static PYRO_REPORT_ID_BYTES])
{
	uint64_t id = series_part_id(series), at = (uint64_t)start_ns;

	snprintf(ret, PYRO_REPORT_ID_BYTES, "%08x-%04x-%04x-%04x-%04x%08x", (uint32_t)(at >> 32),
		 (uint32_t)(at >> 16 & 0xffff), (uint32_t)(at & 0xffff), (uint32_t)(id >> 48),
		 (uint32_t)(id >> 32 & 0xffff), (uint32_t)id);
}

static bool read_report_id(struct slice text, int64_t *ret_start_ns, uint64_t *ret_series)
{
	uint64_t halves[2] = { 0 };
	size_t digits = 0;

	for (size_t i = 0; i < text.len; i++) {
		int digit = slice_hex_digit(text.data[i]);

		if (digit < 0)
			continue; /* add_id has seen to it: a hyphen */
		if (digits == 32)
			return false;
		halves[digits / 16] = halves[digits / 16] << 4 | (uint64_t)digit;
		digits++;
	}
	*ret_start_ns = (int64_t)halves[0];
	*ret_series = halves[1];
	return digits == 32 && *ret_start_ns >= 0 && *ret_start_ns < INT64_MAX;
}

static int by_start(const void *a, const void *b)
{
	const struct query_span *left = a, *right = b;

	return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Starts and series choose from now on. False when the ids are none of reports. */
static bool ask_reports(const struct pyro_request *pyro, struct query_request *query)
{
	const size_t count = pyro->ids_count[PYRO_PROFILE];
	struct arena *arena = &query->asked.arena;
	struct query_span *spans = arena_new_array(arena, struct query_span, count);
	struct series_part *part = arena_new_array(arena, struct series_part, 1);
	uint64_t *series = arena_new_array(arena, uint64_t, count);
	size_t kept = 0;

	if (!count || !spans || !part || !series || pyro->ids_count[PYRO_SPAN] ||
	    pyro->ids_count[PYRO_TRACE])
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!read_report_id(pyro->ids[PYRO_PROFILE][i], &spans[i].from_ns, &series[i]))
			return false;
		spans[i].to_ns = spans[i].from_ns + 1;
	}
	qsort(spans, count, sizeof(*spans), by_start);
	qsort(series, count, sizeof(*series), by_number);
	for (size_t i = 0; i < count; i++)
		if (!kept || spans[kept - 1].from_ns != spans[i].from_ns)
			spans[kept++] = spans[i];
	*part = (struct series_part){ .ids = series, .ids_count = count, .parts = 1, .only = true };
	query->asked.params.spans = spans;
	query->asked.params.spans_count = kept;
	query->asked.params.part = part;
	drop_matcher(&query->asked.selector, id_labels[PYRO_PROFILE]);
	return true;
}

int pyro_tree(const struct pyro_request *pyro, struct query_request *query, struct tree **ret,
	      struct err *err)
{
	struct tree *tree = NULL;
	int rc = query_request_tree(query, &tree, err);

	if (!rc && !tree->total && !tree->filtered &&
	    (ask_links(pyro, query) || ask_reports(pyro, query))) {
		tree_free(tree);
		tree = NULL;
		rc = query_request_open(query, err); /* raw reports, not their sums */
		if (!rc)
			rc = query_request_tree(query, &tree, err);
	}
	if (!rc)
		*ret = tree;
	return rc;
}

int pyro_begin_with(struct serve *serve, const struct net_request *request,
		    struct pyro_request *pyro, enum parameters_need need, struct query_request *ret,
		    struct err *err)
{
	bool always = !pyro->start_ms && !pyro->end_ms;
	struct strbuf selector = { 0 };
	int rc;

	strbuf_add_slice(&selector, pyro->type);
	add_matchers(pyro, &selector);
	rc = query_request_begin_with(serve, request, strbuf_slice(&selector), need,
				      always ? 0 : ns_of_ms(pyro->start_ms),
				      always ? INT64_MAX : ns_of_ms(pyro->end_ms) + 1, ret, err);
	ret->asked.params.deltas_first = true;
	if (!rc)
		rc = pyro_types_match(ret, &pyro->types, err);
	strbuf_free(&selector);
	return rc;
}

int pyro_begin(struct serve *serve, const struct net_request *request,
	       const struct pyro_shape *shape, enum parameters_need need, struct pyro_request *pyro,
	       struct query_request *ret, struct err *err)
{
	int rc = pyro_read(shape, request->body, pyro, err);

	return rc ? rc : pyro_begin_with(serve, request, pyro, need, ret, err);
}
