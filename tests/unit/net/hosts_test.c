/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: which names are taken, and which are not. */
#include "net/http/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/strbuf.h"

static void expect(const struct hosts *hosts, const char *const *names, bool is_permitted)
{
	for (size_t i = 0; names[i]; i++) {
		if (hosts_permit(hosts, slice_of(names[i])) == is_permitted)
			continue;
		print_error("host \"%s\" is %s\n", names[i], is_permitted ? "refused" : "taken");
		fail();
	}
}

static struct hosts listening_on(const char *address)
{
	struct hosts hosts;

	assert_int_equal(hosts_init(&hosts, address, NULL), 0);
	return hosts;
}

static void loopback_takes_loopback_names_alone(void **state)
{
	static const char *const good[] = {
		"localhost",  "localhost:7070", "LocalHost:1",	"localhost.",
		"127.0.0.1",  "127.0.0.1:7070", "127.1.2.3:80", "[::1]",
		"[::1]:7070", "[0:0::1]:7070",	"localhost:",	"[::ffff:127.0.0.1]",
		NULL
	};
	static const char *const bad[] = { "evil.example",
					   "evil.example:7070",
					   "",
					   ":7070",
					   "127.0.0.1.evil.example",
					   "localhost.evil.example",
					   "evil.example:80:localhost",
					   "localhost@evil.example",
					   "[::1",
					   "[::1]x",
					   "[::1].evil.example",
					   "[evil.example]",
					   "::1",
					   "localhost:70x",
					   "10.0.0.1",
					   "128.0.0.1",
					   "[2001:db8::1]:7070",
					   "..",
					   ".",
					   NULL };
	struct hosts hosts = listening_on("127.0.0.1:7070");

	(void)state;
	expect(&hosts, good, true);
	expect(&hosts, bad, false);
	hosts_free(&hosts);
}

static void an_address_takes_itself(void **state)
{
	static const char *const good[] = { "192.0.2.7", "192.0.2.7:7070", "localhost", NULL };
	static const char *const bad[] = { "192.0.2.8", "evil.example", NULL };
	static const char *const good6[] = { "[2001:db8::1]", "[2001:DB8:0::1]:7070", NULL };
	static const char *const bad6[] = { "[2001:db8::2]", "evil.example", NULL };
	struct hosts hosts = listening_on("192.0.2.7:7070");

	(void)state;
	expect(&hosts, good, true);
	expect(&hosts, bad, false);
	hosts_free(&hosts);
	hosts = listening_on("[2001:db8::1]:7070");
	expect(&hosts, good6, true);
	expect(&hosts, bad6, false);
	hosts_free(&hosts);
}

static void all_addresses_take_any_address_and_the_own_name(void **state)
{
	static const char *const listens[] = { "0.0.0.0:7070", "[::]:7070", ":7070",
					       "profiles.lan:7070" };
	static const char *const good[] = { "192.0.2.7:7070", "[2001:db8::1]", "localhost", NULL };
	static const char *const bad[] = { "evil.example", "", NULL };
	char own[256] = "", other[300];

	(void)state;
	gethostname(own, sizeof(own) - 1);
	snprintf(other, sizeof(other), "%s.evil.example", own);
	for (size_t i = 0; i < sizeof(listens) / sizeof(listens[0]); i++) {
		struct hosts hosts = listening_on(listens[i]);

		expect(&hosts, good, true);
		expect(&hosts, bad, false);
		assert_true(hosts_permit(&hosts, slice_of(own)));
		assert_false(hosts_permit(&hosts, slice_of(other)));
		assert_int_equal(hosts_permit(&hosts, slice_of("profiles.lan")), i == 3);
		hosts_free(&hosts);
	}
}

static void names_can_be_added(void **state)
{
	static const char *const good[] = {
		"Profiles.Example.NET:443", "profiles.example.net.", "198.51.100.4",
		"[2001:db8::9]:1",	    "[2001:db8::8]",	     NULL
	};
	static const char *const bad[] = { "example.net", "x.profiles.example.net", NULL };
	static const char *const wrong[] = { "", "[::1", "a:b", NULL };
	struct hosts hosts = listening_on("127.0.0.1:7070");
	struct err err;

	(void)state;
	assert_int_equal(hosts_add(&hosts, slice_of("profiles.example.net:7070"), &err), 0);
	assert_int_equal(hosts_add(&hosts, slice_of("198.51.100.4"), &err), 0);
	assert_int_equal(hosts_add(&hosts, slice_of("2001:db8::9"), &err), 0);
	assert_int_equal(hosts_add(&hosts, slice_of("[2001:db8::8]:443"), &err), 0);
	expect(&hosts, good, true);
	expect(&hosts, bad, false);
	for (size_t i = 0; wrong[i]; i++)
		assert_int_equal(hosts_add(&hosts, slice_of(wrong[i]), &err), -ERR_INVALID);
	assert_int_equal(hosts_add(&hosts, slice_of("*"), &err), 0);
	expect(&hosts, bad, true);
	hosts_free(&hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_takes_loopback_names_alone),
		cmocka_unit_test(an_address_takes_itself),
		cmocka_unit_test(all_addresses_take_any_address_and_the_own_name),
		cmocka_unit_test(names_can_be_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
