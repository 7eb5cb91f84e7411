/* SPDX-License-Identifier: Apache-2.0 */
/* Control group text to unit and container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/describe/cgroup.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(paths_give_unit_and_container) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
