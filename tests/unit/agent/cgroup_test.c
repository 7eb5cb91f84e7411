/* SPDX-License-Identifier: Apache-2.0 */
/* Control group text to unit and container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/identify/cgroup.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *text, *path, *unit, *container;
} cases[] = {
	{ "0::/system.slice/nginx.service\n", "/system.slice/nginx.service", "nginx.service", "" },
	{ "0::/user.slice/user-1000.slice/session-3.scope\n",
	  "/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.service\n",
	  "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.service",
	  "app-editor.service", "" },
	{ "0::/system.slice/docker-" ID ".scope\n", "/system.slice/docker-" ID ".scope", "", ID },
	{ "0::/system.slice/containerd.service/kubepods/besteffort/pod1/" ID "\n",
	  "/system.slice/containerd.service/kubepods/besteffort/pod1/" ID, "containerd.service",
	  ID },
	{ "0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-" ID ".scope/init.scope\n",
	  "/kubepods.slice/kubepods-pod12.slice/cri-containerd-" ID ".scope/init.scope",
	  "init.scope", ID },
	{ "0::/lxc.payload.web/system.slice/cron.service\n",
	  "/lxc.payload.web/system.slice/cron.service", "cron.service", "web" },
	/* 65 digits are no id, nor are 63 */
	{ "0::/a/" ID "0\n", "/a/" ID "0", "", "" },
	{ "0::/a/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
	  "/a/23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", "" },
	/* the root says nothing */
	{ "0::/\n", "", "", "" },
	{ "", "", "", "" },
	/* version 1, with an empty unified hierarchy */
	{ "9:name=systemd:/\n5:memory:/docker/" ID "\n2:cpu,cpuacct:/other\n0::/\n", "/docker/" ID,
	  "", ID },
	{ "2:cpu,cpuacct:/a\n1:name=systemd:/system.slice/ssh.service\n",
	  "/system.slice/ssh.service", "ssh.service", "" },
	/* a path may hold colons; malformed lines are passed over */
	{ "0::/a:b/c.service\n", "/a:b/c.service", "c.service", "" },
	{ "nonsense\n:\n::\n0:\n0::relative\n0::/x\n", "/x", "", "" },
	{ "0::/.service", "/.service", "", "" },
};

static void assert_text(struct slice got, const char *want)
{
	if (!slice_is(got, want))
		fail_msg("\"%.*s\" is not \"%s\"", SLICE_FMT(got), want);
}

static void paths_give_unit_and_container(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup cgroup;

		cgroup_parse(slice_of(cases[i].text), &cgroup);
		assert_text(cgroup.path, cases[i].path);
		assert_text(cgroup.systemd_unit, cases[i].unit);
		assert_text(cgroup.container, cases[i].container);
	}
}

#define UID "9d5a6c1e-4c1b-4ad9-8a06-0d8c3c7d1f11"
#define UID_OF_SLICE "9d5a6c1e_4c1b_4ad9_8a06_0d8c3c7d1f11"

/* As runtimes write them; the first three are recorded (Docker 20.10, containerd 1.6, cgroupfs). */
static const struct {
	const char *text;
	enum cgroup_runtime runtime;
	const char *container, *pod_uid, *qos, *slice;
} containers[] = {
	{ "9:name=systemd:/docker/" ID "\n4:memory:/docker/" ID "\n0::/docker/" ID "\n",
	  CGROUP_RUNTIME_DOCKER, ID, "", NULL, "" },
	{ "9:name=systemd:/kubepods/burstable/pod" UID "/" ID "\n0::/kubepods/burstable/pod" UID
	  "/" ID "\n",
	  CGROUP_RUNTIME_UNKNOWN, ID, UID, "burstable", "" },
	{ "9:name=systemd:/\n4:memory:/k8s.io/" ID "\n0::/\n", CGROUP_RUNTIME_UNKNOWN, ID, "", NULL,
	  "" },
	{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_OF_SLICE
	  ".slice/cri-containerd-" ID ".scope\n",
	  CGROUP_RUNTIME_CONTAINERD, ID, UID, "burstable",
	  "kubepods-burstable-pod" UID_OF_SLICE ".slice" },
	{ "0::/kubepods.slice/kubepods-pod" UID_OF_SLICE ".slice/crio-" ID ".scope/container\n",
	  CGROUP_RUNTIME_CRIO, ID, UID, "guaranteed", "kubepods-pod" UID_OF_SLICE ".slice" },
	{ "0::/kubepods/besteffort/pod" UID "/" ID "\n", CGROUP_RUNTIME_UNKNOWN, ID, UID,
	  "besteffort", "" },
	{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_OF_SLICE
	  ".slice/docker-" ID ".scope\n",
	  CGROUP_RUNTIME_DOCKER, ID, UID, "besteffort",
	  "kubepods-besteffort-pod" UID_OF_SLICE ".slice" },
	{ "0::/machine.slice/libpod-" ID ".scope/container\n", CGROUP_RUNTIME_PODMAN, ID, "", NULL,
	  "machine.slice" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
	  CGROUP_RUNTIME_PODMAN, ID, "", NULL, "user.slice" },
	/* the program that watches a container is outside of it */
	{ "0::/machine.slice/libpod-conmon-" ID ".scope\n", CGROUP_RUNTIME_UNKNOWN, "", "", NULL,
	  "machine.slice" },
	/* seen from a control group namespace of our own */
	{ "0::/../../system.slice/docker-" ID ".scope\n", CGROUP_RUNTIME_DOCKER, ID, "", NULL,
	  "system.slice" },
	{ "0::/../" ID "\n", CGROUP_RUNTIME_UNKNOWN, ID, "", NULL, "" },
	{ "0::/lxc.payload.web\n", CGROUP_RUNTIME_LXC, "web", "", NULL, "" },
	/* version 1 before LXC 4; Proxmox; the program that watches is outside; a folder further
	   down */
	{ "4:memory:/lxc/web/init.scope\n1:name=systemd:/lxc/web/init.scope\n0::/\n",
	  CGROUP_RUNTIME_LXC, "web", "", NULL, "" },
	{ "1:name=systemd:/lxc.payload/db\n", CGROUP_RUNTIME_LXC, "db", "", NULL, "" },
	{ "0::/lxc/101/ns/system.slice/cron.service\n", CGROUP_RUNTIME_LXC, "101", "", NULL,
	  "system.slice" },
	{ "0::/lxc.monitor.web\n", CGROUP_RUNTIME_UNKNOWN, "", "", NULL, "" },
	{ "0::/user.slice/lxc/web\n", CGROUP_RUNTIME_UNKNOWN, "", "", NULL, "user.slice" },
	/* the same unit on hosts of version 1, of both, and of version 2 */
	{ "5:cpu,cpuacct:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n",
	  CGROUP_RUNTIME_UNKNOWN, "", "", NULL, "system.slice" },
	{ "5:cpu,cpuacct:/\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n",
	  CGROUP_RUNTIME_UNKNOWN, "", "", NULL, "system.slice" },
	{ "0::/system.slice/a.service\n", CGROUP_RUNTIME_UNKNOWN, "", "", NULL, "system.slice" },
	/* a folder of somebody's that is called like a pod's */
	{ "0::/podcast/" ID "\n", CGROUP_RUNTIME_UNKNOWN, ID, "", NULL, "" },
};

static void paths_give_runtime_and_pod(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++) {
		struct cgroup cgroup;

		cgroup_parse(slice_of(containers[i].text), &cgroup);
		assert_text(cgroup.container, containers[i].container);
		assert_int_equal(cgroup.runtime, containers[i].runtime);
		assert_string_equal(cgroup.pod_uid, containers[i].pod_uid);
		assert_text(slice_of(cgroup.pod_qos), containers[i].qos ? containers[i].qos : "");
		assert_text(cgroup.systemd_slice, containers[i].slice);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(paths_give_unit_and_container),
					    cmocka_unit_test(paths_give_runtime_and_pod) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
