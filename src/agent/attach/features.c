/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "agent/attach/libbpf_log.h"

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
