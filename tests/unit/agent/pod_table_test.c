/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of this node as Kubernetes tells them: who is found by what, and until when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/identify/pod_names.h"
#include "agent/identify/pod_table.h"
#include "agent/identify/workload.h"

#define META "__meta_kubernetes_"
#define NODE SLICE_LITERAL("n1")
#define POD(uid, node, more)                                                                       \
	"{\"metadata\":{\"name\":\"p-" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"" more    \
	"},\"spec\":{\"nodeName\":\"" node                                                         \
	"\",\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}]},\"status\":{"                     \
	"\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"containerd://id-" uid            \
	"\",\"lastState\":{\"terminated\":{\"containerID\":\"containerd://old-" uid "\"}}}]}}"

static void tell(struct pod_table *table, const char *text, bool is_there, int64_t now_ns)
{
	json_t *pod = json_loads(text, 0, NULL);

	assert_non_null(pod);
	pod_table_take(table, pod, is_there, NODE, now_ns);
	json_decref(pod);
}

/* The value of a label of what is found by uid and container. */
static void finds(const struct pod_table *table, const char *uid, const char *id, const char *label,
		  const char *value)
{
	struct cgroup cgroup = { .container = slice_of(id) };
	struct meta_labels found = { 0 };
	struct slice got;

	memcpy(cgroup.pod_uid, uid, strlen(uid));
	pod_table_find(table, &cgroup, &found);
	got = meta_labels_find(&found, label);
	assert_int_equal(got.len, strlen(value));
	assert_true(slice_is(got, value));
	meta_labels_free(&found);
}

static void a_pod_is_found_by_uid_or_container(void **state)
{
	struct pod_table table = { 0 };

	(void)state;
	tell(&table, POD("u1", "n1", ""), true, 1);
	tell(&table, POD("u2", "n1", ",\"annotations\":{\"kubernetes.io/config.mirror\":\"m2\"}"),
	     true, 1);
	tell(&table, POD("u3", "n2", ""), true, 1);
	finds(&table, "u1", "id-u1", META "pod_container_name", "c");
	finds(&table, "u1", "old-u1", META "pod_container_name", "c");
	finds(&table, "u1", "not-told-yet", META "pod_name", "p-u1");
	finds(&table, "u1", "not-told-yet", META "pod_container_name", "");
	finds(&table, "", "id-u1", META "pod_name", "p-u1");
	finds(&table, "m2", "id-u2", META "pod_name", "p-u2");
	finds(&table, "u3", "id-u3", META "pod_name", ""); /* of another node */
	finds(&table, "", "", META "pod_name", "");
	pod_table_free(&table);
}

static void what_has_gone_is_kept_for_a_while(void **state)
{
	struct pod_table table = { 0 };

	(void)state;
	pod_table_begin_list(&table);
	tell(&table, POD("u1", "n1", ""), true, 1);
	tell(&table, POD("u2", "n1", ""), true, 1);
	pod_table_end_list(&table, true, 1);
	tell(&table, POD("u1", "n1", ""), false, 100);
	pod_table_begin_list(&table);
	pod_table_end_list(&table, false, 150); /* half a list takes none away */
	assert_int_equal(pod_table_there(&table), 1);
	pod_table_begin_list(&table);
	pod_table_end_list(&table, true, 200);
	assert_int_equal(pod_table_there(&table), 0);
	pod_table_sweep(&table, 100);
	finds(&table, "u1", "id-u1", META "pod_name", "p-u1");
	pod_table_sweep(&table, 101);
	finds(&table, "u1", "id-u1", META "pod_name", "");
	finds(&table, "u2", "id-u2", META "pod_name", "p-u2");
	tell(&table, POD("u2", "n1", ""), true, 300); /* and is back */
	pod_table_sweep(&table, 1000);
	finds(&table, "u2", "id-u2", META "pod_name", "p-u2");
	pod_table_free(&table);
	assert_int_equal(table.bytes, 0);
}

#define OWNED(kind, name)                                                                          \
	",\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"" name "\",\"controller\":true}]"

static void owners_are_asked_for_where_names_do_not_tell(void **state)
{
	static const char owner[] =
		"{\"ownerReferences\":[{\"kind\":\"CronJob\",\"name\":\"nightly\","
		"\"controller\":true}]}";
	struct pod_table table = { 0 };
	struct strbuf path = { 0 };
	json_t *metadata = json_loads(owner, 0, NULL);

	(void)state;
	tell(&table,
	     POD("u1", "n1",
		 OWNED("ReplicaSet", "web-7f9") ",\"labels\":{\"pod-template-hash\":\"7f9\"}"),
	     true, 1);
	tell(&table, POD("u2", "n1", OWNED("StatefulSet", "db")), true, 1);
	tell(&table, POD("u3", "n1", OWNED("ReplicaSet", "../../secrets/x?")), true, 1);
	assert_false(pod_table_next_owner(&table, 5, &path));
	finds(&table, "u1", "", META "pod_workload", "web");
	finds(&table, "u1", "", META "pod_workload_kind", "Deployment");
	finds(&table, "u2", "", META "pod_workload", "db");
	tell(&table, POD("u4", "n1", OWNED("Job", "nightly-28945020")), true, 1);
	tell(&table, POD("u5", "n1", OWNED("Job", "nightly-28945020")), true, 1);
	assert_true(pod_table_next_owner(&table, 5, &path));
	assert_string_equal(strbuf_text(&path),
			    "/apis/batch/v1/namespaces/shop/jobs/nightly-28945020");
	assert_false(pod_table_knows_all(&table, slice_of("u4"), slice_of("id-u4")));
	pod_table_postpone_owner(&table, strbuf_slice(&path), 10);
	assert_false(pod_table_next_owner(&table, 9, &path));
	pod_table_answer_owner(&table, strbuf_slice(&path), metadata);
	assert_false(pod_table_next_owner(&table, 11, &path));
	finds(&table, "u4", "", META "pod_workload", "nightly");
	finds(&table, "u5", "", META "pod_workload_kind", "CronJob");
	assert_true(pod_table_knows_all(&table, slice_of("u4"), slice_of("id-u4")));
	json_decref(metadata);
	strbuf_free(&path);
	pod_table_free(&table);
}

static void what_is_not_told_is_guessed_by_names(void **state)
{
	static const struct {
		const char *kind, *name, *workload, *workload_kind;
	} names[] = {
		{ "ReplicaSet", "web-5d59d67564", "web", "Deployment" },
		{ "ReplicaSet", "web-frontend", "web-frontend", "ReplicaSet" },
		{ "ReplicaSet", "web", "web", "ReplicaSet" },
		{ "Job", "nightly-28945020", "nightly", "CronJob" },
		{ "Job", "import-7", "import-7", "Job" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct strbuf workload = { 0 }, kind = { 0 };

		workload_guess(slice_of(names[i].kind), slice_of(names[i].name), &workload, &kind);
		assert_string_equal(strbuf_text(&workload), names[i].workload);
		assert_string_equal(strbuf_text(&kind), names[i].workload_kind);
		strbuf_free(&workload);
		strbuf_free(&kind);
	}
}

static void a_server_that_tells_too_much_is_bounded(void **state)
{
	struct pod_table table = { 0 };

	(void)state;
	for (unsigned i = 0; i < POD_NAMES_MAX + 50; i++) {
		struct strbuf text = { 0 };

		strbuf_addf(&text, "{\"metadata\":{\"uid\":\"%u\"},\"spec\":{\"nodeName\":\"n1\"}}",
			    i);
		tell(&table, strbuf_text(&text), true, 1);
		strbuf_free(&text);
	}
	assert_int_equal(table.count, POD_NAMES_MAX);
	assert_int_equal(table.left_out, 50);
	pod_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_found_by_uid_or_container),
		cmocka_unit_test(what_has_gone_is_kept_for_a_while),
		cmocka_unit_test(owners_are_asked_for_where_names_do_not_tell),
		cmocka_unit_test(what_is_not_told_is_guessed_by_names),
		cmocka_unit_test(a_server_that_tells_too_much_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
