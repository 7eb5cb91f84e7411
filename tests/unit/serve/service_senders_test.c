/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends what is known after a restart, and each sender stands there once. */
#include "server/serve/api/service_senders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static uint32_t text(struct tables *tables, const char *words)
{
	return tables_string(tables, slice_of(words));
}

/* One report of a service. */
static void note(struct service_senders *senders, const char *tenant, const char *sender,
		 const char *service)
{
	struct tables tables;
	struct tables_view view;
	struct label label;
	struct column column;
	const struct group group = { .column_count = 1 };

	tables_init(&tables);
	label = (struct label){ .name = text(&tables, "service_name"),
				.value = text(&tables, service) };
	column = (struct column){ .sample_type = text(&tables, "samples"),
				  .sample_unit = text(&tables, "count") };
	assert_int_not_equal(
		tables_report_begin(&tables,
				    tables_series(&tables, tables_label_set(&tables, &label, 1),
						  tables_group(&tables, &group, &column)),
				    1000, 10, 1),
		TABLES_FULL);
	view = tables_view_of(&tables);
	service_senders_note(senders, slice_of(tenant), slice_of(sender), &view);
	tables_free(&tables);
}

static size_t count(struct service_senders *senders, const char *tenant)
{
	size_t counted;

	free(service_senders_list(senders, slice_of(tenant), &counted));
	return counted;
}

static void each_pair_stands_once_whatever_its_length(void **state)
{
	struct service_senders *senders = service_senders_new(NULL);
	char tenant[TENANT_BYTES_MAX + 2], longer[TENANT_BYTES_MAX + 3], service[400];

	(void)state;
	memset(tenant, 't', sizeof(tenant));
	tenant[TENANT_BYTES_MAX] = 0;
	memset(longer, 't', sizeof(longer));
	longer[TENANT_BYTES_MAX + 1] = 0;
	for (size_t i = 0; i + 2 < sizeof(service); i += 2)
		memcpy(service + i, "\xc3\xa4", 3); /* cut where no character is cut */
	for (int i = 0; i < 5; i++) {
		note(senders, tenant, "agent", service);
		note(senders, longer, "agent", "web");
		note(senders, "", "ag\xff", "web"); /* which could not be kept */
	}
	assert_int_equal(count(senders, tenant), 1);
	assert_int_equal(count(senders, longer), 0);
	assert_int_equal(count(senders, ""), 0);
	service_senders_free(senders);
}

static void senders_are_known_after_a_restart(void **state)
{
	char path[] = "/tmp/firn-senders-XXXXXX";
	struct service_senders *senders;
	struct service_sender *list;
	size_t counted;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(chdir(path), 0);
	senders = service_senders_new("senders.json");
	note(senders, "", "agent/1 \"x\"", "web");
	note(senders, "red", "agent/2", "db");
	service_senders_free(senders);

	senders = service_senders_new("senders.json");
	list = service_senders_list(senders, slice_of(""), &counted);
	assert_int_equal(counted, 1);
	assert_string_equal(list[0].service, "web");
	assert_string_equal(list[0].sender, "agent/1 \"x\"");
	assert_true(list[0].is_named && list[0].newest_ns == 1000 && list[0].last_at_ns > 1000);
	free(list);
	assert_int_equal(count(senders, "red"), 1);
	note(senders, "", "agent/1 \"x\"", "web"); /* the same, not another */
	assert_int_equal(count(senders, ""), 1);
	service_senders_free(senders);

	file = fopen("senders.json", "w");
	assert_true(file && fputs("[{\"service\":1}]", file) > 0);
	fclose(file);
	senders = service_senders_new("senders.json"); /* damaged: begun anew */
	assert_int_equal(count(senders, ""), 0);
	note(senders, "", "agent/3", "web");
	service_senders_free(senders);
	senders = service_senders_new("senders.json");
	assert_int_equal(count(senders, ""), 1);
	service_senders_free(senders);
	assert_int_equal(unlink("senders.json"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_stands_once_whatever_its_length),
		cmocka_unit_test(senders_are_known_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
