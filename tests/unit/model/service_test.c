/* SPDX-License-Identifier: Apache-2.0 */
/* Which service a series is of: the rule, label by label, and selectors that go by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/selector.h"
#include "model/service.h"

#define LABELS_MAX 4

struct fixture_label {
	const char *name, *value;
};

static uint32_t add_set(struct tables *tables, const struct fixture_label *labels)
{
	struct label list[LABELS_MAX];
	uint32_t count = 0;

	for (; count < LABELS_MAX && labels[count].name; count++)
		list[count] = (struct label){
			.name = tables_string(tables, slice_of(labels[count].name)),
			.value = tables_string(tables, slice_of(labels[count].value)),
		};
	return tables_label_set(tables, list, count);
}

static void the_first_label_that_names_a_service_counts(void **state)
{
	static const struct {
		struct fixture_label labels[LABELS_MAX];
		const char *service, *label;
		bool is_named;
	} cases[] = {
		{ { { "comm", "java" }, { "service_name", "shop" } },
		  "shop",
		  "service_name",
		  true },
		{ { { "service", "b" }, { "service.name", "a" } }, "a", "service.name", true },
		{ { { "app", "c" }, { "job", "b" }, { "service", "a" } }, "a", "service", true },
		{ { { "container", "c" }, { "workload", "b" }, { "app", "a" } }, "a", "app", true },
		{ { { "comm", "nginx" }, { "container", "web" } }, "web", "container", true },
		{ { { "comm", "nginx" }, { "systemd_unit", "nginx.service" } },
		  "nginx.service",
		  "systemd_unit",
		  false },
		{ { { "comm", "make" }, { "systemd_unit", "session-3.scope" } },
		  "make",
		  "comm",
		  false },
		{ { { "node", "a" }, { "comm", "make" } }, "make", "comm", false },
		{ { { "node", "a" } }, "unknown_service", "", false },
		{ { { NULL, NULL } }, "unknown_service", "", false },
		{ { { "service_name", "unknown_service:java" }, { "container", "web" } },
		  "web",
		  "container",
		  true },
		{ { { "service.name", "unknown_service:java" }, { "node", "a" } },
		  "unknown_service:java",
		  "service.name",
		  false },
		{ { { "service_name", "unknown_services" }, { "container", "web" } },
		  "unknown_services",
		  "service_name",
		  true },
		{ { { "k8s.deployment.name", "api" }, { "container.name", "x" } },
		  "api",
		  "k8s.deployment.name",
		  true },
	};
	struct tables tables;

	(void)state;
	tables_init(&tables);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t set = add_set(&tables, cases[i].labels);
		struct tables_view view = tables_view_of(&tables);
		struct service service = service_of(&view, set);
		struct slice value = service_label_value(&view, set, SLICE_LITERAL("service_name"));

		if (!slice_is(service.name, cases[i].service) ||
		    !slice_is(service.label, cases[i].label) ||
		    service.is_named != cases[i].is_named || !slice_equal(value, service.name))
			fail_msg("case %zu: %.*s by %.*s", i, (int)service.name.len,
				 service.name.data, (int)service.label.len, service.label.data);
	}
	tables_free(&tables);
}

static void selectors_match_by_the_rule(void **state)
{
	static const struct fixture_label labels[LABELS_MAX] = { { "comm", "java" },
								 { "job", "shop" } };
	static const struct {
		const char *selector;
		bool matches;
	} cases[] = {
		{ "{service_name=\"shop\"}", true },	   { "{service_name=\"java\"}", false },
		{ "{service_name=~\"sh.+\"}", true },	   { "{service_name=\"\"}", false },
		{ "{service_name!=\"shop\"}", false },	   { "{job=\"shop\"}", true },
		{ "{service_name!~\"unknown.*\"}", true }, { "{service=\"shop\"}", false },
	};
	struct tables tables;
	struct tables_view view;
	uint32_t set;

	(void)state;
	tables_init(&tables);
	set = add_set(&tables, labels);
	view = tables_view_of(&tables);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selector selector;

		assert_int_equal(selector_parse(slice_of(cases[i].selector), &selector, NULL), 0);
		if (selector_matches(&selector, &view, set) != cases[i].matches)
			fail_msg("%s", cases[i].selector);
		selector_free(&selector);
	}
	tables_free(&tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_label_that_names_a_service_counts),
		cmocka_unit_test(selectors_match_by_the_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
