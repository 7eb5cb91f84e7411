// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sample - one record per tick of a CPU clock: who runs, and both halves of its stack.
 *
 *   sample_cpu -> chosen? -> describe_task -> mappings -> kernel half -> user half -> ring buffer
 *
 * Attached to perf events (attach/perf_events.h). Nothing is dropped silently: every early end
 * counts in `counters`, and a user stack that was cut says why in the record itself; where the
 * agent is about to have what was lacking, the stack's memory goes along, for a second walk
 * (stack.bpf.h). The programs that follow the mappings of processes are in follow.bpf.h, those that
 * follow what chosen processes start in chosen.bpf.h.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "agent/bpf/chosen.bpf.h"
#include "agent/bpf/script_proof.h"
#include "agent/bpf/shared.h"
#include "agent/bpf/table.h"
#include "agent/bpf/types.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

/* Set before loading; the verifier drops the branch not taken. */
const volatile bool has_loop = true; /* bpf_loop (5.17) and bpf_task_pt_regs (5.15) are there */
const volatile bool has_vma_iterator = true; /* bpf_iter_task_vma (6.7) */
const volatile __u64 wakeup_bytes = 1 << 17; /* wake the reader when this much waits */
const volatile __u64 stacks_below = 1 << 17; /* no stack is sent when more than this waits */
__u32 space_versions[SPACE_VERSIONS];	     /* shared.h */
/* Counted up by the agent when a copy of code was gone before it was read. */
__u32 lost_copies_in_all, lost_copies[SCRIPT_LOST];
#define script_lost(proof) lost_copies[script_lost_place(proof)]

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18); /* resized by the agent */
} samples SEC(".maps");

/* Unwind tables: made by the agent (unwind/loader.h), one chunk at a time. */
struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, TABLE_CHUNK_BYTES);
};

/* The first one: its place is known when the program is loaded, without a look at the others. */
struct chunk_map first_chunk SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TABLE_CHUNKS_MAX);
	__type(key, __u32);
	__array(values, struct chunk_map);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TABLES_MAX);
	__type(key, struct file_key);
	__type(value, struct binary_tables);
} tables SEC(".maps");

#include "agent/bpf/space.bpf.h"

static __always_inline long walk_read(void *to, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}

static __always_inline const struct space_head *walk_space(__u32 tgid)
{
	return bpf_map_lookup_elem(&spaces, &tgid);
}

static __always_inline const struct space_part *walk_space_part(const struct space_part_key *key)
{
	return bpf_map_lookup_elem(&space_parts, key);
}

static __always_inline const struct binary_tables *walk_tables(const struct file_key *file,
							       __u64 now_ns)
{
	struct binary_tables *found = bpf_map_lookup_elem(&tables, file);

	if (found)
		found->used_at_ns = now_ns;
	return found;
}

static __always_inline const __u8 *walk_chunk(const struct table_segment *segment, __u64 into)
{
	__u32 index = segment->chunk, zero = 0;
	void *chunk;

	(void)into;
	if (index == 0)
		return bpf_map_lookup_elem(&first_chunk, &zero);
	chunk = bpf_map_lookup_elem(&chunks, &index);
	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

/* Processes with generated code of which the agent knows how to leave it, and the lines of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCRIPT_PROCESSES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct code_process);
} code_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CODE_LINES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct code_line_key);
	__type(value, struct code_line);
} code_lines SEC(".maps");

static __always_inline const struct code_line *walk_code_line(const struct code_line_key *key)
{
	return bpf_map_lookup_elem(&code_lines, key);
}

static __always_inline long walk_read_registers(__u64 *to)
{
	struct task_struct *task = bpf_get_current_task_btf();

	/* An interrupt of user code leaves them there, too. */
	return bpf_probe_read_kernel(to, sizeof(struct user_registers),
				     (void *)bpf_task_pt_regs(task));
}

static __always_inline void walk_copy(void *to, __u32 bytes, const void *from)
{
	bpf_probe_read_kernel(to, bytes, from);
}

struct walk;
static bool walk_ask(struct walk *walk);

#include "agent/bpf/beam.h"
#include "agent/bpf/jvm.h"
#include "agent/bpf/jvm_find.h"
#include "agent/bpf/lua.h"
#include "agent/bpf/script.h"
#include "agent/bpf/script_jsc.h"
#include "agent/bpf/script_lua.h"
#include "agent/bpf/script_perl.h"
#include "agent/bpf/script_php.h"
#include "agent/bpf/script_puc.h"
#include "agent/bpf/script_python.h"
#include "agent/bpf/script_ruby.h"
#include "agent/bpf/script_v8.h"
#include "agent/bpf/stack.bpf.h"
#include "agent/bpf/v8.h"

/* Processes that run an interpreter, and how its frames are read: made by the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCRIPT_PROCESSES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct script_process);
} script_processes SEC(".maps");

/* bpf_find_vma callback. */
static long note_vma(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct walk *walk = *(struct walk **)data;

	if (vma->vm_flags & VMA_EXECUTABLE)
		space_describe(&walk->mapping, vma, (__u64)task->mm->context.vdso);
	return 0;
}

/* The kernel answers once in a sample: it cannot let go of its lock before the interrupt ends. */
static bool walk_ask(struct walk *walk)
{
	walk->mapping.end = 0;
	bpf_find_vma(bpf_get_current_task_btf(), walk->pc, note_vma, &walk, 0);
	return walk->pc < walk->mapping.end;
}

/* What was found out of a thread. */
struct description {
	struct record_head head;
	__u64 cgroup_id;
	char thread_name[SAMPLE_NAME_BYTES];
	__u32 second;	 /* of CLOCK_MONOTONIC, nearly: ns >> 30 */
	__u32 version;	 /* of the process: SPACE_VERSIONS */
	bool is_settled; /* what the walk keeps of the thread holds as long as this does */
	bool has_script; /* its process is in script_processes */
	bool has_jvm;	 /* ... in jvm_processes */
	bool has_code;	 /* ... in code_processes */
};

/*
 * Working memory of one CPU; nothing interrupts the program on its own CPU. In one piece, because
 * at a tick no cache holds it any more, nor the places of its pages.
 */
struct scratch {
	struct walk walk;
	struct sample_counters counts;
	struct description known[WALK_MEMORIES];
	struct staged_samples staged;
	struct script script;
	bool has_news;	     /* of the mappings of the process at hand */
	bool has_code_news;  /* of its generated code: there is some that nothing is known of */
	bool owes_code_news; /* such code came too soon after other news: the next sample tells */
	__u64 woke_at_ns;    /* the reader, for such code */
} __attribute__((aligned(64)));

/* Where the sample at hand is made: behind those that wait to be sent. */
static __always_inline struct sample *sample_at_hand(struct scratch *scratch)
{
	struct staged_samples *staged = &scratch->staged;

	return (void *)&staged->samples[row_masked(staged->bytes, STAGED_BYTES - 8)];
}

static __always_inline struct description *description_of(struct scratch *scratch, __u32 tid)
{
	return &scratch->known[row_masked(tid, WALK_MEMORIES - 1)];
}

/* Where the agent finds the counters, and samples that are left when no further ones come. */
const volatile __u32 counters_at = __builtin_offsetof(struct scratch, counts);
const volatile __u32 staged_at = __builtin_offsetof(struct scratch, staged);

_Static_assert(sizeof(struct user_registers) == 8 * WALK_REGISTERS, "of the walk");

/*
 * By CPU. Not a per-CPU array: where that lies is in memory too, which is cold, while the program
 * knows where an array is.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* resized by the agent */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* By CPU: a stack that is to be sent. Few samples need it: apart from what all of them use. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* resized by the agent */
	__type(key, __u32);
	__type(value, struct stack_record);
} stack_records SEC(".maps");

_Static_assert(sizeof(struct user_registers) == 8 * STACK_RECORD_REGISTERS, "of a stack");

static __always_inline struct scratch *scratch_of_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/* A clock tick may interrupt the programs that follow mappings: each has its own memory. */
enum { SPACE_SCRATCH_SAMPLE, SPACE_SCRATCH_TASK, SPACE_SCRATCH_ALL, SPACE_SCRATCHES };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SPACE_SCRATCHES);
	__type(key, __u32);
	__type(value, struct space_scratch);
} space_scratches SEC(".maps");

/*
 * No exec since the fork. The count alone does not say: the parent may have called exec too, or be
 * another that took over an orphan. The stack's place is random, and fork keeps it.
 */
static __always_inline bool is_image_of_parent(struct task_struct *task, struct task_struct *parent)
{
	return parent->self_exec_id == task->group_leader->self_exec_id &&
	       parent->mm->start_stack == task->mm->start_stack;
}

static __always_inline void describe_process(struct record_head *head, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct task_struct *parent = leader->real_parent;

	head->tgid = task->tgid;
	head->tid = task->pid;
	head->cpu = bpf_get_smp_processor_id();
	head->process_start_ns = leader->start_boottime;
	head->exec_id = leader->self_exec_id;
	head->parent_tgid = parent->tgid;
	head->flags = is_image_of_parent(task, parent) ? SAMPLE_IMAGE_OF_PARENT : 0;
	bpf_probe_read_kernel(head->process_name, SAMPLE_NAME_BYTES, &leader->comm);
}

/*
 * What was found out of a thread holds for the rest of that second: names, cgroup and parent lie
 * scattered in memory. Code of its own that is followed (SPACE_FOLLOWED) has been seen through
 * exec, which counts its version up; in the middle of a system call it may be in one.
 */
static __always_inline bool is_described(const struct description *known, struct task_struct *task,
					 __u64 now_ns, __u32 version, bool is_in_user_code)
{
	struct task_struct *leader;

	if (known->second != (__u32)(now_ns >> 30) || known->head.tid != (__u32)task->pid ||
	    known->head.tgid != (__u32)task->tgid || known->version != version)
		return false;
	if (is_in_user_code && version & SPACE_FOLLOWED)
		return true;
	leader = task->group_leader;
	return known->head.process_start_ns == leader->start_boottime &&
	       known->head.exec_id == (__u32)leader->self_exec_id;
}

static __always_inline void describe_task(struct scratch *scratch, struct task_struct *task,
					  __u64 now_ns, bool is_in_user_code)
{
	__u32 version = space_versions[task->tgid & (SPACE_VERSIONS - 1)];
	struct description *known = description_of(scratch, task->pid);
	struct sample *sample = sample_at_hand(scratch);

	if (!is_described(known, task, now_ns, version, is_in_user_code)) {
		known->head.kind = RECORD_SAMPLE;
		describe_process(&known->head, task);
		known->cgroup_id = bpf_get_current_cgroup_id();
		bpf_probe_read_kernel(known->thread_name, SAMPLE_NAME_BYTES, &task->comm);
		known->second = now_ns >> 30;
		known->version = version;
		known->is_settled = false;
		known->has_script = bpf_map_lookup_elem(&script_processes, &known->head.tgid);
		known->has_jvm = bpf_map_lookup_elem(&jvm_processes, &known->head.tgid);
		known->has_code = bpf_map_lookup_elem(&code_processes, &known->head.tgid);
	}
	sample->head = known->head;
	sample->head.at_ns = now_ns;
	sample->cgroup_id = known->cgroup_id;
	__builtin_memcpy(sample->thread_name, known->thread_name, SAMPLE_NAME_BYTES);
}

/* In assembly: clang would share the address between loads, but ctx bears no arithmetic. */
static __always_inline __u64 interrupted_cs(const struct perf_context *ctx)
{
	__u64 cs;

	asm volatile("%0 = *(u64 *)(%1 + %2)"
		     : "=r"(cs)
		     : "r"(ctx), "i"(__builtin_offsetof(struct perf_context, registers.cs)));
	return cs;
}

static __always_inline bool is_user_mode(__u64 cs)
{
	return (cs & CS_PRIVILEGE_MASK) == CS_PRIVILEGE_USER;
}

static __always_inline void start_from(struct walk *walk, __u64 ip, __u64 sp, __u64 bp, __u64 bx)
{
	walk->pc = ip;
	walk->sp = sp;
	walk->fp = bp;
	walk->bx = bx;
	walk->full = true;
}

static __always_inline bool is_in_exec(const struct user_registers *registers)
{
	return registers->orig_ax == SYSTEM_CALL_EXECVE ||
	       registers->orig_ax == SYSTEM_CALL_EXECVEAT;
}

/* The last that exec does is to set the new image's first instruction and its stack. */
static __always_inline bool is_new_image_ready(const struct task_struct *task,
					       const struct user_registers *registers)
{
	return registers->sp == task->mm->start_stack;
}

/*
 * exec has taken the memory of the old image away, which may take it long. It says where the new
 * code is among the last that it does; the list of mappings is the old one's until follow_exec,
 * or there is none: of a process that was just forked, and still was its parent's image.
 */
static __always_inline bool is_old_image_gone(const struct task_struct *task,
					      const struct record_head *head)
{
	const struct space_head *kept = bpf_map_lookup_elem(&spaces, &head->tgid);

	if (!task->mm->start_code)
		return true;
	if (!kept || kept->start_ns != head->process_start_ns)
		return has_vma_iterator && !(head->flags & SAMPLE_IMAGE_OF_PARENT);
	return kept->exec_id + 1 == head->exec_id;
}

/* In a system call, a fault or another interrupt. */
static __always_inline enum stack_end start_in_kernel(struct task_struct *task,
						      struct scratch *scratch)
{
	const struct user_registers *saved = (struct user_registers *)bpf_task_pt_regs(task);
	struct walk *walk = &scratch->walk;
	bool is_new;

	if (task->flags & TASK_KERNEL_THREAD || !task->mm)
		return STACK_COMPLETE;
	if (!is_user_mode(saved->cs))
		return STACK_NO_USER_REGISTERS;
	start_from(walk, saved->ip, saved->sp, saved->bp, saved->bx);
	is_new = is_in_exec(saved) && is_new_image_ready(task, saved);
	if (is_in_exec(saved) && !is_new && is_old_image_gone(task, &sample_at_hand(scratch)->head))
		return STACK_COMPLETE;
	/* After a system call's instruction, but exactly at a faulting or interrupted one. */
	if (saved->orig_ax != ORIG_AX_NO_SYSCALL && !is_new)
		walk->pc--;
	return saved->cs == CS_USER_32_BIT ? STACK_32_BIT : STACK_ENDS;
}

/* Where the user half starts. Returns how it ends already, or STACK_ENDS when a walk is due. */
static __always_inline enum stack_end
start_of_user_half(struct perf_context *ctx, struct task_struct *task, struct scratch *scratch)
{
	const struct user_registers *registers = &ctx->registers;
	__u64 cs = interrupted_cs(ctx);

	if (!is_user_mode(cs))
		return start_in_kernel(task, scratch);
	start_from(&scratch->walk, registers->ip, registers->sp, registers->bp, registers->bx);
	return cs == CS_USER_32_BIT ? STACK_32_BIT : STACK_ENDS;
}

/* Chooses whose mappings hold: those of the parent until the process's own could be read. */
static __always_inline void choose_space(struct walk_owner *owner, const struct record_head *head)
{
	const struct space_head *own = bpf_map_lookup_elem(&spaces, &owner->tgid);

	if (!own || !space_is_of(own, head))
		owner->tgid = head->flags & SAMPLE_IMAGE_OF_PARENT ? head->parent_tgid : 0;
	else if (own->parts && own->sent == own->fingerprint)
		owner->fingerprint = own->fingerprint;
}

/* bpf_loop callback. */
static long next_frame(__u32 index, void *data)
{
	struct scratch *scratch = *(struct scratch **)data;

	(void)index;
	return !walk_frame(&scratch->walk, sample_at_hand(scratch));
}

/* For the walk, unless what it keeps is known to hold. */
static __always_inline void read_space(struct task_struct *task, struct scratch *scratch,
				       struct sample_counters *counts)
{
	const struct record_head *head = &sample_at_hand(scratch)->head;
	struct description *known = description_of(scratch, head->tid);
	struct walk_owner owner = {
		.start_ns = head->process_start_ns,
		.tgid = head->tgid,
		.exec_id = head->exec_id,
		.version = known->version,
		.second = known->second,
	};
	bool is_followed = owner.version & SPACE_FOLLOWED;
	__u32 index = SPACE_SCRATCH_SAMPLE;
	struct space_scratch *space;

	space = bpf_map_lookup_elem(&space_scratches, &index);
	if (space)
		scratch->has_news = space_prepare(space, task, head, counts);
	choose_space(&owner, head);
	walk_own(&scratch->walk, &owner);
	known->is_settled = is_followed && owner.fingerprint && owner.tgid == head->tgid;
}

/* The list turned out to be old: the agent is asked for the present one, before the sample. */
WALK_APART void renew_space(struct task_struct *task, struct scratch *scratch,
			    struct sample_counters *counts)
{
	__u32 index = SPACE_SCRATCH_SAMPLE;
	struct space_scratch *space = bpf_map_lookup_elem(&space_scratches, &index);

	if (space)
		scratch->has_news =
			space_prepare(space, task, &sample_at_hand(scratch)->head, counts);
}

/* For a process that is in the map; another of its number may have been meant. */
WALK_APART void prepare_jvm(struct walk *walk, const struct record_head *head)
{
	struct jvm_entry *entry = bpf_map_lookup_elem(&jvm_processes, &head->tgid);
	bool is_settled;

	jvm_start(&walk->jvm);
	walk->has_jvm = entry && entry->process.start_ns == head->process_start_ns &&
			entry->process.exec_id == head->exec_id;
	if (!walk->has_jvm)
		return;
	is_settled = entry->is_settled;
	jvm_in_order();
	walk->jvm.process = entry->process;
	if (entry->roots.heaps && !is_settled)
		find_jvm_code(walk, entry, head->at_ns);
	walk->has_jvm = walk->jvm.process.bytes != 0;
}

/* The same of an interpreter whose generated code keeps no frame pointer. */
WALK_APART void prepare_entry(struct walk *walk, const struct record_head *head)
{
	const struct script_process *process = bpf_map_lookup_elem(&script_processes, &head->tgid);

	if (!process || process->start_ns != head->process_start_ns ||
	    process->exec_id != head->exec_id)
		return;
	if (process->kind == SCRIPT_RUBY) {
		walk->entry.start = process->ruby.code_start;
		walk->entry.bytes = process->ruby.code_bytes;
	} else if (process->kind == SCRIPT_PHP) {
		walk->entry.start = process->php.code_start;
		walk->entry.bytes = process->php.code_bytes;
		walk->entry.words = process->php.entry_words;
		walk->entry.fp_words = process->php.fp_words;
	} else if (process->kind == SCRIPT_LUA) {
		lua_prepare(walk, &process->lua);
	}
	walk->has_v8 = process->kind == SCRIPT_V8;
	walk->v8.layout = process->v8;
}

/* The same for code of which there are lines, or Erlang's. */
WALK_APART void prepare_code(struct walk *walk, const struct task_struct *task,
			     const struct record_head *head)
{
	const struct code_process *process = bpf_map_lookup_elem(&code_processes, &head->tgid);

	if (process && process->start_ns == head->process_start_ns &&
	    process->exec_id == head->exec_id)
		beam_prepare(walk, process, task->thread.fsbase);
}

/* What the walk noted of Java's frames goes behind the native ones. */
WALK_APART void take_jvm_frames(struct scratch *scratch)
{
	struct sample *sample = sample_at_hand(scratch);
	__u32 first = sample->kernel_count + sample->user_count;
	__u32 count = scratch->walk.jvm.count;

	if (!count || count > SAMPLE_USER_FRAMES_MAX || first > SAMPLE_FRAMES_MAX)
		return;
	walk_copy(&sample->frames[first], 16 * count, scratch->walk.jvm.words);
	sample->script_kind = SCRIPT_HOTSPOT;
	sample->script_words = 2 * count;
}

/* The agent is to hear of code soon, though not all the time. */
static __always_inline void wake_for_code(struct scratch *scratch, __u64 now_ns)
{
	if (scratch->has_code_news)
		return;
	scratch->owes_code_news = now_ns - scratch->woke_at_ns < CODE_NEWS_NS;
	if (scratch->owes_code_news)
		return;
	scratch->has_code_news = true;
	scratch->woke_at_ns = now_ns;
}

/* It learns to leave code when it hears of it. */
static __always_inline void note_code_news(struct scratch *scratch, __u64 now_ns)
{
	if (scratch->walk.has_code && scratch->walk.by_generated &&
	    !(scratch->walk.code_key.number & CODE_NUMBER_OF_JITDUMP))
		wake_for_code(scratch, now_ns);
}

static __always_inline void walk_user_half(struct perf_context *ctx, struct task_struct *task,
					   struct scratch *scratch, struct sample_counters *counts)
{
	struct sample *sample = sample_at_hand(scratch);
	struct walk *walk = &scratch->walk;

	scratch->has_news = scratch->has_code_news = false;
	if (scratch->owes_code_news)
		wake_for_code(scratch, sample->head.at_ns);
	walk->at = sample->kernel_count;
	walk->thread = sample->head.tid;
	walk->notes_places = description_of(scratch, walk->thread)->has_script;
	walk_start(walk);
	walk->has_jvm = false;
	walk->entry = (struct code_entry){ 0 };
	walk->has_lua = walk->has_v8 = false;
	if (walk->notes_places)
		prepare_entry(walk, &sample->head);
	if (description_of(scratch, walk->thread)->has_jvm)
		prepare_jvm(walk, &sample->head);
	walk->has_code = walk->has_beam = false;
	if (description_of(scratch, walk->thread)->has_code)
		prepare_code(walk, task, &sample->head);
	walk->end = start_of_user_half(ctx, task, scratch);
	if (walk->end == STACK_32_BIT && walk->at < SAMPLE_FRAMES_MAX) {
		sample->frames[walk->at] = walk->pc;
		walk->at++;
	} else if (walk->end == STACK_ENDS) {
		walk->now_ns = sample->head.at_ns;
		if (!description_of(scratch, walk->thread)->is_settled)
			read_space(task, scratch, counts);
		if (walk_leaf(walk, sample))
			bpf_loop(2 * SAMPLE_USER_FRAMES_MAX + 2, next_frame, &scratch, 0);
		if (walk->part_lost)
			space_forget(&walk_memory(walk)->owner.tgid);
		if ((walk->end == STACK_BAD_ADDRESS || walk->end == STACK_NO_FRAME_POINTER) &&
		    space_is_old(task, &sample->head)) {
			walk->end = STACK_NO_MAPPINGS;
			renew_space(task, scratch, counts);
		}
	}
	sample->user_count = walk->at - sample->kernel_count;
	sample->user_end = walk->end;
	counts->of[COUNTER_FRAMES_BY_TABLE] += walk->by_table;
	counts->of[COUNTER_FRAMES_BY_POINTER] += walk->by_pointer;
	note_code_news(scratch, sample->head.at_ns);
}

#include "agent/bpf/scripts.bpf.h"

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

	if (!is_user_mode(interrupted_cs(ctx)))
		bytes = bpf_get_stack(ctx, sample->frames, SAMPLE_KERNEL_FRAMES_MAX * 8, 0);
	if (bytes < 0) {
		counts->of[COUNTER_KERNEL_STACK_FAILED]++;
		bytes = 0;
	}
	sample->kernel_count = (__u64)bytes / 8;
}

/* Whether the process is not known to have no generated code. */
static __always_inline bool may_have_generated(struct walk *walk)
{
	const struct space_head *head = walk_space(walk_memory(walk)->owner.tgid);

	return !head || !head->parts || head->flags & (SPACE_HAS_GENERATED | SPACE_CUT);
}

/* Sends the stack of the sample at hand. */
WALK_APART bool send_stack(struct perf_context *ctx, struct task_struct *task,
			   struct scratch *scratch)
{
	struct sample *sample = sample_at_hand(scratch);
	__u32 cpu = bpf_get_smp_processor_id();
	struct stack_record *record = bpf_map_lookup_elem(&stack_records, &cpu);
	struct walk *walk = &scratch->walk;
	__u64 bytes;

	if (!record || bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) > stacks_below)
		return false;
	if (start_of_user_half(ctx, task, scratch) != STACK_ENDS ||
	    walk_read_registers(record->registers))
		return false;
	record->head = sample->head;
	record->head.kind = RECORD_STACK;
	begin_stack(record, walk, sample);
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES + 1, keep_page, &record, 0);
	keep_far(record);
	keep_goroutine(record);
	if (record->state & STACK_STATE_FULL)
		keep_calls(record);
	if (walk->has_jvm) {
		keep_jvm(record, walk);
	} else if (record->entry.bytes) {
		bpf_loop((record->bytes + record->far_bytes) / 8, keep_call_of_entry, &record, 0);
	} else if (may_have_generated(walk)) {
		keep_code(record, record->pc);
		bpf_loop((record->bytes + record->far_bytes) / 8, keep_code_of_word, &record, 0);
	}
	bytes = STACK_RECORD_HEADER_BYTES + record->bytes + record->far_bytes +
		record->apart_count * sizeof(struct stack_apart);
	barrier_var(bytes);
	return bytes <= sizeof(*record) &&
	       !bpf_ringbuf_output(&samples, record, bytes, BPF_RB_NO_WAKEUP);
}

/*
 * Whether the agent may find out more of the stack, soon, than could be now. JavaScript's and
 * LuaJIT's own frames are bound to the native ones as they were found; Erlang's are on another
 * stack.
 */
static __always_inline bool is_for_second_walk(const struct scratch *scratch,
					       const struct sample *sample)
{
	return (sample->user_end == STACK_TABLE_PENDING || sample->user_end == STACK_NO_MAPPINGS) &&
	       (!scratch->walk.has_jvm || scratch->walk.pause.is_set) && !scratch->walk.has_beam &&
	       !scratch->walk.has_lua && sample->script_kind != SCRIPT_V8 &&
	       sample->script_kind != SCRIPT_JSC;
}

/*
 * Several samples at once: a record costs nearly as much as all the rest of a sample. What was
 * asked for may be short, and its files unknown: its news wake the agent. Other samples do not: on
 * a busy host, who is sampled would lose its turn for it, so that turns would mostly end with a
 * sample, and count for more than they are.
 */
WALK_APART void send(struct scratch *scratch)
{
	__u64 bytes = scratch->staged.bytes, flags = BPF_RB_NO_WAKEUP;
	struct sample_counters *counts = &scratch->counts;

	if (scratch->has_code_news || (only_chosen && scratch->has_news) ||
	    bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	barrier_var(bytes); /* clang knows the bound, the verifier does not */
	if (bytes > sizeof(scratch->staged.samples))
		bytes = sizeof(scratch->staged.samples);
	if (bpf_ringbuf_output(&samples, scratch->staged.samples, bytes, flags))
		counts->of[COUNTER_RING_FULL] += scratch->staged.count;
	else
		counts->of[COUNTER_BYTES] += bytes;
	scratch->staged.bytes = scratch->staged.count = 0;
}

static __always_inline bool is_late(const struct staged_samples *staged, __u64 now_ns)
{
	return staged->count && now_ns - staged->first_at_ns >= STAGED_NS;
}

/*
 * The sample at hand is done. It goes off at once where the agent has to look at its process soon:
 * before a short-lived one has ended, or when it was the first with these mappings, or in code
 * that the agent may learn to leave.
 */
static __always_inline void stage(struct scratch *scratch, const struct sample *sample)
{
	struct staged_samples *staged = &scratch->staged;

	if (!staged->count)
		staged->first_at_ns = sample->head.at_ns;
	staged->count++;
	staged->bytes += SAMPLE_HEADER_BYTES +
			 8 * (sample->kernel_count + sample->user_count + sample->script_words);
	if (!has_loop || scratch->has_news || scratch->has_code_news ||
	    staged->bytes >= STAGED_BYTES || is_late(staged, sample->head.at_ns))
		send(scratch);
}

/*
 * Nothing is taken of an idle CPU, or of a process that was not asked for; what waits there is not
 * to wait for the next sample.
 */
static __always_inline int pass_over(struct scratch *scratch, __u64 now_ns)
{
	if (is_late(&scratch->staged, now_ns))
		send(scratch);
	return 0;
}

/* Of one sample in RUN_ONE_IN, for all of them: the clock takes longer than many a frame. */
WALK_APART void count_time(struct sample_counters *counts, __u64 started_ns)
{
	__u64 run_ns = bpf_ktime_get_ns() - started_ns;
	__u64 rest = run_ns / RUN_LOG2_FIRST_NS;
	__u32 bucket = 0;

	WALK_UNROLL
	for (int bits = 8; bits; bits /= 2) {
		if (rest >> bits == 0)
			continue;
		rest >>= bits;
		bucket += bits;
	}
	bucket += rest != 0;
	if (bucket > RUN_LOG2_BUCKETS - 1)
		bucket = RUN_LOG2_BUCKETS - 1;
	counts->of[COUNTER_RUN_LOG2_FIRST + bucket] += RUN_ONE_IN;
	counts->of[COUNTER_RUN_NS] += RUN_ONE_IN * run_ns;
}

/* A load that nothing waits for. */
static __always_inline void touch(const void *at)
{
	__u64 word;

	asm volatile("%0 = *(u64 *)(%1 + 0)" : "=r"(word) : "r"(at));
}

/*
 * What the sample is going to read is cold, and each place is known by now: asked for in one go,
 * memory answers side by side, while the code that follows is fetched, which is cold too.
 */
static __always_inline void touch_all(const struct scratch *scratch, const struct task_struct *task)
{
	__u32 memory = row_masked(task->pid, WALK_MEMORIES - 1);
	const struct description *known = &scratch->known[memory];
	const struct walk *walk = &scratch->walk;

	touch(&space_versions[task->tgid & (SPACE_VERSIONS - 1) & ~1u]);
	touch(&known->head);
	touch(&known->cgroup_id);
	touch(&walk->kept[memory].high);
	touch(&walk->memories[memory].leaf);
	touch(&walk->memories[memory].current);
	touch(&walk->trail.high);
	touch(&walk->pc);
	touch(&walk->window);
	touch(&scratch->staged);
}

SEC("perf_event")
int sample_cpu(struct perf_context *ctx)
{
	__u64 started_ns = bpf_ktime_get_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample_counters *counts;
	struct scratch *scratch = scratch_of_cpu();
	struct sample *sample;

	if (!scratch)
		return 0; /* the verifier wants it; there is one */
	if (task->pid == 0 || !is_chosen(task->tgid))
		return pass_over(scratch, started_ns);
	touch_all(scratch, task);
	counts = &scratch->counts;
	counts->of[COUNTER_SAMPLES]++;
	describe_task(scratch, task, started_ns, is_user_mode(interrupted_cs(ctx)));
	sample = sample_at_hand(scratch);
	take_kernel_half(ctx, sample, counts);
	sample->script_kind = SCRIPT_NONE;
	sample->script_words = 0;
	walk_user_half(ctx, task, scratch, counts);
	if (scratch->walk.has_jvm)
		take_jvm_frames(scratch);
	if (description_of(scratch, task->pid)->has_script && !sample->script_words)
		take_script_frames(task, scratch);
	if (is_for_second_walk(scratch, sample)) {
		if (send_stack(ctx, task, scratch)) {
			sample->head.flags |= SAMPLE_HAS_STACK;
			scratch->has_news = true; /* before the next stack */
		}
		counts->of[sample->head.flags & SAMPLE_HAS_STACK ? COUNTER_STACKS_SENT
								 : COUNTER_STACKS_LOST]++;
	}
	if (sample->user_end < STACK_ENDS && !(sample->head.flags & SAMPLE_HAS_STACK))
		counts->of[COUNTER_STACK_END_FIRST + sample->user_end]++;
	stage(scratch, sample);
	if (counts->of[COUNTER_SAMPLES] % RUN_ONE_IN == 0)
		count_time(counts, started_ns);
	return 0;
}

/* describe_process where a task has no type yet (5.11). */
static __always_inline void read_process(struct record_head *head, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct task_struct *parent = BPF_CORE_READ(leader, real_parent);

	head->kind = RECORD_SAMPLE;
	head->cpu = bpf_get_smp_processor_id();
	head->tgid = BPF_CORE_READ(task, tgid);
	head->tid = BPF_CORE_READ(task, pid);
	head->parent_tgid = BPF_CORE_READ(parent, tgid);
	head->process_start_ns = BPF_CORE_READ(leader, start_boottime);
	head->exec_id = BPF_CORE_READ(leader, self_exec_id);
	head->flags = 0;
	head->reserved = 0;
	if (BPF_CORE_READ(parent, self_exec_id) == BPF_CORE_READ(leader, self_exec_id) &&
	    BPF_CORE_READ(parent, mm, start_stack) == BPF_CORE_READ(task, mm, start_stack))
		head->flags = SAMPLE_IMAGE_OF_PARENT;
	bpf_probe_read_kernel(head->process_name, SAMPLE_NAME_BYTES, &leader->comm);
}

/* True if the last sample of the thread was of another image, or is long ago. */
static __always_inline bool note_image(struct description *known, const struct record_head *head)
{
	bool is_new = known->head.tgid != head->tgid || known->head.exec_id != head->exec_id ||
		      known->head.process_start_ns != head->process_start_ns;

	known->head.tgid = head->tgid;
	known->head.exec_id = head->exec_id;
	known->head.process_start_ns = head->process_start_ns;
	return is_new;
}

/*
 * In place of sample_cpu for kernels without bpf_loop. Those before 5.13 load no program in which
 * anything is called back, whether it is reached or not; so this is one of its own.
 */
SEC("perf_event")
int sample_by_pointer(struct perf_context *ctx)
{
	__u64 started_ns = bpf_ktime_get_ns();
	struct task_struct *task = (void *)bpf_get_current_task();
	struct scratch *scratch = scratch_of_cpu();
	struct sample_counters *counts;
	struct sample *sample;

	if (!scratch || BPF_CORE_READ(task, pid) == 0 || !is_chosen(BPF_CORE_READ(task, tgid)))
		return 0;
	counts = &scratch->counts;
	counts->of[COUNTER_SAMPLES]++;
	sample = sample_at_hand(scratch);
	read_process(&sample->head, task);
	scratch->has_news = note_image(description_of(scratch, sample->head.tid), &sample->head);
	sample->head.at_ns = started_ns;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	bpf_probe_read_kernel(sample->thread_name, SAMPLE_NAME_BYTES, &task->comm);
	sample->script_kind = SCRIPT_NONE;
	sample->script_words = 0;
	take_kernel_half(ctx, sample, counts);
	ask_for_user_half(ctx, sample);
	counts->of[COUNTER_STACK_END_FIRST + STACK_KERNEL_WALK]++;
	stage(scratch, sample);
	if (counts->of[COUNTER_SAMPLES] % RUN_ONE_IN == 0)
		count_time(counts, started_ns);
	return 0;
}

#include "agent/bpf/follow.bpf.h"
#include "agent/bpf/programs.bpf.h"

/*
 * The agent runs it for each CPU while no clock ticks: what waits there is sent now, so that it is
 * with the samples before it. (Where there is no loop, none waits.) No tracepoint is meant: a
 * program of this type is one that the agent may run by itself, on hosts too that refuse iterators
 * which can write.
 */
SEC("raw_tp")
int send_staged(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 cpu = (__u32)ctx->args[0];
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &cpu);

	if (scratch && scratch->staged.count)
		send(scratch);
	return 0;
}
