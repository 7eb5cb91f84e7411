/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sched.h>

#include "agent/attach/libbpf_log.h"
#include "agent/attach/perf_events.h"
#include "base/privilege.h"

bool features_have_loop(void)
{
	libbpf_log_install();
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
}

bool features_have_vma_iterator(void)
{
	struct btf *btf;
	bool found;

	libbpf_log_install();
	btf = btf__load_vmlinux_btf();
	found = btf && btf__find_by_name_kind(btf, "bpf_iter_task_vma_new", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return found;
}

static bool opens_clock(void)
{
	struct perf_events events = { 0 };
	int cpu = sched_getcpu();
	bool opens = !perf_events_open_cpu(&events, cpu < 0 ? 0 : (unsigned)cpu, 1);

	perf_events_close(&events);
	return opens;
}

bool features_need_admin(void)
{
	bool needed;

	if (!privilege_put_aside(CAP_SYS_ADMIN))
		return false;
	needed = !opens_clock() || !features_have_vma_iterator();
	privilege_take_up(CAP_SYS_ADMIN);
	return needed;
}
