/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * space - reads the executable mappings of a process image from the kernel's own list, in the very
 * sample that needs them, keeps them for the walk and sends them to the agent.
 *
 * The kernel counts changes of an address space (mm_lock_seq, 6.4): while the count stands still,
 * what is kept holds. So nothing has to be hooked into system calls, which would cost every one of
 * them some 50 ns, and a library that was loaded a moment ago is seen. A process that changes its
 * mappings all the time is read again at most 1/SPACE_COST_SHARE of its time, unless the amount of
 * executable memory has changed.
 *
 * Only the kernel's iterator over mappings (6.7) can list them in a sample; without it the agent
 * is asked to read /proc.
 */
#ifndef FIRN_AGENT_BPF_SPACE_BPF_H
#define FIRN_AGENT_BPF_SPACE_BPF_H

#include "agent/bpf/space.h"
#include "agent/bpf/types.h"

#define SPACE_COST_SHARE 64

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

/* Working memory of one reading, per context that can be interrupted by another. */
struct space_scratch {
	struct space_head head;
	struct space_part_key key;
	__u32 count;
	__u32 lost; /* records that found no room */
	__u16 flags;
	union {
		struct space_part part;
		struct space_record record;
	};
	struct space_mapping mappings[SPACE_PROGRAM_MAPPINGS_MAX];
};

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

/* Equal values: no mapping has come, gone or changed in between. */
static __always_inline __u64 space_change(struct mm_struct *mm)
{
	__u32 sequence = 0;

	if (bpf_core_field_exists(mm->mm_lock_seq))
		bpf_probe_read_kernel(&sequence, sizeof(sequence),
				      (void *)mm + bpf_core_field_offset(mm->mm_lock_seq));
	return (__u64)mm->exec_vm << 32 | sequence;
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
	hash = space_mix(scratch->head.fingerprint, mapping->start);
	hash = space_mix(hash, mapping->end ^ mapping->offset << 20);
	hash = space_mix(hash, mapping->file.inode ^ mapping->file.device << 32);
	scratch->head.fingerprint = space_mix(hash, mapping->file.changed_ns);
	scratch->count = at + 1;
}

/* False when the list could not be had: the process is changing it. */
static __always_inline bool space_list(struct space_scratch *scratch, struct task_struct *task,
				       struct mm_struct *mm)
{
	__u64 vdso = (__u64)mm->context.vdso;
	struct vm_area_struct *vma;
	struct bpf_iter_task_vma it;

	scratch->count = 0;
	scratch->flags = 0;
	scratch->head.fingerprint = 0;
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it)))
		if (vma->vm_flags & VMA_EXECUTABLE)
			space_note(scratch, vma, vdso);
	bpf_iter_task_vma_destroy(&it);
	return scratch->count > 0;
}

struct space_context {
	struct space_scratch *scratch;
	const struct record_head *head;
};

/* Copies one part's mappings to `to`; `to` has room for SPACE_PART_MAPPINGS. Returns how many. */
static __always_inline __u32 space_copy_part(struct space_scratch *scratch, __u32 part,
					     struct space_mapping *to)
{
	__u32 first = part * SPACE_PART_MAPPINGS, count = scratch->count - first;

	if (first > SPACE_PROGRAM_MAPPINGS_MAX - SPACE_PART_MAPPINGS)
		return 0;
	bpf_probe_read_kernel(to, SPACE_PART_MAPPINGS * sizeof(*to), &scratch->mappings[first]);
	return count < SPACE_PART_MAPPINGS ? count : SPACE_PART_MAPPINGS;
}

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

/* bpf_loop callback. */
static long space_send_part(__u32 index, void *data)
{
	struct space_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct space_record *record = &scratch->record;
	__u32 count = space_copy_part(scratch, index, record->mappings);
	__u64 bytes;

	record->head = *context->head;
	record->head.kind = RECORD_SPACE;
	record->part = index;
	record->parts = scratch->head.parts;
	record->count = count;
	record->space_flags = scratch->flags;
	bytes = SPACE_RECORD_HEADER_BYTES + count * sizeof(struct space_mapping);
	barrier_var(bytes); /* clang knows the bound, the verifier does not */
	if (bytes > sizeof(*record))
		return 1;
	if (bpf_ringbuf_output(&samples, record, bytes,
			       scratch->flags & SPACE_HAS_UNKNOWN_FILE ? BPF_RB_FORCE_WAKEUP
								       : BPF_RB_NO_WAKEUP))
		scratch->lost++;
	return 0;
}

/* bpf_loop callback. */
static long space_keep_part(__u32 index, void *data)
{
	struct space_context *context = data;
	struct space_scratch *scratch = context->scratch;
	struct space_part *part = &scratch->part;

	part->count = space_copy_part(scratch, index, part->mappings);
	part->start_ns = scratch->head.start_ns;
	part->exec_id = scratch->head.exec_id;
	scratch->head.firsts[index & (SPACE_PARTS_MAX - 1)] = part->mappings[0].start;
	scratch->key.tgid = context->head->tgid;
	scratch->key.part = index;
	bpf_map_update_elem(&space_parts, &scratch->key, part, BPF_ANY);
	return 0;
}

/* Keeps and sends what space_list has found. */
static __always_inline void space_publish(struct space_scratch *scratch,
					  const struct record_head *head,
					  struct sample_counters *counts)
{
	struct space_context context = { scratch, head };
	__u32 parts = (scratch->count + SPACE_PART_MAPPINGS - 1) / SPACE_PART_MAPPINGS;

	scratch->lost = 0;
	scratch->head.parts = parts;
	bpf_loop(scratch->count, space_look_for_unknown, &context, 0);
	bpf_loop(parts, space_send_part, &context, 0);
	counts->of[COUNTER_SPACES_SENT] += parts;
	counts->of[COUNTER_SPACES_LOST] += scratch->lost;
	if (scratch->lost)
		return; /* not kept, so sent again with the next sample */
	bpf_loop(parts, space_keep_part, &context, 0);
}

/* Whether what is kept may be used without looking. */
static __always_inline bool space_holds(const struct space_head *kept,
					const struct record_head *head, __u64 change)
{
	if (kept->start_ns != head->process_start_ns || kept->exec_id != head->exec_id)
		return false;
	return kept->change == change ||
	       (kept->change >> 32 == change >> 32 &&
		head->at_ns - kept->read_at_ns < SPACE_COST_SHARE * kept->read_cost_ns);
}

/*
 * For kernels without the iterator: asks the agent to read /proc, once for each image and each
 * change of the amount of executable memory. Until it has, the list is empty.
 */
static __always_inline void space_ask(struct space_scratch *scratch, struct task_struct *task,
				      const struct record_head *head,
				      struct sample_counters *counts)
{
	struct record_head *record = &scratch->record.head;
	__u32 tgid = head->tgid;
	struct space_head *kept;
	__u64 change;

	if (!task->mm)
		return;
	change = space_change(task->mm);
	kept = bpf_map_lookup_elem(&spaces, &tgid);
	if (kept && kept->start_ns == head->process_start_ns && kept->exec_id == head->exec_id &&
	    kept->change >> 32 == change >> 32)
		return;
	*record = *head;
	record->kind = RECORD_SPACE;
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
	scratch->head.change = change;
	bpf_map_update_elem(&spaces, &tgid, &scratch->head, BPF_ANY);
}

/* Sees to it that `spaces` has the current mappings of the task's process, as far as possible. */
static __always_inline void space_refresh(struct space_scratch *scratch, struct task_struct *task,
					  const struct record_head *head,
					  struct sample_counters *counts)
{
	struct mm_struct *mm = task->mm;
	struct space_head *kept;
	__u32 tgid = head->tgid;
	__u64 change, fingerprint = 0;

	if (!mm)
		return;
	change = space_change(mm);
	kept = bpf_map_lookup_elem(&spaces, &tgid);
	if (kept) {
		if (space_holds(kept, head, change))
			return;
		if (kept->start_ns == head->process_start_ns && kept->exec_id == head->exec_id)
			fingerprint = kept->fingerprint;
	}
	if (!space_list(scratch, task, mm)) {
		counts->of[COUNTER_SPACES_BUSY]++;
		return;
	}
	counts->of[COUNTER_SPACES_READ]++;
	scratch->head.start_ns = head->process_start_ns;
	scratch->head.exec_id = head->exec_id;
	scratch->head.change = change;
	scratch->head.read_at_ns = head->at_ns;
	scratch->lost = 0;
	if (scratch->head.fingerprint != fingerprint)
		space_publish(scratch, head, counts);
	else if (kept) { /* always so; parts and firsts stay */
		kept->change = change;
		kept->read_at_ns = head->at_ns;
		kept->read_cost_ns = bpf_ktime_get_ns() - head->at_ns;
		return;
	}
	if (scratch->lost)
		return;
	scratch->head.read_cost_ns = bpf_ktime_get_ns() - head->at_ns;
	bpf_map_update_elem(&spaces, &tgid, &scratch->head, BPF_ANY);
}

#endif
