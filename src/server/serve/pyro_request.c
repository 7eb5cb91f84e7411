/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/pyro_request.h"

#include "codec/pb.h"
#include "config/units.h"

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

static int add_span(struct slice id, struct pyro_request *ret, struct err *err)
{
	if (ret->spans_count == PYRO_SPANS_MAX)
		return err_set(err, ERR_LIMIT, "span_selector: more than %d", PYRO_SPANS_MAX);
	for (size_t i = 0; i < id.len; i++)
		if (slice_hex_digit(id.data[i]) < 0)
			return err_set(err, ERR_INVALID, "span_selector: not hexadecimal");
	if (!id.len)
		return err_set(err, ERR_INVALID, "span_selector: an empty one");
	ret->spans[ret->spans_count++] = id;
	return 0;
}

static int read_text(const struct pyro_shape *shape, const struct pb_reader *in,
		     const struct pb_field *field, struct pyro_request *ret, struct err *err)
{
	if (field->number == shape->type)
		ret->type = field->bytes;
	else if (field->number == shape->selector)
		ret->selector = field->bytes;
	else if (field->number == shape->label)
		ret->label = field->bytes;
	else if (field->number == shape->stack_selector)
		return read_stack_selector(in, field->bytes, ret, err);
	else if (field->number == shape->spans)
		return add_span(field->bytes, ret, err);
	else if (field->number == shape->group_by) {
		if (ret->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group_by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		ret->group_by[ret->group_by_count++] = field->bytes;
	}
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

/* The selector's matchers, and one for the spans. */
static void add_matchers(const struct pyro_request *pyro, struct strbuf *out)
{
	struct slice text = slice_trim(pyro->selector);

	if (!pyro->spans_count) {
		strbuf_add_slice(out, text);
		return;
	}
	if (text.len && text.data[text.len - 1] == '}')
		text.len--;
	text = slice_trim(text);
	strbuf_add_slice(out, text.len ? text : SLICE_LITERAL("{"));
	if (text.len && text.data[text.len - 1] != '{' && text.data[text.len - 1] != ',')
		strbuf_add_byte(out, ',');
	strbuf_add_text(out, PYRO_SPAN_LABEL "=~\"");
	for (size_t i = 0; i < pyro->spans_count; i++)
		strbuf_addf(out, "%s%.*s", i ? "|" : "", SLICE_FMT(pyro->spans[i]));
	strbuf_add_text(out, "\"}");
}

static bool asks_for_service(const struct pyro_request *pyro, struct slice selector)
{
	for (size_t i = 0; i < pyro->group_by_count; i++)
		if (slice_is(pyro->group_by[i], SERVICE_NAME))
			return true;
	return slice_is(pyro->label, SERVICE_NAME) ||
	       (selector.len &&
		memmem(selector.data, selector.len, SERVICE_NAME, strlen(SERVICE_NAME)));
}

/* Looks at all that is there in the range: what the selector leaves out may have the label. */
static int find_service(struct pyro_request *pyro, struct question *question, struct err *err)
{
	struct selector selector = question->selector;
	bool was_open = question->store != NULL;
	int rc;

	question->selector.has_type = false;
	question->selector.matchers_count = 0;
	rc = question_open(question, err);
	if (!rc)
		rc = service_name_find(question, &pyro->service, err);
	question->selector = selector;
	if (!rc)
		rc = service_name_match(question, &pyro->service, err);
	if (!rc)
		rc = service_name_expand(&pyro->service, pyro->group_by, &pyro->group_by_count,
					 err);
	return rc || !was_open ? rc : question_open(question, err);
}

int pyro_begin_with(struct serve *serve, const struct net_request *request,
		    struct pyro_request *pyro, enum question_need need, struct question *ret,
		    struct err *err)
{
	bool always = !pyro->start_ms && !pyro->end_ms;
	struct strbuf selector = { 0 };
	int rc;

	strbuf_add_slice(&selector, pyro->type);
	add_matchers(pyro, &selector);
	rc = question_begin_with(serve, request, strbuf_slice(&selector), need,
				 always ? 0 : ns_of_ms(pyro->start_ms),
				 always ? INT64_MAX : ns_of_ms(pyro->end_ms) + 1, ret, err);
	if (!rc && asks_for_service(pyro, strbuf_slice(&selector)))
		rc = find_service(pyro, ret, err);
	strbuf_free(&selector);
	return rc;
}

int pyro_begin(struct serve *serve, const struct net_request *request,
	       const struct pyro_shape *shape, enum question_need need, struct pyro_request *pyro,
	       struct question *ret, struct err *err)
{
	int rc = pyro_read(shape, request->body, pyro, err);

	return rc ? rc : pyro_begin_with(serve, request, pyro, need, ret, err);
}
