/* SPDX-License-Identifier: Apache-2.0 */
/* grpc and base64: frames, time-outs, messages, retry details. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/wire/base64.h"
#include "net/http/grpc.h"

#define BYTES(text) SLICE_LITERAL(text)

static void content_types_tell_the_kind_of_call(void **state)
{
	static const struct {
		const char *type;
		enum net_rpc kind;
	} cases[] = {
		{ "application/grpc", NET_RPC_GRPC },
		{ "application/grpc+proto", NET_RPC_GRPC },
		{ "application/grpc;charset=utf-8", NET_RPC_GRPC },
		{ "application/grpc-web", NET_RPC_GRPC_WEB },
		{ "application/grpc-web+proto", NET_RPC_GRPC_WEB },
		{ "application/grpc-web-text", NET_RPC_GRPC_WEB_TEXT },
		{ "application/grpc-web-text+proto", NET_RPC_GRPC_WEB_TEXT },
		{ "application/grpcx", NET_RPC_NONE },
		{ "application/json", NET_RPC_NONE },
		{ "", NET_RPC_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(grpc_kind(slice_of(cases[i].type)), cases[i].kind);
}

static void timeouts_are_parsed_or_refused(void **state)
{
	static const struct {
		const char *text;
		int64_t ns; /* -1: refused */
	} cases[] = {
		{ "1n", 1 },
		{ "2u", 2000 },
		{ "100m", 100 * CLOCK_NS_PER_MS },
		{ "5S", 5 * CLOCK_NS_PER_S },
		{ "1M", 60 * CLOCK_NS_PER_S },
		{ "99999999H", INT64_MAX },
		{ "100000000S", -1 }, /* nine digits */
		{ "S", -1 },
		{ "1", -1 },
		{ "1s", -1 },
		{ "-1S", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = -1;

		assert_int_equal(grpc_parse_timeout(slice_of(cases[i].text), &ns),
				 cases[i].ns >= 0);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void one_message_is_found(void **state)
{
	static const struct {
		struct slice body;
		int code;
		const char *message;
	} cases[] = {
		{ BYTES("\0\0\0\0\2hi"), 0, "hi" },
		{ BYTES("\1\0\0\0\2hi"), 0, "hi" },
		{ BYTES("\0\0\0\0\0"), 0, "" },
		{ BYTES("\0\0\0\0\2hi\x80\0\0\0\1x"), 0, "hi" },
		{ BYTES(""), -ERR_UNSUPPORTED, NULL },
		{ BYTES("\x80\0\0\0\1x"), -ERR_UNSUPPORTED, NULL },
		{ BYTES("\0\0\0\0\1a\0\0\0\0\1b"), -ERR_UNSUPPORTED, NULL },
		{ BYTES("\0\0\0\0"), -ERR_INVALID, NULL },
		{ BYTES("\0\0\0\0\3hi"), -ERR_INVALID, NULL },
		{ BYTES("\0\xff\xff\xff\xffhi"), -ERR_INVALID, NULL },
		{ BYTES("\2\0\0\0\2hi"), -ERR_INVALID, NULL },
		{ BYTES("\0\0\0\0\2hi\0"), -ERR_INVALID, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice message;
		bool is_compressed;

		assert_int_equal(grpc_find_message(cases[i].body, &message, &is_compressed, NULL),
				 cases[i].code);
		if (cases[i].code)
			continue;
		assert_true(slice_is(message, cases[i].message));
		assert_int_equal(is_compressed, cases[i].body.data[0] & 1);
	}
}

static void frames_are_what_is_found_again(void **state)
{
	struct strbuf body = { 0 };
	struct slice message;
	bool is_compressed;

	(void)state;
	grpc_add_frame(&body, GRPC_FLAG_COMPRESSED, BYTES("abc"));
	assert_memory_equal(body.data, "\1\0\0\0\3abc", 8);
	assert_int_equal(grpc_find_message(strbuf_slice(&body), &message, &is_compressed, NULL), 0);
	assert_true(slice_is(message, "abc"));
	assert_true(is_compressed);
	strbuf_free(&body);
}

static void messages_survive_as_ascii(void **state)
{
	static const char text[] = "100% of \"\xc3\xa9\"\n";
	struct strbuf encoded = { 0 };
	char decoded[64], cut[4];

	(void)state;
	grpc_encode_message(slice_of(text), &encoded);
	assert_string_equal(strbuf_text(&encoded), "100%25 of \"%C3%A9\"%0A");
	grpc_decode_message(strbuf_slice(&encoded), decoded, sizeof(decoded));
	assert_string_equal(decoded, text);
	grpc_decode_message(BYTES("50% %zz%4"), decoded, sizeof(decoded));
	assert_string_equal(decoded, "50% %zz%4");
	grpc_decode_message(BYTES("abcdef"), cut, sizeof(cut));
	assert_string_equal(cut, "abc");
	strbuf_free(&encoded);
}

static void retry_details_carry_the_delay(void **state)
{
	struct strbuf details = { 0 };

	(void)state;
	grpc_add_retry_details(&details, GRPC_RESOURCE_EXHAUSTED, BYTES("full"),
			       1500 * CLOCK_NS_PER_MS);
	assert_int_equal(grpc_parse_retry_details(strbuf_slice(&details)), 1500 * CLOCK_NS_PER_MS);
	assert_int_equal(grpc_parse_retry_details(BYTES("")), 0);
	assert_int_equal(grpc_parse_retry_details(BYTES("!")), 0);
	assert_int_equal(grpc_parse_retry_details(BYTES("AAAA")), 0);
	strbuf_free(&details);
}

static void base64_knows_the_vectors_of_rfc_4648(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf text = { 0 }, bytes = { 0 };

		base64_encode(slice_of(cases[i][0]), true, &text);
		assert_string_equal(strbuf_text(&text), cases[i][1]);
		assert_true(base64_decode(strbuf_slice(&text), &bytes));
		assert_true(slice_is(strbuf_slice(&bytes), cases[i][0]));
		strbuf_free(&text);
		strbuf_free(&bytes);
	}
}

static void base64_takes_joined_segments_and_no_rubbish(void **state)
{
	static const struct {
		const char *text;
		const char *bytes; /* NULL: refused */
	} cases[] = {
		{ "Zg==Zm8=Zm9v", "ffofoo" },
		{ "Zg", "f" },
		{ "Zm8", "fo" },
		{ "Z", NULL },
		{ "Zg=", NULL },
		{ "=", NULL },
		{ "Zm9v=", NULL },
		{ "Zm 9v", NULL },
		{ "Zm-_", "fo\xbf" }, /* as in URLs */
		{ "Zg=a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf bytes = { 0 };

		assert_int_equal(base64_decode(slice_of(cases[i].text), &bytes),
				 cases[i].bytes != NULL);
		if (cases[i].bytes)
			assert_true(slice_is(strbuf_slice(&bytes), cases[i].bytes));
		strbuf_free(&bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_types_tell_the_kind_of_call),
		cmocka_unit_test(timeouts_are_parsed_or_refused),
		cmocka_unit_test(one_message_is_found),
		cmocka_unit_test(frames_are_what_is_found_again),
		cmocka_unit_test(messages_survive_as_ascii),
		cmocka_unit_test(retry_details_carry_the_delay),
		cmocka_unit_test(base64_knows_the_vectors_of_rfc_4648),
		cmocka_unit_test(base64_takes_joined_segments_and_no_rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
