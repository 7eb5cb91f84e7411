/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * shared - what the BPF program and the agent say to each other: the sample record of the ring
 * buffer, the reasons why a user stack ended, and the program's counters.
 *
 * Both sides are built from this header, so layouts are pinned by the assertions below. Numbers
 * are in the host's byte order: the record never leaves the host.
 */
#ifndef FIRN_AGENT_BPF_SHARED_H
#define FIRN_AGENT_BPF_SHARED_H

#include <linux/types.h>

#define SAMPLE_NAME_BYTES 16 /* TASK_COMM_LEN; shorter names are filled up with NUL */
#define SAMPLE_KERNEL_FRAMES_MAX 127 /* kernel.perf_event_max_stack by default */
#define SAMPLE_USER_FRAMES_MAX 256
#define SAMPLE_FRAMES_MAX (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX)

/* Why the walk of a user stack ended. */
enum stack_end {
	STACK_COMPLETE,		   /* at the outermost frame, or the task has no user half */
	STACK_NO_FRAME_POINTER,	   /* the register or a saved one cannot be a frame pointer */
	STACK_UNREADABLE,	   /* stack memory was not resident */
	STACK_TOO_DEEP,		   /* over SAMPLE_USER_FRAMES_MAX */
	STACK_32_BIT,		   /* compatibility mode: only the innermost frame is known */
	STACK_NO_USER_REGISTERS,   /* in the kernel, and the user registers could not be had */
	STACK_KERNEL_WALK,	   /* walked by the kernel's own helper, which does not say */
	STACK_ENDS
};

enum sample_flag {
	/* User frames after the first are return addresses as they were found, not moved back. */
	SAMPLE_RETURN_ADDRESSES = 1,
	/* No exec since the parent forked it: the same binaries at the same addresses. */
	SAMPLE_IMAGE_OF_PARENT = 2,
};

/*
 * One sample, sent with only the used part of `frames`: first the kernel frames as bpf_get_stack
 * gave them (innermost first; all but the first are return addresses), then the user frames
 * (innermost first; return addresses already moved back by one, so that each lies inside its call).
 */
struct sample {
	__u64 at_ns;		/* CLOCK_MONOTONIC */
	__u64 process_start_ns; /* of the thread group's leader, CLOCK_BOOTTIME */
	__u64 cgroup_id;
	__u32 tgid;
	__u32 tid;
	__u32 parent_tgid;
	__u32 exec_id; /* counts exec; with tgid and start it names a process image */
	__u32 cpu;
	__u16 kernel_count;
	__u16 user_count;
	__u8 user_end; /* enum stack_end */
	__u8 flags;    /* enum sample_flag */
	__u8 reserved[6];
	char process_name[SAMPLE_NAME_BYTES]; /* comm of the leader */
	char thread_name[SAMPLE_NAME_BYTES];
	__u64 frames[SAMPLE_FRAMES_MAX];
};

#define SAMPLE_HEADER_BYTES 88

/* Per CPU, only ever added to. */
enum sample_counter {
	COUNTER_SAMPLES,	    /* the program ran on a task other than idle */
	COUNTER_RING_FULL,	    /* samples lost because the ring buffer was full */
	COUNTER_NO_SCRATCH,	    /* samples lost because the working memory was missing */
	COUNTER_BYTES,		    /* sent to the ring buffer */
	COUNTER_RUN_NS,		    /* time spent in the program */
	COUNTER_KERNEL_STACK_FAILED,/* samples sent without their kernel half */
	COUNTER_STACK_END_FIRST,    /* + enum stack_end: samples by end of their user stack */
	COUNTERS = COUNTER_STACK_END_FIRST + STACK_ENDS
};

struct sample_counters {
	__u64 of[COUNTERS];
};

_Static_assert(__builtin_offsetof(struct sample, frames) == SAMPLE_HEADER_BYTES, "sample header");
_Static_assert(sizeof(struct sample) == SAMPLE_HEADER_BYTES + 8 * SAMPLE_FRAMES_MAX, "sample");
_Static_assert(__builtin_offsetof(struct sample, process_name) == 56, "names after numbers");
_Static_assert(sizeof(struct sample_counters) == 8 * COUNTERS, "counters");

#endif
