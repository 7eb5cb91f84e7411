/* SPDX-License-Identifier: Apache-2.0 */
/* address and sniff: what people write, and what the first bytes of a connection say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/address.h"
#include "net/server.h"
#include "net/sniff.h"

static void addresses_are_parsed_or_refused(void **state)
{
	static const struct {
		const char *text, *host; /* host NULL: refused */
		unsigned port;
	} cases[] = {
		{ "127.0.0.1:7070", "127.0.0.1", 7070 },
		{ "[::1]:0", "::1", 0 },
		{ ":7070", "", 7070 },
		{ "server.example:65535", "server.example", 65535 },
		{ "127.0.0.1", NULL, 0 },
		{ "127.0.0.1:", NULL, 0 },
		{ "127.0.0.1:65536", NULL, 0 },
		{ "127.0.0.1:-1", NULL, 0 },
		{ "::1:80", NULL, 0 },
		{ "", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct address address;
		struct err err;

		assert_int_equal(address_parse(slice_of(cases[i].text), &address, &err),
				 cases[i].host ? 0 : -ERR_INVALID);
		if (!cases[i].host)
			continue;
		assert_string_equal(address.host, cases[i].host);
		assert_int_equal(address.port, cases[i].port);
	}
}

static void loopback_is_known(void **state)
{
	static const struct {
		const char *text;
		bool is_loopback;
	} cases[] = {
		{ "127.0.0.1:1", true },
		{ "127.8.8.8:1", true },
		{ "[::1]:1", true },
		{ "localhost:1", true },
		{ "LOCALHOST:1", true },
		{ "[::ffff:127.0.0.1]:1", true },
		{ "0.0.0.0:1", false },
		{ "[::]:1", false },
		{ ":1", false },
		{ "10.0.0.1:1", false },
		{ "localhost.example:1", false },
		{ "127.0.0.1.example:1", false },
		{ "127.0.0.1", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(net_address_is_loopback(cases[i].text), cases[i].is_loopback);
}

static void first_bytes_tell_the_protocol(void **state)
{
	static const struct {
		struct slice bytes;
		enum sniff protocol;
	} cases[] = {
		{ SLICE_LITERAL(""), SNIFF_MORE },
		{ SLICE_LITERAL("P"), SNIFF_MORE },
		{ SLICE_LITERAL("PO"), SNIFF_HTTP1 },
		{ SLICE_LITERAL("PRI"), SNIFF_MORE },
		{ SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r"), SNIFF_MORE },
		{ SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), SNIFF_HTTP2 },
		{ SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"), SNIFF_HTTP2 },
		{ SLICE_LITERAL("PRI * HTTP/2.0\r\n\r\nSX"), SNIFF_HTTP1 },
		{ SLICE_LITERAL("GET / HTTP/1.1\r\n"), SNIFF_HTTP1 },
		{ SLICE_LITERAL("\x16"), SNIFF_MORE },
		{ SLICE_LITERAL("\x16\x03\x01"), SNIFF_TLS },
		{ SLICE_LITERAL("\x16\x04"), SNIFF_HTTP1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(sniff_protocol(cases[i].bytes), cases[i].protocol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_parsed_or_refused),
		cmocka_unit_test(loopback_is_known),
		cmocka_unit_test(first_bytes_tell_the_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
