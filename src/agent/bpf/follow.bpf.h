/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * follow - the programs that follow the mappings of processes (space.bpf.h): at exec, fork, and
 * where system calls change them. Part of sample.bpf.c, whose memory of a CPU they use.
 */
#ifndef FIRN_AGENT_BPF_FOLLOW_BPF_H
#define FIRN_AGENT_BPF_FOLLOW_BPF_H

/* What the programs below work with. False when there is nothing to be done. */
struct follower {
	struct space_scratch *scratch;
	struct sample_counters *counts;
	struct task_struct *task;
};

static __always_inline bool follower_get(struct follower *ret)
{
	struct scratch *scratch = scratch_of_cpu();
	__u32 index = SPACE_SCRATCH_TASK;

	ret->scratch = bpf_map_lookup_elem(&space_scratches, &index);
	ret->counts = scratch ? &scratch->counts : NULL;
	ret->task = bpf_get_current_task_btf();
	return ret->scratch && ret->counts && ret->task->mm;
}

static __always_inline void update_space(struct follower *follower, const struct record_head *head)
{
	if (has_vma_iterator)
		space_read(follower->scratch, follower->task, head, follower->counts);
	else
		space_ask(follower->scratch, follower->task, head, follower->counts);
}

SEC("raw_tp/sched_process_exec")
int follow_exec(void *ctx)
{
	struct record_head head = { .at_ns = bpf_ktime_get_ns() };
	struct follower follower;

	(void)ctx;
	space_count_up(bpf_get_current_pid_tgid() >> 32);
	if (!has_vma_iterator || !follower_get(&follower))
		return 0; /* its first sample will ask */
	describe_process(&head, follower.task);
	update_space(&follower, &head);
	return 0;
}

/* Which process follow_running asks for; 0: all. */
__u32 asked_tgid;

/*
 * Run over all tasks before the first sample: the agent gets to know what runs already, as it does
 * of a process that a sample finds.
 */
SEC("iter/task")
int follow_running(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct record_head head = { .at_ns = bpf_ktime_get_ns() };
	struct scratch *scratch = scratch_of_cpu();
	__u32 index = SPACE_SCRATCH_ALL;
	struct space_scratch *space = bpf_map_lookup_elem(&space_scratches, &index);
	__u32 tgid;

	if (!task || !scratch || !space)
		return 0;
	tgid = task->tgid;
	if ((__u32)task->pid != tgid || !task->mm || (asked_tgid && asked_tgid != tgid) ||
	    bpf_map_lookup_elem(&spaces, &tgid))
		return 0;
	describe_process(&head, task);
	space_ask(space, task, &head, &scratch->counts);
	return 0;
}

struct fork_context {
	struct space_scratch *scratch;
	const struct space_head *kept; /* the parent's */
	__u32 parent, child;
};

/* bpf_loop callback. */
static long copy_part(__u32 index, void *data)
{
	struct fork_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct space_part *part;

	scratch->key.tgid = context->parent;
	scratch->key.part = index;
	part = bpf_map_lookup_elem(&space_parts, &scratch->key);
	if (!part || part->start_ns != context->kept->start_ns ||
	    part->exec_id != context->kept->exec_id)
		return 1;
	bpf_probe_read_kernel(&scratch->part, sizeof(scratch->part), part);
	scratch->part.start_ns = scratch->head.start_ns;
	scratch->part.exec_id = scratch->head.exec_id;
	scratch->key.tgid = context->child;
	bpf_map_update_elem(&space_parts, &scratch->key, &scratch->part, BPF_ANY);
	return 0;
}

/* The child begins with its parent's mappings. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	struct fork_context context;
	struct follower follower;
	struct space_head *kept;

	if (!follower_get(&follower))
		return 0;
	context.scratch = follower.scratch;
	context.parent = bpf_get_current_pid_tgid() >> 32;
	context.child = BPF_CORE_READ(child, tgid);
	if (context.child == context.parent)
		return 0;	       /* a thread */
	space_count_up(context.child); /* another process may have had its number */
	kept = bpf_map_lookup_elem(&spaces, &context.parent);
	if (!kept || !kept->parts)
		return 0;
	context.kept = kept;
	follower.scratch->head = *kept;
	follower.scratch->head.start_ns = BPF_CORE_READ(child, start_boottime);
	follower.scratch->head.exec_id = BPF_CORE_READ(child, self_exec_id);
	follower.scratch->head.sent = 0;
	bpf_loop(kept->parts, copy_part, &context, 0);
	space_put(&context.child, &follower.scratch->head);
	return 0;
}

/* bpf_find_vma callback: sets *data when there is a file. */
static long note_file(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	(void)task;
	*(__u64 *)data = vma->vm_file != NULL;
	return 0;
}

/*
 * True if what is mapped there is in no file. bpf_find_vma fails while another thread changes any
 * mapping; the iterator of newer kernels fails only while one changes this mapping.
 */
static __always_inline bool is_without_file(struct task_struct *task, __u64 address)
{
	__u64 has_file = 1;
	struct vm_area_struct *vma;
	struct bpf_iter_task_vma it;

	if (!has_vma_iterator) {
		bpf_find_vma(task, address, note_file, &has_file, 0);
		return !has_file;
	}
	bpf_iter_task_vma_new(&it, task, address);
	vma = bpf_iter_task_vma_next(&it);
	if (vma && vma->vm_start <= address)
		has_file = vma->vm_file != NULL;
	bpf_iter_task_vma_destroy(&it);
	return !has_file;
}

/*
 * True if the system call was about generated code in a process that has such: runtimes turn its
 * pages executable and writable all the time, and the walk does not need to know.
 */
static __always_inline bool is_about_generated(const struct space_head *kept,
					       struct task_struct *task,
					       const struct user_registers *registers)
{
	bool is_result =
		registers->orig_ax == SYSTEM_CALL_MMAP || registers->orig_ax == SYSTEM_CALL_MREMAP;
	__u64 address = is_result ? registers->ax : registers->di;

	return kept->flags & SPACE_HAS_GENERATED && !(kept->flags & SPACE_STALE) &&
	       is_without_file(task, address);
}

/* True if the system call changed the protection of pages that were mapped already. */
static __always_inline bool is_protection(const struct user_registers *registers)
{
	return registers->orig_ax == SYSTEM_CALL_MPROTECT ||
	       registers->orig_ax == SYSTEM_CALL_PKEY_MPROTECT;
}

/* bpf_find_vma callback: sets *data when it is executable. */
static long note_executable(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	(void)task;
	*(__u64 *)data = (vma->vm_flags & VMA_EXECUTABLE) != 0;
	return 0;
}

/* True if code was moved, of which there is as much as before. */
static __always_inline bool has_moved_code(struct task_struct *task,
					   const struct user_registers *registers)
{
	__u64 is_executable = 0;

	if (registers->orig_ax == SYSTEM_CALL_MREMAP)
		bpf_find_vma(task, registers->ax, note_executable, &is_executable, 0);
	return is_executable;
}

/* After a system call that may have changed the executable mappings of a process that is known. */
static __always_inline int follow_change(bool has_protection)
{
	struct record_head head = { .at_ns = bpf_ktime_get_ns() };
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct space_head *kept = bpf_map_lookup_elem(&spaces, &tgid);
	struct user_registers *registers;
	struct follower follower;
	bool is_executable;

	if (!kept || !follower_get(&follower))
		return 0;
	registers = (struct user_registers *)bpf_task_pt_regs(follower.task);
	is_executable = has_protection ? registers->dx & PROTECTION_EXECUTE
				       : has_moved_code(follower.task, registers);
	if (!is_executable && kept->executable_pages == follower.task->mm->exec_vm)
		return 0;
	if ((is_executable || is_protection(registers)) &&
	    is_about_generated(kept, follower.task, registers)) {
		kept->executable_pages = follower.task->mm->exec_vm;
		kept->differs_since = 0;
		return 0;
	}
	describe_process(&head, follower.task);
	if (space_is_of(kept, &head))
		update_space(&follower, &head);
	return 0;
}

SEC("tp/syscalls/sys_exit_mmap") /* and mprotect, pkey_mprotect: all have it in rdx */
int follow_protection(void *ctx)
{
	(void)ctx;
	return follow_change(true);
}

SEC("tp/syscalls/sys_exit_munmap") /* and mremap */
int follow_size(void *ctx)
{
	(void)ctx;
	return follow_change(false);
}

#endif
