/* SPDX-License-Identifier: Apache-2.0 */
/* What Consul says as targets: the label sets that Prometheus' documentation promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "server/scrape/consul_answer.h"

static int note(void *context, struct slice name, struct err *err)
{
	(void)err;
	strbuf_addf(context, "%.*s ", SLICE_FMT(name));
	return 0;
}

static void services(struct field_texts names, struct field_texts tags, const char *wanted)
{
	struct discovery_config config = { .consul = { .services = names, .tags = tags } };
	struct strbuf got = { 0 };
	struct err err;

	assert_int_equal(consul_answer_services(
				 slice_of("{\"consul\":[],\"web\":[\"a\",\"b\"],\"db\":[\"a\"]}"),
				 &config, note, &got, &err),
			 0);
	assert_string_equal(strbuf_text(&got), wanted);
	strbuf_free(&got);
}

static void services_are_wanted_by_name_and_all_tags(void **state)
{
	struct slice names[] = { SLICE_LITERAL("db"), SLICE_LITERAL("none") };
	struct slice tags[] = { SLICE_LITERAL("a"), SLICE_LITERAL("b") };
	struct field_texts none = { NULL, 0 };

	(void)state;
	services(none, none, "consul web db ");
	services((struct field_texts){ names, 2 }, none, "db ");
	services(none, (struct field_texts){ tags, 1 }, "web db ");
	services(none, (struct field_texts){ tags, 2 }, "web ");
	services((struct field_texts){ names, 2 }, (struct field_texts){ tags, 2 }, "");
}

static void instances(const char *answer, const char *wanted)
{
	struct discovery_config config = { .consul = { .tag_separator = SLICE_LITERAL(",") } };
	struct slice prefix = SLICE_LITERAL("__meta_consul_");
	struct found *found = found_new();
	struct strbuf got = { 0 };
	struct err err;

	if (consul_answer_instances(slice_of(answer), &config, SLICE_LITERAL("web"),
				    SLICE_LITERAL("dc1"), found, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < found->count; i++) {
		for (size_t j = 0; j < found->targets[i].count; j++) {
			const struct found_label *label = &found->targets[i].labels[j];

			if (!label->value.len)
				continue;
			if (slice_starts_with(label->name, prefix))
				strbuf_add_slice(&got, slice_tail(label->name, prefix.len));
			else
				strbuf_add_slice(&got, label->name);
			strbuf_addf(&got, "=%.*s ", SLICE_FMT(label->value));
		}
		strbuf_add_byte(&got, '\n');
	}
	assert_string_equal(strbuf_text(&got), wanted);
	strbuf_free(&got);
	found_free(found);
}

static void an_instance_has_its_labels(void **state)
{
	(void)state;
	instances("[{\"Node\":{\"Node\":\"n1\",\"Address\":\"10.0.0.1\",\"Meta\":{\"a-b\":\"c\"},"
		  "\"TaggedAddresses\":{\"lan\":\"10.0.0.1\"}},"
		  "\"Service\":{\"ID\":\"web-1\",\"Service\":\"web\",\"Tags\":[\"x\",\"y\"],"
		  "\"Address\":\"fd00::7\",\"Port\":6060,\"Meta\":{\"v\":\"2\"},"
		  "\"Namespace\":\"ns\",\"Partition\":\"p\"},"
		  "\"Checks\":[{\"CheckID\":\"a\",\"Status\":\"passing\"},"
		  "{\"CheckID\":\"b\",\"Status\":\"warning\"}]},"
		  "{\"Node\":{\"Node\":\"n2\",\"Address\":\"10.0.0.2\"},"
		  "\"Service\":{\"ID\":\"web-2\",\"Port\":1},"
		  "\"Checks\":[{\"CheckID\":\"_service_maintenance:web-2\",\"Status\":"
		  "\"critical\"}]}]",
		  "service=web dc=dc1 address=10.0.0.1 node=n1 namespace=ns partition=p "
		  "tags=,x,y, service_address=fd00::7 service_port=6060 service_id=web-1 "
		  "health=warning metadata_a_b=c service_metadata_v=2 "
		  "tagged_address_lan=10.0.0.1 __address__=[fd00::7]:6060 \n"
		  "service=web dc=dc1 address=10.0.0.2 node=n2 tags=,, service_port=1 "
		  "service_id=web-2 health=maintenance __address__=10.0.0.2:1 \n");
	instances("[]", "");
}

static void another_answer_is_an_error(void **state)
{
	struct discovery_config config = { 0 };
	struct found *found = found_new();
	struct strbuf text = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(consul_answer_instances(slice_of("{}"), &config, SLICE_LITERAL("a"),
						 SLICE_LITERAL("b"), found, &err),
			 -ERR_INVALID);
	assert_int_equal(consul_answer_services(slice_of("[]"), &config, note, &text, &err),
			 -ERR_INVALID);
	assert_int_equal(consul_answer_datacenter(slice_of("{\"Config\":{}}"), &text, &err),
			 -ERR_INVALID);
	assert_int_equal(consul_answer_datacenter(slice_of("{\"Config\":{\"Datacenter\":\"dc1\"}}"),
						  &text, &err),
			 0);
	assert_string_equal(strbuf_text(&text), "dc1");
	strbuf_free(&text);
	found_free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(services_are_wanted_by_name_and_all_tags),
		cmocka_unit_test(an_instance_has_its_labels),
		cmocka_unit_test(another_answer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
