/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * space - keeps the executable mappings of each process image current, in order with its samples.
 *
 *   exec, fork, mmap, munmap, mprotect, mremap -> the kernel's own list of mappings (iterator, 6.7)
 *       -> `spaces` and `space_parts`, for the walk
 *       -> records, for the agent: with the image's next sample; at once when a file is new
 *
 * The list is read where the change was made, by the task that made it. A tick of the clock cannot
 * read it: kernels since 6.12.91 and 6.18.33 refuse the iterator while interrupts are off. If there
 * is no list, for a process older than the agent or a kernel without the iterator, the agent is
 * asked to read /proc, and until it has, bpf_find_vma answers for one address in each sample. For
 * processes that run when the agent starts, it is asked before the first sample.
 */
#ifndef FIRN_AGENT_BPF_SPACE_BPF_H
#define FIRN_AGENT_BPF_SPACE_BPF_H

#include "agent/bpf/jvm_file.h"
#include "agent/bpf/space.h"
#include "agent/bpf/types.h"

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 address) __ksym __weak;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SPACES_MAX);
	__type(key, __u32);
	__type(value, struct space_head);
} spaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SPACE_PARTS_ENTRIES);
	__type(key, struct space_part_key);
	__type(value, struct space_part);
} space_parts SEC(".maps");

/* Libraries of HotSpot, as far as the agent knows them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, JVM_FILES_MAX);
	__type(key, struct file_key);
	__type(value, struct jvm_file);
} jvm_files SEC(".maps");

/*
 * Processes that run HotSpot: made when they map such a library, or by the agent, which removes
 * those that have ended.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, JVM_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct jvm_entry);
} jvm_processes SEC(".maps");

__u64 jvm_inodes; /* a bit for each of the files, by its inode: few others are looked up */

#define SPACE_LOOKED_AT_MAX (1u << 17) /* twice what a process may have by default */
#define SPACE_ASK_AGAIN_NS 1000000000ull
#define SPACE_CHANGING_MOMENTS 16u /* some 17 ms: longer than a system call that waits its turn */

/* Working memory of one reading, per context that can be interrupted by another. */
struct space_scratch {
	struct space_head head;
	struct space_part_key key;
	__u32 count;
	__u32 looked_at; /* mappings, executable or not */
	__u64 pages;	 /* of those that count as mm->exec_vm does */
	__u32 lost;	 /* records that found no room */
	__u16 flags;
	struct jvm_entry jvm;
	union {
		struct space_part part;
		struct space_record record;
	};
	struct space_mapping mappings[SPACE_PROGRAM_MAPPINGS_MAX];
};

static __always_inline bool space_is_of(const struct space_head *kept,
					const struct record_head *head)
{
	return kept->start_ns == head->process_start_ns && kept->exec_id == head->exec_id;
}

static __always_inline void space_count_up(__u32 tgid)
{
	__sync_fetch_and_add(&space_versions[tgid & (SPACE_VERSIONS - 1)], SPACE_VERSION_STEP);
}

/* After its parts. */
static __always_inline void space_put(const __u32 *tgid, const struct space_head *head)
{
	bpf_map_update_elem(&spaces, tgid, head, BPF_ANY);
	space_count_up(*tgid);
}

/* Its next sample asks for the list anew. */
static __always_inline void space_forget(const __u32 *tgid)
{
	bpf_map_delete_elem(&spaces, tgid);
	space_count_up(*tgid);
}

static __always_inline __u64 space_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

static __always_inline __s64 space_mtime_ns(struct inode *inode)
{
	if (bpf_core_field_exists(inode->i_mtime_sec))
		return inode->i_mtime_sec * 1000000000ll + inode->i_mtime_nsec;
	if (bpf_core_field_exists(struct inode___6_7, __i_mtime)) {
		struct inode___6_7 *old = (struct inode___6_7 *)inode;

		return BPF_CORE_READ(old, __i_mtime.tv_sec) * 1000000000ll +
		       BPF_CORE_READ(old, __i_mtime.tv_nsec);
	}
	struct inode___5 *older = (struct inode___5 *)inode;

	return BPF_CORE_READ(older, i_mtime.tv_sec) * 1000000000ll +
	       BPF_CORE_READ(older, i_mtime.tv_nsec);
}

static __always_inline void space_describe(struct space_mapping *mapping,
					   struct vm_area_struct *vma, __u64 vdso)
{
	struct file *file = vma->vm_file;

	mapping->start = vma->vm_start;
	mapping->end = vma->vm_end;
	mapping->offset = 0;
	mapping->file = FILE_KEY_ANONYMOUS;
	if (file) {
		struct inode *inode = file->f_inode;

		mapping->offset = (__u64)vma->vm_pgoff << VMA_PAGE_SHIFT;
		mapping->file.inode = inode->i_ino;
		mapping->file.device = inode->i_sb->s_dev;
		mapping->file.changed_ns = space_mtime_ns(inode);
	} else if (mapping->start == vdso) {
		mapping->file = FILE_KEY_VDSO;
	}
}

static __always_inline void space_note(struct space_scratch *scratch, struct vm_area_struct *vma,
				       __u64 vdso)
{
	struct space_mapping *mapping;
	__u32 at = scratch->count;
	__u64 hash;

	if (at >= SPACE_PROGRAM_MAPPINGS_MAX) {
		scratch->flags |= SPACE_CUT;
		return;
	}
	mapping = &scratch->mappings[at];
	space_describe(mapping, vma, vdso);
	if (!mapping->file.inode && !mapping->file.device)
		scratch->flags |= SPACE_HAS_GENERATED;
	hash = space_mix(scratch->head.fingerprint, mapping->start);
	hash = space_mix(hash, mapping->end ^ mapping->offset << 20);
	hash = space_mix(hash, mapping->file.inode ^ mapping->file.device << 32);
	scratch->head.fingerprint = space_mix(hash, mapping->file.changed_ns);
	scratch->count = at + 1;
	if ((vma->vm_flags & VMA_NOT_COUNTED) == 0)
		scratch->pages += (mapping->end - mapping->start) >> VMA_PAGE_SHIFT;
}

/*
 * False when the list could not be had: the process is changing it. At a mapping that another
 * thread changes, the iterator ends as it does behind the last: the kernel's count of pages tells.
 */
static __always_inline bool space_list(struct space_scratch *scratch, struct task_struct *task,
				       struct mm_struct *mm)
{
	__u64 vdso = (__u64)mm->context.vdso;
	struct vm_area_struct *vma;
	struct bpf_iter_task_vma it;

	scratch->count = scratch->looked_at = 0;
	scratch->pages = scratch->flags = 0;
	scratch->head.fingerprint = 0;
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it))) {
		if (scratch->looked_at++ >= SPACE_LOOKED_AT_MAX) {
			scratch->flags |= SPACE_CUT;
			break;
		}
		if (vma->vm_flags & VMA_EXECUTABLE)
			space_note(scratch, vma, vdso);
	}
	bpf_iter_task_vma_destroy(&it);
	return scratch->count > 0 &&
	       (scratch->flags & SPACE_CUT || scratch->pages == scratch->head.executable_pages);
}

struct space_context {
	struct space_scratch *scratch;
	const struct record_head *head;
};

/* bpf_loop callback. */
static long space_look_for_unknown(__u32 index, void *data)
{
	struct space_scratch *scratch = ((struct space_context *)data)->scratch;
	struct file_key *file;

	if (index >= SPACE_PROGRAM_MAPPINGS_MAX)
		return 1;
	file = &scratch->mappings[index].file;
	if (!file->inode || bpf_map_lookup_elem(&tables, file))
		return 0;
	scratch->flags |= SPACE_HAS_UNKNOWN_FILE;
	return 1;
}

/* bpf_loop callback: a process that maps HotSpot's library runs it. */
static long space_look_for_jvm(__u32 index, void *data)
{
	struct space_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct jvm_entry *entry = &scratch->jvm, *known;
	const struct space_mapping *mapping;
	const struct jvm_file *file;
	__u32 tgid = context->head->tgid;
	__u64 bias;

	if (index >= SPACE_PROGRAM_MAPPINGS_MAX)
		return 1;
	mapping = &scratch->mappings[index];
	if (!(jvm_inodes >> (mapping->file.inode & 63) & 1))
		return 0;
	file = bpf_map_lookup_elem(&jvm_files, &mapping->file);
	if (!file || !jvm_bias(file, mapping->start, mapping->offset, &bias))
		return 0;
	known = bpf_map_lookup_elem(&jvm_processes, &tgid);
	if (known && known->process.start_ns == context->head->process_start_ns &&
	    known->process.exec_id == context->head->exec_id)
		return 1;
	jvm_entry_of(entry, file, bias);
	entry->process.start_ns = context->head->process_start_ns;
	entry->process.exec_id = context->head->exec_id;
	bpf_map_update_elem(&jvm_processes, &tgid, entry, BPF_ANY);
	return 1;
}

/* bpf_loop callback. */
static long space_keep_part(__u32 index, void *data)
{
	struct space_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct space_part *part = &scratch->part;
	__u32 first = index * SPACE_PART_MAPPINGS, count = scratch->count - first;

	if (first > SPACE_PROGRAM_MAPPINGS_MAX - SPACE_PART_MAPPINGS)
		return 1;
	bpf_probe_read_kernel(part->mappings, sizeof(part->mappings), &scratch->mappings[first]);
	part->count = count < SPACE_PART_MAPPINGS ? count : SPACE_PART_MAPPINGS;
	part->start_ns = scratch->head.start_ns;
	part->exec_id = scratch->head.exec_id;
	scratch->head.firsts[index & (SPACE_PARTS_MAX - 1)] = part->mappings[0].start;
	scratch->key.tgid = context->head->tgid;
	scratch->key.part = index;
	bpf_map_update_elem(&space_parts, &scratch->key, part, BPF_ANY);
	return 0;
}

/* bpf_loop callback. */
static long space_send_part(__u32 index, void *data)
{
	struct space_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct space_record *record = &scratch->record;
	struct space_part *part;
	__u64 bytes;

	scratch->key.tgid = context->head->tgid;
	scratch->key.part = index;
	part = bpf_map_lookup_elem(&space_parts, &scratch->key);
	if (!part || part->start_ns != context->head->process_start_ns ||
	    part->exec_id != context->head->exec_id) {
		scratch->lost++;
		return 1;
	}
	record->head = *context->head;
	record->head.kind = RECORD_SPACE;
	record->part = index;
	record->parts = scratch->head.parts;
	record->count = part->count;
	record->space_flags = scratch->head.flags;
	bpf_probe_read_kernel(record->mappings, sizeof(record->mappings), part->mappings);
	bytes = SPACE_RECORD_HEADER_BYTES + part->count * sizeof(struct space_mapping);
	barrier_var(bytes); /* clang knows the bound, the verifier does not */
	if (bytes > sizeof(*record))
		return 1;
	if (bpf_ringbuf_output(&samples, record, bytes,
			       scratch->head.flags & SPACE_HAS_UNKNOWN_FILE ? BPF_RB_FORCE_WAKEUP
									    : BPF_RB_NO_WAKEUP))
		scratch->lost++;
	return 0;
}

/* Sends what is kept of an image, which `scratch->head` is a copy of. */
static __always_inline bool space_send(struct space_scratch *scratch,
				       const struct record_head *head,
				       struct sample_counters *counts)
{
	struct space_context context = { scratch, head };

	scratch->lost = 0;
	bpf_loop(scratch->head.parts, space_send_part, &context, 0);
	counts->of[COUNTER_SPACES_SENT] += scratch->head.parts;
	counts->of[COUNTER_SPACES_LOST] += scratch->lost;
	return scratch->lost == 0;
}

/* Reads and keeps the list. Only where interrupts are on. */
static __always_inline void space_read(struct space_scratch *scratch, struct task_struct *task,
				       const struct record_head *head,
				       struct sample_counters *counts)
{
	struct space_context context = { scratch, head };
	struct space_head *kept;
	__u32 tgid = head->tgid;

	/* Before the list: what another thread changes meanwhile shows as a difference later. */
	scratch->head.executable_pages = task->mm->exec_vm;
	scratch->head.differs_since = 0;
	kept = bpf_map_lookup_elem(&spaces, &tgid);
	if (!space_list(scratch, task, task->mm)) {
		counts->of[COUNTER_SPACES_BUSY]++;
		if (kept && space_is_of(kept, head))
			kept->flags |= SPACE_STALE;
		space_count_up(tgid);
		return;
	}
	counts->of[COUNTER_SPACES_READ]++;
	scratch->head.sent = kept && space_is_of(kept, head) ? kept->sent : 0;
	scratch->head.start_ns = head->process_start_ns;
	scratch->head.exec_id = head->exec_id;
	scratch->head.parts = (scratch->count + SPACE_PART_MAPPINGS - 1) / SPACE_PART_MAPPINGS;
	bpf_loop(scratch->count, space_look_for_unknown, &context, 0);
	if (jvm_inodes)
		bpf_loop(scratch->count, space_look_for_jvm, &context, 0);
	bpf_loop(scratch->head.parts, space_keep_part, &context, 0);
	scratch->head.flags = scratch->flags;
	if (scratch->flags & SPACE_HAS_UNKNOWN_FILE && space_send(scratch, head, counts))
		scratch->head.sent = scratch->head.fingerprint;
	space_put(&tgid, &scratch->head);
}

/* Asks the agent to read /proc. Until it has, the list is empty, and `fingerprint` is the time. */
static __always_inline void space_ask(struct space_scratch *scratch, struct task_struct *task,
				      const struct record_head *head,
				      struct sample_counters *counts)
{
	__u32 tgid = head->tgid;
	struct space_head *kept = bpf_map_lookup_elem(&spaces, &tgid);

	scratch->record.head = *head;
	scratch->record.head.kind = RECORD_SPACE;
	scratch->record.part = 0;
	scratch->record.parts = 1;
	scratch->record.count = 0;
	scratch->record.space_flags = SPACE_READ_PROC;
	counts->of[COUNTER_SPACES_SENT]++;
	if (bpf_ringbuf_output(&samples, &scratch->record, SPACE_RECORD_HEADER_BYTES,
			       BPF_RB_FORCE_WAKEUP)) {
		counts->of[COUNTER_SPACES_LOST]++;
		return;
	}
	scratch->head.start_ns = head->process_start_ns;
	scratch->head.exec_id = head->exec_id;
	scratch->head.parts = 0;
	scratch->head.executable_pages = task->mm->exec_vm;
	scratch->head.differs_since = 0;
	scratch->head.sent = scratch->head.fingerprint = head->at_ns;
	scratch->head.flags =
		kept && space_is_of(kept, head) ? kept->flags & SPACE_HAS_GENERATED : 0;
	space_put(&tgid, &scratch->head);
}

/* The agent may have been too busy to answer. */
static __always_inline bool space_is_to_be_asked_again(const struct space_head *kept, __u64 now_ns)
{
	return !kept->parts && now_ns - kept->fingerprint > SPACE_ASK_AGAIN_NS;
}

/*
 * True if the kept list is known to be outdated. The kernel skips programs that follow changes
 * while a map is being changed on the same CPU, which may last as long as the changer is preempted.
 *
 * Threads of a runtime change the protection of generated code all the time. While one of them
 * does, the count of executable pages may differ, or the list could not be read. The kept list
 * still holds then: no thread runs code of a mapping before the call that maps it returns. That
 * thread's next change corrects the entry (follow_change). So in a process with generated code the
 * list is outdated only if the difference lasts.
 */
static __always_inline bool space_is_outdated(struct space_head *kept,
					      const struct task_struct *task, __u64 now_ns)
{
	__u32 moment = now_ns >> SPACE_MOMENT_SHIFT;

	if (kept->executable_pages == task->mm->exec_vm && !(kept->flags & SPACE_STALE)) {
		kept->differs_since = 0;
		return false;
	}
	if (!(kept->flags & SPACE_HAS_GENERATED) || !kept->parts)
		return true;
	if (!kept->differs_since)
		kept->differs_since = moment;
	return moment - kept->differs_since > SPACE_CHANGING_MOMENTS;
}

/* The same, of a process whose list may not be there. */
static __always_inline bool space_is_old(const struct task_struct *task,
					 const struct record_head *head)
{
	struct space_head *kept = bpf_map_lookup_elem(&spaces, &head->tgid);

	return task->mm && kept && space_is_of(kept, head) &&
	       space_is_outdated(kept, task, head->at_ns);
}

/*
 * At a sample: ensures that the agent has, or gets, the list that the walk will use. True if a
 * record was sent.
 */
static __attribute__((noinline)) bool space_prepare(struct space_scratch *scratch,
						    struct task_struct *task,
						    const struct record_head *head,
						    struct sample_counters *counts)
{
	__u32 tgid = head->tgid;
	struct space_head *kept;

	if (!task->mm)
		return false;
	kept = bpf_map_lookup_elem(&spaces, &tgid);
	if (!kept || !space_is_of(kept, head)) {
		space_ask(scratch, task, head, counts);
		return true;
	}
	if (space_is_outdated(kept, task, head->at_ns) ||
	    space_is_to_be_asked_again(kept, head->at_ns)) {
		space_ask(scratch, task, head, counts);
		return true;
	}
	if (kept->sent == kept->fingerprint)
		return false;
	scratch->head = *kept;
	if (space_send(scratch, head, counts))
		kept->sent = scratch->head.fingerprint;
	return true;
}

#endif
