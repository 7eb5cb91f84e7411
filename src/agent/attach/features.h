/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features - what this kernel offers the sampler besides the least that it needs.
 *
 * The kernel itself is asked each time (a trial program, its BTF), never its version: features are
 * back-ported. Takes milliseconds and the privilege to use BPF; false without.
 */
#ifndef FIRN_AGENT_ATTACH_FEATURES_H
#define FIRN_AGENT_ATTACH_FEATURES_H

#include <stdbool.h>

/* bpf_loop (5.17) and bpf_task_pt_regs (5.15): stacks are walked by our own program. */
bool features_have_loop(void);

/*
 * bpf_iter_task_vma (6.7): the program lists the mappings of a process itself.
 *
 * As it is with interrupts off, as at a tick of the clock: since the repair of CVE-2026-53085
 * (6.12.91, 6.18.33, 7.0.10) the iterator always refuses there (EBUSY). Kernels before that have
 * it unlock by irq_work, which shows in their BTF.
 */
bool features_have_vma_iterator(void);

/* The iterator in programs that run with interrupts on, as at exec. */
bool features_have_vma_iterator_in_tasks(void);

#endif
