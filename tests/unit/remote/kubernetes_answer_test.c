/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of Kubernetes are cut into their objects, wherever the network cuts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "codec/wire/json_read.h"
#include "remote/kubernetes/kubernetes_answer.h"

/* Names of the objects, a comma behind each. */
static int note(void *context, json_t *object, bool is_there, struct err *err)
{
	(void)err;
	strbuf_addf(context, "%s%.*s,", is_there ? "" : "-",
		    SLICE_FMT(json_text_at(json_object_get(object, "metadata"), "name")));
	return 0;
}

struct outcome {
	int rc;
	struct strbuf names, version, next;
	struct err err;
};

static void outcome_free(struct outcome *outcome)
{
	strbuf_free(&outcome->names);
	strbuf_free(&outcome->version);
	strbuf_free(&outcome->next);
}

/* Reads the list in pieces of so many bytes, the first one of `first`. */
static void read_list(struct slice text, size_t first, size_t piece, struct outcome *ret)
{
	const struct kubernetes_sink sink = { note, &ret->names, NULL };
	struct kubernetes_list list;

	*ret = (struct outcome){ .rc = 0 };
	kubernetes_list_begin(&list, &sink);
	while (!ret->rc && text.len) {
		size_t len = first < text.len ? first : text.len;

		ret->rc = kubernetes_list_add(&list, slice_from(text.data, len), &ret->err);
		text = slice_tail(text, len);
		first = piece;
	}
	if (!ret->rc)
		ret->rc = kubernetes_list_end(&list, &ret->version, &ret->next, &ret->err);
	kubernetes_list_free(&list);
}

#define TWISTED                                                                                    \
	"{ \"kind\":\"items\",\"note\":[\"items\",[{\"items\":[1]}]],\"x\":{\"items\":[{}]},\n"    \
	"\"metadata\":{\"resourceVersion\":\"77\",\"continue\":\"a\\\"[b\"}, \"items\" : [\n"      \
	" {\"metadata\":{\"name\":\"a\",\"annotations\":{\"k\":\"}]{[\\\\\\\"],\"}}} ,\n"          \
	"{\"metadata\":{\"name\":\"b\"},\"spec\":{\"items\":[{},[]]}},{}],\"tail\":[\"items\"]}"

static void a_list_is_cut_where_its_items_are(void **state)
{
	struct slice text = SLICE_LITERAL(TWISTED);

	(void)state;
	for (size_t first = 1; first <= text.len; first++) {
		struct outcome got;

		read_list(text, first, first == 1 ? 1 : text.len, &got);
		assert_int_equal(got.rc, 0);
		assert_string_equal(strbuf_text(&got.names), "a,b,,");
		assert_string_equal(strbuf_text(&got.version), "77");
		assert_string_equal(strbuf_text(&got.next), "a\"[b");
		outcome_free(&got);
	}
}

static void half_a_list_is_none(void **state)
{
	struct slice text = SLICE_LITERAL(TWISTED);

	(void)state;
	for (size_t len = 0; len < text.len; len++) {
		struct outcome got;

		read_list(slice_from(text.data, len), 7, 7, &got);
		assert_int_equal(got.rc, -ERR_INVALID);
		outcome_free(&got);
	}
}

static void another_answer_is_an_error(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "{\"kind\":\"Status\"}", "Kubernetes' list: there are no \"items\"" },
		{ "{\"items\":{\"a\":1}}", "Kubernetes' list: there are no \"items\"" },
		{ "[{\"items\":[]}]", "Kubernetes' list: there are no \"items\"" },
		{ "{\"items\":[1]}", "Kubernetes' list: an item is no object" },
		{ "{\"items\":[[]]}", "Kubernetes' list: an item is no object" },
		{ "{\"items\":[]}}", "Kubernetes' list: it ends twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct outcome got;

		read_list(slice_of(wrong[i].text), 3, 3, &got);
		assert_int_equal(got.rc, -ERR_INVALID);
		assert_string_equal(got.err.message, wrong[i].message);
		outcome_free(&got);
	}
}

static void an_empty_list_may_be_null(void **state)
{
	struct outcome got;

	(void)state;
	read_list(slice_of("{\"items\":null,\"metadata\":{\"resourceVersion\":\"1\"}}"), 9, 9,
		  &got);
	assert_int_equal(got.rc, 0);
	assert_string_equal(strbuf_text(&got.version), "1");
	assert_int_equal(got.names.len, 0);
	outcome_free(&got);
}

static void what_is_too_much_is_refused(void **state)
{
	struct strbuf deep = { 0 }, wide = { 0 };
	struct outcome got;

	(void)state;
	strbuf_add_text(&deep, "{\"items\":[");
	for (int i = 0; i < 2000; i++)
		strbuf_add_text(&deep, "{\"a\":");
	read_list(strbuf_slice(&deep), 100, 100, &got);
	assert_int_equal(got.rc, -ERR_LIMIT);
	outcome_free(&got);
	strbuf_add_text(&wide, "{\"items\":[{\"a\":\"");
	for (size_t i = 0; i < KUBERNETES_OBJECT_BYTES_MAX; i += 8)
		strbuf_add_text(&wide, "01234567");
	read_list(strbuf_slice(&wide), 4096, 4096, &got);
	assert_int_equal(got.rc, -ERR_LIMIT);
	outcome_free(&got);
	strbuf_free(&deep);
	strbuf_free(&wide);
}

static void events_say_what_comes_and_goes(void **state)
{
	static const struct {
		const char *line, *version, *names;
		int rc;
	} steps[] = {
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\","
		  "\"resourceVersion\":\"8\""
		  "}}}",
		  "8", "a,", 0 },
		{ "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}", "8", "a,-a,",
		  0 },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"99\"}}}",
		  "99", "a,-a,", 0 },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}", "99",
		  "a,-a,", -ERR_NOT_FOUND },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":500}}", "99", "a,-a,", -ERR_BUSY },
		{ "{\"type\":\"ADDED\"", "99", "a,-a,", -ERR_INVALID },
	};
	struct strbuf names = { 0 }, version = { 0 };
	const struct kubernetes_sink sink = { note, &names, NULL };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct err err;

		assert_int_equal(
			kubernetes_event_read(slice_of(steps[i].line), &sink, &version, &err),
			steps[i].rc);
		assert_string_equal(strbuf_text(&version), steps[i].version);
		assert_string_equal(strbuf_text(&names), steps[i].names);
	}
	strbuf_free(&names);
	strbuf_free(&version);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_cut_where_its_items_are),
		cmocka_unit_test(half_a_list_is_none),
		cmocka_unit_test(another_answer_is_an_error),
		cmocka_unit_test(an_empty_list_may_be_null),
		cmocka_unit_test(what_is_too_much_is_refused),
		cmocka_unit_test(events_say_what_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
