/* SPDX-License-Identifier: Apache-2.0 */
/* What Docker says of its containers, as targets with Prometheus' labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "server/scrape/docker_answer.h"

#define WEB                                                                                        \
	"{\"Id\":\"c1\",\"Names\":[\"/web\"],\"Labels\":{\"com.example/team\":\"shop\"},"          \
	"\"HostConfig\":{\"NetworkMode\":\"shop\"},\"Ports\":["                                    \
	"{\"IP\":\"0.0.0.0\",\"PrivatePort\":8080,\"PublicPort\":80,\"Type\":\"tcp\"},"            \
	"{\"PrivatePort\":53,\"Type\":\"udp\"},{\"PrivatePort\":9090,\"Type\":\"tcp\"}],"          \
	"\"NetworkSettings\":{\"Networks\":{"                                                      \
	"\"shop\":{\"NetworkID\":\"n1\",\"IPAddress\":\"172.19.0.2\"},"                            \
	"\"back\":{\"NetworkID\":\"n2\",\"IPAddress\":\"172.20.0.2\"}}}}"
#define SIDE(network)                                                                              \
	"{\"Id\":\"c2\",\"Names\":[\"/side\"],\"HostConfig\":{\"NetworkMode\":\"" network          \
	"\"},\"NetworkSettings\":{\"Networks\":{}}}"
#define NETWORKS                                                                                   \
	"[{\"Id\":\"n1\",\"Name\":\"shop\",\"Scope\":\"local\",\"Internal\":false,"                \
	"\"Ingress\":false,\"Labels\":{\"a.b\":\"c\"}},"                                           \
	"{\"Id\":\"n2\",\"Name\":\"back\",\"Scope\":\"local\",\"Internal\":true,\"Labels\":{}}]"
#define C1                                                                                         \
	" container_id=c1 container_name=/web container_network_mode=shop "                        \
	"container_label_com_example_team=shop"

/* A line for each target: its address, then its labels without "__meta_docker_". */
static void finds(const char *containers, bool first_alone, const char *wanted)
{
	const struct discovery_config config = { .kind = DISCOVERY_DOCKER,
						 .port = 81,
						 .host_networking_host = SLICE_LITERAL("here"),
						 .match_first_network = first_alone };
	struct slice prefix = SLICE_LITERAL("__meta_docker_");
	struct found *found = found_new();
	struct strbuf got = { 0 };
	struct err err;

	if (docker_answer_read(slice_of(containers), slice_of(NETWORKS), &config, found, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < found->count; i++) {
		const struct found_target *target = &found->targets[i];

		strbuf_addf(&got, "%.*s", SLICE_FMT(target->labels[target->count - 1].value));
		for (size_t j = 0; j + 1 < target->count; j++)
			strbuf_addf(&got, " %.*s=%.*s",
				    SLICE_FMT(slice_tail(target->labels[j].name, prefix.len)),
				    SLICE_FMT(target->labels[j].value));
		strbuf_add_byte(&got, '\n');
	}
	assert_string_equal(strbuf_text(&got), wanted);
	strbuf_free(&got);
	found_free(found);
}

#define BACK                                                                                       \
	" network_ip=172.20.0.2 network_id=n2 network_name=back network_scope=local "              \
	"network_internal=true network_ingress=false"
#define SHOP                                                                                       \
	" network_ip=172.19.0.2 network_id=n1 network_name=shop network_scope=local "              \
	"network_internal=false network_ingress=false network_label_a_b=c"
#define PUBLIC " port_private=8080 port_public=80 port_public_ip=0.0.0.0\n"

static void each_tcp_port_is_a_target(void **state)
{
	(void)state;
	finds("[" WEB "]", true,
	      "172.20.0.2:8080" C1 BACK PUBLIC "172.20.0.2:9090" C1 BACK " port_private=9090\n");
	finds("[" WEB "]", false,
	      "172.19.0.2:8080" C1 SHOP PUBLIC "172.19.0.2:9090" C1 SHOP " port_private=9090\n"
	      "172.20.0.2:8080" C1 BACK PUBLIC "172.20.0.2:9090" C1 BACK " port_private=9090\n");
}

static void a_shared_network_is_the_others(void **state)
{
	(void)state;
	finds("[" SIDE("container:c1") "," WEB "]", true,
	      "172.20.0.2:81 container_id=c2 container_name=/side "
	      "container_network_mode=container:c1" BACK "\n"
	      "172.20.0.2:8080" C1 BACK PUBLIC "172.20.0.2:9090" C1 BACK " port_private=9090\n");
	finds("[" SIDE("container:c2") "]", true, "");
	finds("[" SIDE("container:gone") "]", true, "");
}

static void the_hosts_network_has_the_hosts_address(void **state)
{
	(void)state;
	finds("[{\"Id\":\"c3\",\"Names\":[\"/h\"],\"HostConfig\":{\"NetworkMode\":\"host\"},"
	      "\"NetworkSettings\":{\"Networks\":{\"host\":{\"NetworkID\":\"n3\","
	      "\"IPAddress\":\"\"}}}}]",
	      true,
	      "here container_id=c3 container_name=/h container_network_mode=host network_ip=\n");
	finds("[{\"Id\":\"c4\",\"Names\":[\"/6\"],\"HostConfig\":{\"NetworkMode\":\"x\"},"
	      "\"NetworkSettings\":{\"Networks\":{\"x\":{\"IPAddress\":\"fd00::2\"}}}}]",
	      true,
	      "[fd00::2]:81 container_id=c4 container_name=/6 container_network_mode=x "
	      "network_ip=fd00::2\n");
}

static void another_answer_is_an_error(void **state)
{
	const struct discovery_config config = { .kind = DISCOVERY_DOCKER };
	struct found *found = found_new();
	struct err err;

	(void)state;
	assert_int_equal(docker_answer_read(slice_of("{\"message\":\"no\"}"), slice_of("[]"),
					    &config, found, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "Docker's containers: expected a list");
	assert_int_equal(docker_answer_read(slice_of("[]"), slice_of("[7]"), &config, found, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "Docker's networks: number 0 has no Id");
	found_free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_tcp_port_is_a_target),
		cmocka_unit_test(a_shared_network_is_the_others),
		cmocka_unit_test(the_hosts_network_has_the_hosts_address),
		cmocka_unit_test(another_answer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
