/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of Kubernetes as targets: the label sets that Prometheus' documentation promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "server/scrape/kubernetes_answer.h"

/* A line for each target: its address, then its labels without "__meta_kubernetes_". */
static void finds(enum discovery_role role, const char *list, const char *wanted)
{
	struct slice prefix = SLICE_LITERAL("__meta_kubernetes_");
	struct found *found = found_new();
	struct strbuf got = { 0 }, next = { 0 };
	struct err err;

	if (kubernetes_answer_read(slice_of(list), role, found, &next, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < found->count; i++) {
		const struct found_target *target = &found->targets[i];

		strbuf_addf(&got, "%.*s", SLICE_FMT(target->labels[target->count - 1].value));
		for (size_t j = 0; j + 1 < target->count; j++) {
			struct slice name = target->labels[j].name;

			if (slice_starts_with(name, prefix))
				name = slice_tail(name, prefix.len);
			if (target->labels[j].value.len)
				strbuf_addf(&got, " %.*s=%.*s", SLICE_FMT(name),
					    SLICE_FMT(target->labels[j].value));
		}
		strbuf_add_byte(&got, '\n');
	}
	assert_string_equal(strbuf_text(&got), wanted);
	strbuf_free(&got);
	strbuf_free(&next);
	found_free(found);
}

#define POD                                                                                        \
	" namespace=shop pod_name=web-1 pod_ip=10.1.0.7 pod_phase=Running pod_node_name=n1 "       \
	"pod_host_ip=10.0.0.1 pod_uid=u1 pod_ready=true pod_controller_kind=ReplicaSet "           \
	"pod_controller_name=web pod_label_app_kubernetes_io_name=web "                            \
	"pod_labelpresent_app_kubernetes_io_name=true pod_annotation_scrape=yes "                  \
	"pod_annotationpresent_scrape=true"

static void each_port_of_a_pod_is_a_target(void **state)
{
	(void)state;
	finds(DISCOVERY_ROLE_POD,
	      "{\"items\":[{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\","
	      "\"labels\":{\"app.kubernetes.io/name\":\"web\"},"
	      "\"annotations\":{\"scrape\":\"yes\"},"
	      "\"ownerReferences\":[{\"kind\":\"X\",\"name\":\"x\"},"
	      "{\"kind\":\"ReplicaSet\",\"name\":\"web\",\"controller\":true}]},"
	      "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"app\",\"image\":\"a:1\","
	      "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"},"
	      "{\"containerPort\":6060}]},{\"name\":\"side\",\"image\":\"s:1\"}],"
	      "\"initContainers\":[{\"name\":\"init\",\"image\":\"i:1\"}]},"
	      "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.0.7\",\"hostIP\":\"10.0.0.1\","
	      "\"conditions\":[{\"type\":\"Initialized\",\"status\":\"False\"},"
	      "{\"type\":\"Ready\",\"status\":\"True\"}],"
	      "\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"containerd://c1\"}]}}]}",
	      "10.1.0.7:8080" POD " pod_container_name=app pod_container_id=containerd://c1 "
	      "pod_container_image=a:1 pod_container_init=false pod_container_port_number=8080 "
	      "pod_container_port_name=http pod_container_port_protocol=TCP\n"
	      "10.1.0.7:6060" POD " pod_container_name=app pod_container_id=containerd://c1 "
	      "pod_container_image=a:1 pod_container_init=false pod_container_port_number=6060 "
	      "pod_container_port_protocol=TCP\n"
	      "10.1.0.7" POD " pod_container_name=side pod_container_image=s:1 "
	      "pod_container_init=false\n"
	      "10.1.0.7" POD " pod_container_name=init pod_container_image=i:1 "
	      "pod_container_init=true\n");
}

static void a_pod_without_an_address_is_none(void **state)
{
	(void)state;
	finds(DISCOVERY_ROLE_POD,
	      "{\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":"
	      "\"b\"}]},"
	      "\"status\":{\"phase\":\"Pending\"}}]}",
	      "");
	finds(DISCOVERY_ROLE_POD, "{\"items\":null}", "");
}

static void a_node_is_its_kubelet(void **state)
{
	(void)state;
	finds(DISCOVERY_ROLE_NODE,
	      "{\"items\":[{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"a\"}},"
	      "\"spec\":{\"providerID\":\"aws:///i-1\"},\"status\":{"
	      "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"n1.lan\"},"
	      "{\"type\":\"InternalIP\",\"address\":\"fd00::1\"}],"
	      "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}}}},"
	      "{\"metadata\":{\"name\":\"n2\"}}]}",
	      "[fd00::1]:10250 node_name=n1 node_provider_id=aws:///i-1 instance=n1 "
	      "node_label_zone=a node_labelpresent_zone=true node_address_Hostname=n1.lan "
	      "node_address_InternalIP=fd00::1\n");
}

static void each_port_of_a_service_is_a_target(void **state)
{
	(void)state;
	finds(DISCOVERY_ROLE_SERVICE,
	      "{\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{"
	      "\"type\":\"ClusterIP\",\"clusterIP\":\"10.2.0.1\",\"ports\":["
	      "{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\"},{\"port\":53,"
	      "\"protocol\":\"UDP\"}]}},"
	      "{\"metadata\":{\"name\":\"out\",\"namespace\":\"shop\"},\"spec\":{"
	      "\"type\":\"ExternalName\",\"externalName\":\"x.example\",\"ports\":[{\"port\":1}]}}]"
	      "}",
	      "web.shop.svc:80 namespace=shop service_name=web service_type=ClusterIP "
	      "service_cluster_ip=10.2.0.1 service_port_name=http service_port_number=80 "
	      "service_port_protocol=TCP\n"
	      "web.shop.svc:53 namespace=shop service_name=web service_type=ClusterIP "
	      "service_cluster_ip=10.2.0.1 service_port_number=53 service_port_protocol=UDP\n"
	      "out.shop.svc:1 namespace=shop service_name=out service_type=ExternalName "
	      "service_external_name=x.example service_port_number=1 "
	      "service_port_protocol=TCP\n");
}

static void another_answer_is_an_error(void **state)
{
	struct found *found = found_new();
	struct strbuf next = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(kubernetes_answer_read(slice_of("{\"kind\":\"Status\"}"),
						DISCOVERY_ROLE_POD, found, &next, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "Kubernetes' list: there are no \"items\"");
	assert_int_equal(kubernetes_answer_read(
				 slice_of("{\"items\":[],\"metadata\":{\"continue\":\"x1\"}}"),
				 DISCOVERY_ROLE_POD, found, &next, &err),
			 0);
	assert_string_equal(strbuf_text(&next), "x1");
	strbuf_free(&next);
	found_free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_port_of_a_pod_is_a_target),
		cmocka_unit_test(a_pod_without_an_address_is_none),
		cmocka_unit_test(a_node_is_its_kubelet),
		cmocka_unit_test(each_port_of_a_service_is_a_target),
		cmocka_unit_test(another_answer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
