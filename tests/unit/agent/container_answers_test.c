/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of container runtimes to meta labels; pods to workloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "agent/identify/cri_answer.h"
#include "agent/identify/engine_answer.h"
#include "agent/identify/workload.h"
#include "codec/wire/pb.h"

#define ID "3110861908c09e957a039e95a029c734b18763dbbb89d61ca8e062dc0388a6d5"
#define SANDBOX "8c7f20c1a4a36e4d55f03cbb3c1b5ad6f1b1c2b46e7a1a6d2b6c5e0d7c9b8a70"

/* Docker 20.10, GET /containers/<id>/json; most members left out. */
static const char engine_json[] =
	"{\"Id\":\"" ID "\",\"Created\":\"2026-11-24T00:11:50.6Z\",\"Path\":\"/bin/sh\","
	"\"Args\":[\"-c\",\"x\"],\"State\":{\"Status\":\"running\",\"Pid\":4711},"
	"\"Image\":\"sha256:6b2c06648038a95fd0eb7fd894a8631f67b01e158a0999690669189bb2dc643d\","
	"\"Name\":\"/burner\",\"HostConfig\":{\"NetworkMode\":\"none\"},\"Config\":{\"Image\":"
	"\"shop/worker:1.4\",\"Labels\":{\"team\":\"red\",\"com.example/tier.x\":\"back\","
	"\"empty\":\"\",\"bad\":7}}}";

static void assert_label(const struct meta_labels *labels, const char *name, const char *want)
{
	struct slice got = meta_labels_find(labels, name);

	if (!slice_is(got, want))
		fail_msg("%s is \"%.*s\", not \"%s\"", name, SLICE_FMT(got), want);
}

static void an_engine_names_its_container(void **state)
{
	struct meta_labels labels = { 0 };

	(void)state;
	assert_int_equal(engine_answer_read(slice_of(engine_json), slice_of(ID), &labels, NULL), 0);
	assert_label(&labels, "__meta_docker_container_id", ID);
	assert_label(&labels, "__meta_docker_container_name", "burner");
	assert_label(&labels, "__meta_docker_container_image", "shop/worker:1.4");
	assert_label(&labels, "__meta_docker_container_label_team", "red");
	assert_label(&labels, "__meta_docker_container_label_com_example_tier_x", "back");
	assert_label(&labels, "__meta_docker_container_labelpresent_empty", "true");
	assert_label(&labels, "__meta_docker_container_label_bad", "");
	meta_labels_free(&labels);
}

static void an_engine_that_lies_is_not_believed(void **state)
{
	static const char *const lies[] = { "",	   "[]",
					    "{}",  "{\"Id\":\"" SANDBOX "\",\"Name\":\"/other\"}",
					    "nul", "{\"Id\":[\"" ID "\"]}" };
	struct meta_labels labels = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_true(engine_answer_read(slice_of(lies[i]), slice_of(ID), &labels, NULL) < 0);
	assert_int_equal(labels.count, 0);
	meta_labels_free(&labels);
}

static void put_text(struct strbuf *out, uint32_t field, const char *text)
{
	pb_put_bytes(out, field, slice_of(text));
}

static void put_pair(struct strbuf *out, uint32_t field, const char *key, const char *value)
{
	size_t pair = pb_begin(out, field);

	put_text(out, 1, key);
	put_text(out, 2, value);
	pb_end(out, pair);
}

static void put_container(struct strbuf *out, const char *id, const char *name)
{
	size_t item = pb_begin(out, 1), inner;

	put_text(out, 1, id);
	put_text(out, 2, SANDBOX);
	inner = pb_begin(out, 3);
	put_text(out, 1, name);
	pb_end(out, inner);
	inner = pb_begin(out, 4);
	put_text(out, 1, "sha256:00aa");
	pb_end(out, inner);
	pb_put_varint(out, 6, 1);
	put_pair(out, 8, "io.kubernetes.container.name", name);
	pb_end(out, item);
}

static void put_sandbox(struct strbuf *out, const char *id, const char *name)
{
	size_t item = pb_begin(out, 1), inner;

	put_text(out, 1, id);
	inner = pb_begin(out, 2);
	put_text(out, 1, name);
	put_text(out, 2, "uid-1");
	put_text(out, 3, "shop");
	pb_end(out, inner);
	put_pair(out, 5, "app.kubernetes.io/name", "cart");
	put_pair(out, 5, "pod-template-hash", "5d59d67564");
	put_pair(out, 6, "team/owner", "red");
	pb_end(out, item);
}

static void a_runtime_names_container_and_pod(void **state)
{
	struct strbuf message = { 0 }, sandbox = { 0 }, image = { 0 };
	struct meta_labels labels = { 0 };
	struct slice id = slice_of(ID);

	(void)state;
	put_container(&message, SANDBOX, "other"); /* not the one that was asked for */
	put_container(&message, ID, "server");
	assert_int_equal(
		cri_read_container(strbuf_slice(&message), id, &labels, &sandbox, &image, NULL), 1);
	assert_true(slice_is(strbuf_slice(&sandbox), SANDBOX));
	assert_true(slice_is(strbuf_slice(&image), "sha256:00aa"));
	assert_label(&labels, "__meta_kubernetes_pod_container_name", "server");
	assert_label(&labels, "__meta_kubernetes_pod_container_id", ID);
	strbuf_clear(&message);
	put_sandbox(&message, SANDBOX, "cart-5d59d67564-x7k2p");
	assert_int_equal(cri_read_sandbox(strbuf_slice(&message), slice_of(SANDBOX), &labels, NULL),
			 1);
	assert_label(&labels, "__meta_kubernetes_pod_name", "cart-5d59d67564-x7k2p");
	assert_label(&labels, "__meta_kubernetes_pod_uid", "uid-1");
	assert_label(&labels, "__meta_kubernetes_namespace", "shop");
	assert_label(&labels, "__meta_kubernetes_pod_label_app_kubernetes_io_name", "cart");
	assert_label(&labels, "__meta_kubernetes_pod_annotation_team_owner", "red");
	assert_label(&labels, "__meta_kubernetes_pod_controller_kind", "ReplicaSet");
	assert_label(&labels, "__meta_kubernetes_pod_controller_name", "cart-5d59d67564");
	assert_label(&labels, "__meta_kubernetes_pod_workload", "cart");
	assert_int_equal(cri_read_sandbox(strbuf_slice(&message), id, &labels, NULL), 0);
	meta_labels_free(&labels);
	strbuf_free(&message);
	strbuf_free(&sandbox);
	strbuf_free(&image);
}

static void workloads_follow_from_labels_and_names(void **state)
{
	static const struct {
		const char *pod, *label, *value, *second, *want;
	} cases[] = {
		{ "db-2", "statefulset_kubernetes_io_pod_name", "db-2", "x", "db" },
		{ "db-x", "statefulset_kubernetes_io_pod_name", "db-x", "x", "" },
		{ "log-abcde", "controller_revision_hash", "77f", "pod_template_generation",
		  "log" },
		{ "log-abcde", "controller_revision_hash", "77f", "x", "" },
		{ "nightly-28-xyzzy", "job_name", "nightly-28", "x", "nightly-28" },
		/* cut so that the hash is not in the name any more: nothing is guessed */
		{ "a-very-long-name-x7k2p", "pod_template_hash", "5d59d67564", "x", "" },
		{ "alone", "app", "a", "x", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct meta_labels labels = { 0 };

		meta_labels_add(&labels, "__meta_kubernetes_pod_name", slice_of(cases[i].pod));
		meta_labels_add_of(&labels, "__meta_kubernetes_pod_label_",
				   slice_of(cases[i].label), slice_of(cases[i].value));
		meta_labels_add_of(&labels, "__meta_kubernetes_pod_label_",
				   slice_of(cases[i].second), SLICE_LITERAL("1"));
		workload_add(&labels);
		assert_label(&labels, "__meta_kubernetes_pod_workload", cases[i].want);
		meta_labels_free(&labels);
	}
}

static void labels_are_bounded_and_never_cut(void **state)
{
	static char large[META_LABELS_VALUE_MAX + 2];
	struct meta_labels labels = { 0 };

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	meta_labels_add(&labels, "__meta_a", slice_of(large));
	meta_labels_add(&labels, "__meta_b", SLICE_LITERAL("\xff"));
	assert_int_equal(labels.count, 0);
	for (int i = 0; i < 2 * META_LABELS_MAX; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%d", i);
		meta_labels_add_of(&labels, "__meta_", slice_of(key), SLICE_LITERAL("1"));
	}
	assert_int_equal(labels.count, META_LABELS_MAX);
	meta_labels_free(&labels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_names_its_container),
		cmocka_unit_test(an_engine_that_lies_is_not_believed),
		cmocka_unit_test(a_runtime_names_container_and_pod),
		cmocka_unit_test(workloads_follow_from_labels_and_names),
		cmocka_unit_test(labels_are_bounded_and_never_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
