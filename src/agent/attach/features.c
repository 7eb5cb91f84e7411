/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "agent/attach/libbpf_log.h"

bool features_have_loop(void)
{
	libbpf_log_install();
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
}

static bool has_member(const struct btf *btf, const char *structure, const char *member)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;

	for (unsigned i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(type)[i].name_off);

		if (name && !strcmp(name, member))
			return true;
	}
	return false;
}

static bool has_iterator(bool in_interrupts)
{
	struct btf *btf;
	bool found;

	libbpf_log_install();
	btf = btf__load_vmlinux_btf();
	found = btf && btf__find_by_name_kind(btf, "bpf_iter_task_vma_new", BTF_KIND_FUNC) > 0 &&
		(!in_interrupts || has_member(btf, "bpf_iter_task_vma_kern_data", "work"));
	btf__free(btf);
	return found;
}

bool features_have_vma_iterator(void)
{
	return has_iterator(true);
}

bool features_have_vma_iterator_in_tasks(void)
{
	return has_iterator(false);
}
