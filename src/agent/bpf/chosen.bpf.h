/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * chosen - which processes are sampled, when not all are: those that were asked for, and whatever
 * they start from then on, however short it lives.
 *
 * The clock of a CPU ticks for all; a tick in another process is passed over. A clock of each
 * thread, which perf offers, begins a new period with each thread: it never ticks in one that ends
 * sooner, so a script of short commands would have no sample.
 *
 * The agent puts the first ones into the map. A process leaves it when the kernel frees its first
 * thread, which is after all others have ended. Past CHOSEN_MAX at a time, further ones are left
 * out.
 */
#ifndef FIRN_AGENT_BPF_CHOSEN_BPF_H
#define FIRN_AGENT_BPF_CHOSEN_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "agent/bpf/shared.h"
#include "agent/bpf/types.h"

const volatile bool only_chosen = false; /* set before loading */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CHOSEN_MAX); /* fewer where all are sampled */
	__type(key, __u32);		 /* process id */
	__type(value, __u8);
} chosen SEC(".maps");

static __always_inline bool is_chosen(__u32 tgid)
{
	return !only_chosen || bpf_map_lookup_elem(&chosen, &tgid);
}

SEC("raw_tp/sched_process_fork")
int choose_child(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 parent = bpf_get_current_pid_tgid() >> 32, tgid = BPF_CORE_READ(child, tgid);
	__u8 yes = 1;

	if (tgid != parent && bpf_map_lookup_elem(&chosen, &parent))
		bpf_map_update_elem(&chosen, &tgid, &yes, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_free")
int drop_chosen(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if ((__u32)BPF_CORE_READ(task, pid) == tgid)
		bpf_map_delete_elem(&chosen, &tgid);
	return 0;
}

#endif
