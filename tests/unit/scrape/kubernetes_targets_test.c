/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of Kubernetes as targets: the label sets that Prometheus' documentation promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "server/scrape/kubernetes_targets.h"

#define LISTS_MAX 4

struct list {
	enum kubernetes_resource resource;
	const char *text;
};

/* A line for each target: its address, then its labels without "__meta_kubernetes_". */
static void write_found(const struct found *found, struct strbuf *ret)
{
	struct slice prefix = SLICE_LITERAL("__meta_kubernetes_");

	for (size_t i = 0; i < found->count; i++) {
		const struct found_target *target = &found->targets[i];

		strbuf_addf(ret, "%.*s", SLICE_FMT(target->labels[target->count - 1].value));
		for (size_t j = 0; j + 1 < target->count; j++) {
			struct slice name = target->labels[j].name;

			if (slice_starts_with(name, prefix))
				name = slice_tail(name, prefix.len);
			if (target->labels[j].value.len)
				strbuf_addf(ret, " %.*s=%.*s", SLICE_FMT(name),
					    SLICE_FMT(target->labels[j].value));
		}
		strbuf_add_byte(ret, '\n');
	}
}

static int take(void *context, json_t *object, bool is_there, struct err *err)
{
	return kubernetes_objects_take(context, object, is_there, err);
}

static void add_list(struct kubernetes_objects *objects, const char *text)
{
	const struct kubernetes_sink sink = { take, objects, NULL };
	struct strbuf version = { 0 }, next = { 0 };
	struct kubernetes_list list;
	struct err err;

	kubernetes_list_begin(&list, &sink);
	if (kubernetes_list_add(&list, slice_of(text), &err) ||
	    kubernetes_list_end(&list, &version, &next, &err))
		fail_msg("%s", err.message);
	kubernetes_list_free(&list);
	strbuf_free(&version);
	strbuf_free(&next);
}

/* Of lists, ended by one without a text. */
static void joins(enum discovery_role role, bool attaches_nodes, const struct list *lists,
		  const char *wanted)
{
	struct kubernetes_objects objects[LISTS_MAX];
	const struct kubernetes_objects *sets[LISTS_MAX];
	struct kubernetes_view view = { sets, 0, attaches_nodes };
	struct found *found = found_new();
	struct strbuf got = { 0 };

	for (; lists->text; lists++, view.count++) {
		kubernetes_objects_init(&objects[view.count], lists->resource);
		sets[view.count] = &objects[view.count];
		add_list(&objects[view.count], lists->text);
	}
	kubernetes_targets_make(&view, role, found);
	write_found(found, &got);
	assert_string_equal(strbuf_text(&got), wanted);
	for (size_t i = 0; i < view.count; i++)
		kubernetes_objects_free(&objects[i]);
	strbuf_free(&got);
	found_free(found);
}

static void finds(enum discovery_role role, const char *list, const char *wanted)
{
	static const enum kubernetes_resource resources[DISCOVERY_ROLES] = {
		[DISCOVERY_ROLE_POD] = KUBERNETES_PODS,
		[DISCOVERY_ROLE_NODE] = KUBERNETES_NODES,
		[DISCOVERY_ROLE_SERVICE] = KUBERNETES_SERVICES,
		[DISCOVERY_ROLE_ENDPOINTS] = KUBERNETES_ENDPOINTS,
		[DISCOVERY_ROLE_SLICE] = KUBERNETES_SLICES,
		[DISCOVERY_ROLE_INGRESS] = KUBERNETES_INGRESSES,
	};
	const struct list lists[] = { { resources[role], list }, { 0 } };

	joins(role, false, lists, wanted);
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

#define TWO_PODS                                                                                   \
	"{\"items\":[{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\"},"    \
	"\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"app\",\"image\":\"a:1\","       \
	"\"env\":[{\"name\":\"SECRET\",\"value\":\"x\"}],"                                         \
	"\"ports\":[{\"name\":\"http\",\"containerPort\":8080},"                                   \
	"{\"name\":\"pprof\",\"containerPort\":6060}]}]},"                                         \
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.0.7\",\"hostIP\":\"10.0.0.1\"}}]}"
#define A_SERVICE                                                                                  \
	"{\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","                      \
	"\"labels\":{\"team\":\"a\"}},\"spec\":{\"ports\":[{\"port\":80}]}}]}"
#define A_NODE "{\"items\":[{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"z\"}}}]}"
#define POD_1                                                                                      \
	" namespace=shop pod_name=web-1 pod_ip=10.1.0.7 pod_phase=Running pod_node_name=n1 "       \
	"pod_host_ip=10.0.0.1 pod_uid=u1 pod_ready=unknown"
#define SERVICE_1 " service_name=web service_label_team=a service_labelpresent_team=true"

static void endpoints_have_their_service_and_pods(void **state)
{
	const struct list lists[] = {
		{ KUBERNETES_ENDPOINTS,
		  "{\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","
		  "\"labels\":{\"k\":\"v\"}},\"subsets\":[{"
		  "\"addresses\":[{\"ip\":\"10.1.0.7\",\"nodeName\":\"n1\",\"targetRef\":{"
		  "\"kind\":\"Pod\",\"name\":\"web-1\",\"namespace\":\"shop\"}}],"
		  "\"notReadyAddresses\":[{\"ip\":\"fd00::9\",\"hostname\":\"h9\"}],"
		  "\"ports\":[{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\"}]}]}]}" },
		{ KUBERNETES_PODS, TWO_PODS },
		{ KUBERNETES_SERVICES, A_SERVICE },
		{ 0 },
	};
#define ENDPOINTS                                                                                  \
	" namespace=shop endpoints_name=web" SERVICE_1                                             \
	" endpoints_label_k=v endpoints_labelpresent_k=true"

	(void)state;
	joins(DISCOVERY_ROLE_ENDPOINTS, false, lists,
	      "10.1.0.7:8080" ENDPOINTS " endpoint_port_name=http endpoint_port_protocol=TCP "
	      "endpoint_ready=true endpoint_address_target_kind=Pod "
	      "endpoint_address_target_name=web-1 endpoint_node_name=n1" POD_1
	      " pod_container_name=app pod_container_image=a:1 pod_container_port_name=http "
	      "pod_container_port_number=8080 pod_container_port_protocol=TCP\n"
	      "[fd00::9]:8080" ENDPOINTS " endpoint_port_name=http endpoint_port_protocol=TCP "
	      "endpoint_ready=false endpoint_hostname=h9\n"
	      "10.1.0.7:6060" ENDPOINTS POD_1
	      " pod_container_name=app pod_container_image=a:1 pod_container_port_name=pprof "
	      "pod_container_port_number=6060 pod_container_port_protocol=TCP\n");
}

static void endpoint_slices_have_their_service_pods_and_nodes(void **state)
{
	const struct list lists[] = {
		{ KUBERNETES_SLICES,
		  "{\"items\":[{\"metadata\":{\"name\":\"web-x\",\"namespace\":\"shop\","
		  "\"labels\":{\"kubernetes.io/service-name\":\"web\"}},"
		  "\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"10.1.0.7\"],"
		  "\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":false},"
		  "\"nodeName\":\"n1\",\"zone\":\"z\",\"hostname\":\"h\",\"targetRef\":{"
		  "\"kind\":\"Pod\",\"name\":\"web-1\",\"namespace\":\"shop\"},"
		  "\"deprecatedTopology\":{\"a/b\":\"c\"}},{\"addresses\":[\"10.1.0.8\"]}],"
		  "\"ports\":[{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\","
		  "\"appProtocol\":\"h2c\"}]}]}" },
		{ KUBERNETES_PODS, TWO_PODS },
		{ KUBERNETES_SERVICES, A_SERVICE },
		{ KUBERNETES_NODES, A_NODE },
	};
	const struct list all[] = { lists[0], lists[1], lists[2], lists[3], { 0 } };
#define SLICE                                                                                      \
	" namespace=shop endpointslice_address_type=IPv4 endpointslice_name=web-x "                \
	"endpointslice_label_kubernetes_io_service_name=web "                                      \
	"endpointslice_labelpresent_kubernetes_io_service_name=true" SERVICE_1
#define SLICE_PORT                                                                                 \
	" endpointslice_port_name=http endpointslice_port_protocol=TCP endpointslice_port=8080 "   \
	"endpointslice_port_app_protocol=h2c"

	(void)state;
	joins(DISCOVERY_ROLE_SLICE, true, all,
	      "10.1.0.7:8080" SLICE SLICE_PORT " endpointslice_endpoint_conditions_ready=true "
	      "endpointslice_endpoint_conditions_serving=true "
	      "endpointslice_endpoint_conditions_terminating=false "
	      "endpointslice_endpoint_hostname=h endpointslice_endpoint_node_name=n1 "
	      "endpointslice_endpoint_zone=z endpointslice_address_target_kind=Pod "
	      "endpointslice_address_target_name=web-1 "
	      "endpointslice_endpoint_topology_a_b=c "
	      "endpointslice_endpoint_topology_present_a_b=true node_name=n1 "
	      "node_label_zone=z node_labelpresent_zone=true" POD_1
	      " pod_container_name=app pod_container_image=a:1 pod_container_port_name=http "
	      "pod_container_port_number=8080 pod_container_port_protocol=TCP\n"
	      "10.1.0.8:8080" SLICE SLICE_PORT "\n"
	      "10.1.0.7:6060" SLICE POD_1
	      " pod_container_name=app pod_container_image=a:1 pod_container_port_name=pprof "
	      "pod_container_port_number=6060 pod_container_port_protocol=TCP\n");
}

static void each_path_of_an_ingress_is_a_target(void **state)
{
	(void)state;
	finds(DISCOVERY_ROLE_INGRESS,
	      "{\"items\":[{\"metadata\":{\"name\":\"front\",\"namespace\":\"shop\"},\"spec\":{"
	      "\"ingressClassName\":\"nginx\",\"tls\":[{\"hosts\":[\"*.example.org\"]}],"
	      "\"rules\":[{\"host\":\"a.example.org\",\"http\":{\"paths\":[{\"path\":\"/x\"},"
	      "{}]}},{\"host\":\"a.b.example.org\"},{\"host\":\"none\",\"http\":{}}]}}]}",
	      "a.example.org namespace=shop ingress_name=front ingress_class_name=nginx "
	      "ingress_scheme=https ingress_host=a.example.org ingress_path=/x\n"
	      "a.example.org namespace=shop ingress_name=front ingress_class_name=nginx "
	      "ingress_scheme=https ingress_host=a.example.org ingress_path=/\n"
	      "a.b.example.org namespace=shop ingress_name=front ingress_class_name=nginx "
	      "ingress_scheme=http ingress_host=a.b.example.org ingress_path=/\n");
}

static void events_change_what_is_known(void **state)
{
	struct kubernetes_objects objects;
	const struct kubernetes_objects *sets[] = { &objects };
	struct kubernetes_view view = { sets, 1, false };
	static const struct {
		const char *line, *version, *wanted;
		int rc;
	} steps[] = {
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\",\"namespace\":"
		  "\"s\",\"resourceVersion\":\"8\"},\"spec\":{\"ports\":[{\"port\":2}]}}}",
		  "8", "a.s.svc:1\nb.s.svc:2\n", 0 },
		{ "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":"
		  "\"s\",\"resourceVersion\":\"9\"},\"spec\":{\"ports\":[{\"port\":7}]}}}",
		  "9", "b.s.svc:2\na.s.svc:7\n", 0 },
		{ "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\",\"namespace\":"
		  "\"s\",\"resourceVersion\":\"11\"}}}",
		  "11", "a.s.svc:7\n", 0 },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Service\",\"metadata\":{"
		  "\"resourceVersion\":\"99\"}}}",
		  "99", "a.s.svc:7\n", 0 },
		{ "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
		  "\"message\":\"too old\"}}",
		  "99", "a.s.svc:7\n", -ERR_NOT_FOUND },
		{ "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500}}", "99",
		  "a.s.svc:7\n", -ERR_BUSY },
		{ "{\"type\":\"ADDED\"", "99", "a.s.svc:7\n", -ERR_INVALID },
		{ "{\"type\":\"ADDED\"}", "99", "a.s.svc:7\n", -ERR_INVALID },
	};
	const struct kubernetes_sink sink = { take, &objects, NULL };
	struct strbuf version = { 0 };
	struct err err;

	(void)state;
	kubernetes_objects_init(&objects, KUBERNETES_SERVICES);
	add_list(&objects, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{"
			   "\"metadata\":{\"name\":\"a\",\"namespace\":\"s\","
			   "\"resourceVersion\":\"3\"},"
			   "\"spec\":{\"ports\":[{\"port\":1}]}}]}");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct found *found = found_new();
		struct strbuf got = { 0 };

		assert_int_equal(
			kubernetes_event_read(slice_of(steps[i].line), &sink, &version, &err),
			steps[i].rc);
		assert_string_equal(strbuf_text(&version), steps[i].version);
		kubernetes_targets_make(&view, DISCOVERY_ROLE_SERVICE, found);
		for (size_t j = 0; j < found->count; j++) {
			const struct found_target *target = &found->targets[j];

			strbuf_addf(&got, "%.*s\n",
				    SLICE_FMT(target->labels[target->count - 1].value));
		}
		assert_string_equal(strbuf_text(&got), steps[i].wanted);
		strbuf_free(&got);
		found_free(found);
	}
	kubernetes_objects_free(&objects);
	strbuf_free(&version);
}

static size_t used_memory(void)
{
	return (size_t)atomic_load(&discovery_memory.used_bytes);
}

#define FIRST                                                                                      \
	"{\"metadata\":{\"name\":\"a\",\"namespace\":\"s\",\"annotations\":{\"is\":\"the same, "   \
	"again and "                                                                               \
	"again, and longer than what the table of its name takes: so much that one may tell "      \
	"which of "                                                                                \
	"the lists has it, and whether there is one of it or two, by the bytes that are paid\"}}}"
#define SECOND "{\"metadata\":{\"name\":\"b\",\"namespace\":\"s\"}}"
#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}"

static void a_new_list_shares_what_is_as_it_was(void **state)
{
	struct kubernetes_objects known, fresh;
	size_t before = used_memory(), first, both;

	(void)state;
	kubernetes_objects_init(&known, KUBERNETES_PODS);
	add_list(&known, LIST(FIRST));
	first = used_memory() - before;
	assert_true(first > strlen(FIRST));
	kubernetes_objects_init(&fresh, KUBERNETES_PODS);
	fresh.known = &known;
	add_list(&fresh, LIST(FIRST "," SECOND));
	add_list(&fresh, LIST(FIRST)); /* once more is the same one */
	both = used_memory() - before;
	assert_true(both < 2 * first);
	kubernetes_objects_replace(&known, &fresh);
	assert_in_range(used_memory() - before, first + 1, both - 1);
	assert_int_equal(json_object_size(known.texts), 2);
	kubernetes_objects_init(&fresh, KUBERNETES_PODS);
	fresh.known = &known;
	add_list(&fresh, LIST(FIRST));
	kubernetes_objects_free(&fresh); /* it was not whole */
	assert_int_equal(json_object_size(known.texts), 2);
	kubernetes_objects_free(&known);
	assert_int_equal(used_memory(), before);
}

static void what_there_is_no_memory_for_is_refused(void **state)
{
	size_t room = (size_t)DISCOVERY_MEMORY_BYTES_MAX - used_memory() - 64;
	struct kubernetes_objects objects;
	struct found *found = found_new();
	struct err err;
	json_t *object = json_loads(FIRST, 0, NULL);

	(void)state;
	assert_true(budget_take(&discovery_memory, room));
	kubernetes_objects_init(&objects, KUBERNETES_PODS);
	assert_int_equal(kubernetes_objects_take(&objects, object, true, &err), -ERR_LIMIT);
	assert_non_null(strstr(err.message, "192 MiB"));
	found_label(found, SLICE_LITERAL("__address__"), SLICE_LITERAL("a"));
	found_target(found, 0);
	assert_true(found->is_refused);
	assert_int_equal(found->count, 0);
	found_free(found);
	json_decref(object);
	kubernetes_objects_free(&objects);
	budget_give(&discovery_memory, room);
}

static bool wants_every_tenth(const void *context, const struct found_target *target)
{
	(void)context;
	return target->labels[0].value.data[target->labels[0].value.len - 1] == '0';
}

static void of_many_targets_those_that_rules_drop_are_only_counted(void **state)
{
	const struct found_filter filter = { wants_every_tenth, NULL };
	struct found *found = found_new();

	(void)state;
	found->filter = &filter;
	for (unsigned i = 0; i < 10 * FOUND_UNASKED_MAX; i++) {
		found_labelf(found, "__address__", "%u", i);
		found_target(found, 0);
	}
	assert_int_equal(found->left_out, 9 * FOUND_UNASKED_MAX / 10 * 9);
	assert_int_equal(found->count, 10 * FOUND_UNASKED_MAX - found->left_out);
	assert_false(found->is_cut);
	found_free(found);
}

static void what_makes_no_target_is_not_kept(void **state)
{
	struct kubernetes_objects objects;
	const json_t *text;
	const char *key;
	size_t bytes = 0;

	(void)state;
	kubernetes_objects_init(&objects, KUBERNETES_PODS);
	add_list(&objects, TWO_PODS);
	json_object_foreach(objects.texts, key, text)
	{
		bytes += json_string_length(text);
	}
	assert_true(bytes > 100 && bytes < sizeof(TWO_PODS) - 30);
	kubernetes_objects_free(&objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_port_of_a_pod_is_a_target),
		cmocka_unit_test(a_pod_without_an_address_is_none),
		cmocka_unit_test(a_node_is_its_kubelet),
		cmocka_unit_test(each_port_of_a_service_is_a_target),
		cmocka_unit_test(endpoints_have_their_service_and_pods),
		cmocka_unit_test(endpoint_slices_have_their_service_pods_and_nodes),
		cmocka_unit_test(each_path_of_an_ingress_is_a_target),
		cmocka_unit_test(events_change_what_is_known),
		cmocka_unit_test(what_makes_no_target_is_not_kept),
		cmocka_unit_test(a_new_list_shares_what_is_as_it_was),
		cmocka_unit_test(what_there_is_no_memory_for_is_refused),
		cmocka_unit_test(of_many_targets_those_that_rules_drop_are_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
