/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * types - the few kernel types that the programs look into.
 *
 * Only the fields used are named; libbpf moves each access to where the running kernel has the
 * field (CO-RE), so order and size here mean nothing; a name with three underscores is another
 * kernel's form of the type. struct user_registers is the exception: it is the fixed layout of
 * struct pt_regs on x86-64 (arch/x86/include/uapi/asm/ptrace.h), which is both the program's
 * context and what bpf_task_pt_regs points at.
 */
#ifndef FIRN_AGENT_BPF_TYPES_H
#define FIRN_AGENT_BPF_TYPES_H

#include <linux/types.h>

#ifndef __TARGET_ARCH_x86
#error "registers of this architecture are not described yet"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	__u32 s_dev;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_mtime_sec; /* 6.11 */
	__u32 i_mtime_nsec;
};

struct inode___6_7 {
	struct timespec64 __i_mtime;
};

struct inode___5 {
	struct timespec64 i_mtime;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct mm_struct {
	unsigned long exec_vm;
	unsigned long start_code, start_stack;
	struct {
		void *vdso;
	} context;
};

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	__u64 start_boottime;
	__u64 self_exec_id;
	char comm[16];
	struct thread_struct thread;
};

struct bpf_iter__task { /* context of iter/task */
	struct task_struct *task;
};

struct bpf_ksym {
	unsigned long start, end;
	char name[PROGRAM_NAME_BYTES]; /* or more */
};

struct bpf_prog_aux {
	__u32 func_cnt;
	struct bpf_prog **func; /* the program itself is the first; NULL: there is no other */
	struct bpf_ksym ksym;
};

struct bpf_prog {
	struct bpf_prog_aux *aux;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_prog { /* context of iter/bpf_prog */
	struct bpf_iter_meta *meta;
	struct bpf_prog *prog;
};

#pragma clang attribute pop

#define TASK_KERNEL_THREAD 0x00200000u /* PF_KTHREAD */

#define VMA_EXECUTABLE 0x00000004ul  /* VM_EXEC */
#define VMA_NOT_COUNTED 0x00000102ul /* in mm->exec_vm: VM_WRITE, VM_GROWSDOWN */
#define VMA_PAGE_SHIFT 12

#define SYSTEM_CALL_MMAP 9
#define SYSTEM_CALL_MPROTECT 10
#define SYSTEM_CALL_MREMAP 25
#define SYSTEM_CALL_PKEY_MPROTECT 329
#define SYSTEM_CALL_EXECVE 59
#define SYSTEM_CALL_EXECVEAT 322
#define PROTECTION_EXECUTE 4u /* PROT_EXEC */

struct user_registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	__u64 orig_ax, ip, cs, flags, sp, ss;
};

struct perf_context { /* struct bpf_perf_event_data */
	struct user_registers registers;
	__u64 sample_period;
	__u64 address;
};

_Static_assert(sizeof(struct user_registers) == 168, "struct pt_regs of x86-64");

#define CS_PRIVILEGE_MASK 3u
#define CS_PRIVILEGE_USER 3u
#define CS_USER_32_BIT 0x23u

/* orig_ax holds the system call's number inside one, and this value in interrupts and faults. */
#define ORIG_AX_NO_SYSCALL ((__u64)-1)

/* The kernel's iterator over a task's mappings (6.7). */
struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

#endif
