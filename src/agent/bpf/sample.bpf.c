// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sample - one record per tick of a CPU clock: who runs, and both halves of its stack.
 *
 *   sample_cpu -> describe_task -> kernel half -> user half -> ring buffer
 *
 * Attached to perf events (attach/perf_events.h). Nothing is dropped silently: every early end
 * counts in `counters`, and a user stack that was cut says why in the record itself.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "agent/bpf/shared.h"
#include "agent/bpf/types.h"
#include "agent/bpf/unwind.bpf.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set before loading; the verifier drops the branch not taken. */
const volatile bool has_loop = true; /* bpf_loop (5.17) and bpf_task_pt_regs (5.15) are there */
const volatile __u64 wakeup_bytes = 1 << 17; /* wake the reader when this much waits */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18); /* resized by the agent */
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_counters);
} counters SEC(".maps");

static __always_inline void describe_task(struct sample *sample, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct task_struct *parent = leader->real_parent;
	struct record_head *head = &sample->head;
	__u64 id = bpf_get_current_pid_tgid();

	head->kind = RECORD_SAMPLE;
	head->tgid = id >> 32;
	head->tid = (__u32)id;
	head->cpu = bpf_get_smp_processor_id();
	head->process_start_ns = leader->start_boottime;
	head->exec_id = leader->self_exec_id;
	head->parent_tgid = parent->tgid;
	head->flags = parent->self_exec_id == leader->self_exec_id ? SAMPLE_IMAGE_OF_PARENT : 0;
	bpf_probe_read_kernel(head->process_name, SAMPLE_NAME_BYTES, &leader->comm);
	sample->cgroup_id = bpf_get_current_cgroup_id();
	bpf_probe_read_kernel(sample->thread_name, SAMPLE_NAME_BYTES, &task->comm);
}

static __always_inline bool is_user_mode(__u64 cs)
{
	return (cs & CS_PRIVILEGE_MASK) == CS_PRIVILEGE_USER;
}

/* Where the user half starts. Returns how it ends already, or STACK_ENDS when a walk is due. */
static __always_inline enum stack_end start_of_user_half(struct perf_context *ctx,
							 struct task_struct *task,
							 struct scratch *scratch)
{
	struct user_registers *copy = &scratch->registers;
	struct unwind *unwind = &scratch->unwind;

	if (is_user_mode(ctx->registers.cs)) {
		unwind->pc = ctx->registers.ip;
		unwind->sp = ctx->registers.sp;
		unwind->fp = ctx->registers.bp;
		barrier(); /* clang would merge this load with one below; ctx bears no arithmetic */
		return ctx->registers.cs == CS_USER_32_BIT ? STACK_32_BIT : STACK_ENDS;
	}
	if (task->flags & TASK_KERNEL_THREAD || !task->mm)
		return STACK_COMPLETE;
	if (bpf_probe_read_kernel(copy, sizeof(*copy), (void *)bpf_task_pt_regs(task)) ||
	    !is_user_mode(copy->cs))
		return STACK_NO_USER_REGISTERS;
	/* After a system call's instruction, but exactly at a faulting or interrupted one. */
	unwind->pc = copy->orig_ax == ORIG_AX_NO_SYSCALL ? copy->ip : copy->ip - 1;
	unwind->sp = copy->sp;
	unwind->fp = copy->bp;
	return copy->cs == CS_USER_32_BIT ? STACK_32_BIT : STACK_ENDS;
}

static __always_inline void walk_user_half(struct perf_context *ctx, struct task_struct *task,
					   struct scratch *scratch)
{
	struct unwind_context context = { scratch };
	struct sample *sample = &scratch->sample;
	struct unwind *unwind = &scratch->unwind;

	unwind->at = sample->kernel_count;
	unwind->end = start_of_user_half(ctx, task, scratch);
	if (unwind->end == STACK_32_BIT && unwind->at < SAMPLE_FRAMES_MAX) {
		sample->frames[unwind->at] = unwind->pc;
		unwind->at++;
	} else if (unwind->end == STACK_ENDS) {
		unwind->room = SAMPLE_USER_FRAMES_MAX;
		bpf_loop(SAMPLE_USER_FRAMES_MAX + 1, unwind_frame, &context, 0);
	}
	sample->user_count = unwind->at - sample->kernel_count;
	sample->user_end = unwind->end;
}

/* For kernels without bpf_loop: the kernel's own walk along frame pointers. */
static __always_inline void ask_for_user_half(struct perf_context *ctx, struct sample *sample)
{
	__u32 at = sample->kernel_count;
	long bytes;

	if (at > SAMPLE_KERNEL_FRAMES_MAX)
		return;
	bytes = bpf_get_stack(ctx, &sample->frames[at], SAMPLE_USER_FRAMES_MAX * 8,
			      BPF_F_USER_STACK);
	sample->user_count = bytes > 0 ? (__u64)bytes / 8 : 0;
	sample->user_end = STACK_KERNEL_WALK;
	sample->head.flags |= SAMPLE_RETURN_ADDRESSES;
}

static __always_inline void take_kernel_half(struct perf_context *ctx, struct sample *sample,
					     struct sample_counters *counts)
{
	long bytes = 0;

	if (!is_user_mode(ctx->registers.cs))
		bytes = bpf_get_stack(ctx, sample->frames, SAMPLE_KERNEL_FRAMES_MAX * 8, 0);
	if (bytes < 0) {
		counts->of[COUNTER_KERNEL_STACK_FAILED]++;
		bytes = 0;
	}
	sample->kernel_count = (__u64)bytes / 8;
}

static __always_inline void send(struct sample *sample, struct sample_counters *counts)
{
	__u64 frames = (__u64)sample->kernel_count + sample->user_count;
	__u64 bytes, flags = BPF_RB_NO_WAKEUP;

	if (frames > SAMPLE_FRAMES_MAX)
		frames = SAMPLE_FRAMES_MAX;
	bytes = SAMPLE_HEADER_BYTES + frames * 8;
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&samples, sample, bytes, flags))
		counts->of[COUNTER_RING_FULL]++;
	else
		counts->of[COUNTER_BYTES] += bytes;
	if (sample->user_end < STACK_ENDS)
		counts->of[COUNTER_STACK_END_FIRST + sample->user_end]++;
}

SEC("perf_event")
int sample_cpu(struct perf_context *ctx)
{
	__u64 started_ns = bpf_ktime_get_ns();
	struct sample_counters *counts;
	struct task_struct *task;
	struct scratch *scratch;
	__u32 zero = 0;

	if ((__u32)bpf_get_current_pid_tgid() == 0)
		return 0; /* idle is no one's work */
	counts = bpf_map_lookup_elem(&counters, &zero);
	if (!counts)
		return 0;
	counts->of[COUNTER_SAMPLES]++;
	scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!scratch) {
		counts->of[COUNTER_NO_SCRATCH]++;
		return 0;
	}
	task = bpf_get_current_task_btf();
	scratch->sample.head.at_ns = started_ns;
	describe_task(&scratch->sample, task);
	take_kernel_half(ctx, &scratch->sample, counts);
	if (has_loop)
		walk_user_half(ctx, task, scratch);
	else
		ask_for_user_half(ctx, &scratch->sample);
	send(&scratch->sample, counts);
	counts->of[COUNTER_RUN_NS] += bpf_ktime_get_ns() - started_ns;
	return 0;
}
