/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages as targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "server/scrape/dns_answer.h"

/* An answer to a question for "a.b": header, question, and the records. */
#define HEAD(count) "\0\1\x81\x80\0\1\0" count "\0\0\0\0\1a\1b\0\0\1\0\1"
#define TO_NAME "\xc0\x0c"
#define TTL "\0\0\0\1"

static int read_message(struct slice message, enum discovery_record record, struct strbuf *ret)
{
	struct discovery_config config = { .port = 6060, .dns = { .record = record } };
	struct found *found = found_new();
	struct err err;
	int rc = dns_answer_read(message, &config, SLICE_LITERAL("asked"), found, &err);

	strbuf_clear(ret);
	for (size_t i = 0; i < found->count; i++)
		for (size_t j = 0; j < found->targets[i].count; j++)
			strbuf_addf(ret, "%.*s=%.*s ", SLICE_FMT(found->targets[i].labels[j].name),
				    SLICE_FMT(found->targets[i].labels[j].value));
	found_free(found);
	return rc;
}

#define READ(message, record, wanted)                                                              \
	do {                                                                                       \
		struct strbuf got = { 0 };                                                         \
                                                                                                   \
		assert_int_equal(                                                                  \
			read_message(slice_from(message, sizeof(message) - 1), record, &got), 0);  \
		assert_string_equal(strbuf_text(&got), wanted);                                    \
		strbuf_free(&got);                                                                 \
	} while (0)

#define SRV                                                                                        \
	HEAD("\1")                                                                                 \
	TO_NAME "\0\x21\0\1" TTL "\0\x0a\0\1\0\2\x17\x70\1h" TO_NAME

static void each_record_is_a_target(void **state)
{
	(void)state;
	READ(SRV, DISCOVERY_RECORD_SRV,
	     "__meta_dns_name=asked __meta_dns_srv_record_port=6000 "
	     "__meta_dns_srv_record_target=h.a.b. __address__=h.a.b:6000 ");
	READ(HEAD("\2") TO_NAME "\0\5\0\1" TTL "\0\2" TO_NAME TO_NAME "\0\1\0\1" TTL
				"\0\4\x0a\1\2\3",
	     DISCOVERY_RECORD_A, "__meta_dns_name=asked __address__=10.1.2.3:6060 ");
	READ(HEAD("\1") TO_NAME "\0\x1c\0\1" TTL "\0\x10\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\7",
	     DISCOVERY_RECORD_AAAA, "__meta_dns_name=asked __address__=[fd00::7]:6060 ");
	READ(HEAD("\1") TO_NAME "\0\x0f\0\1" TTL "\0\6\0\5\1m" TO_NAME, DISCOVERY_RECORD_MX,
	     "__meta_dns_name=asked __meta_dns_mx_record_target=m.a.b. __address__=m.a.b:6060 ");
	READ(HEAD("\1") TO_NAME "\0\2\0\1" TTL "\0\2" TO_NAME, DISCOVERY_RECORD_NS,
	     "__meta_dns_name=asked __meta_dns_ns_record_target=a.b. __address__=a.b:6060 ");
	READ(SRV, DISCOVERY_RECORD_A, "");
}

static void damage_is_an_error(void **state)
{
	struct strbuf got = { 0 };

	(void)state;
	for (size_t len = 0; len + 1 < sizeof(SRV); len++)
		assert_int_equal(read_message(slice_from(SRV, len), DISCOVERY_RECORD_SRV, &got),
				 -ERR_INVALID);
	assert_int_equal(
		read_message(
			slice_from(HEAD("\1") TO_NAME "\0\1\0\1" TTL "\0\3\x0a\1\2",
				   sizeof(HEAD("\1") TO_NAME "\0\1\0\1" TTL "\0\3\x0a\1\2") - 1),
			DISCOVERY_RECORD_A, &got),
		-ERR_INVALID);
	strbuf_free(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_record_is_a_target),
		cmocka_unit_test(damage_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
