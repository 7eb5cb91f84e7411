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
 * bpf_iter_task_vma (6.7): programs list the mappings of a process themselves, where interrupts are
 * on. (Kernels since 6.12.91 and 6.18.33 refuse the iterator where they are off.)
 */
bool features_have_vma_iterator(void);

/*
 * True if an agent that has CAP_SYS_ADMIN must keep it, besides CAP_BPF and CAP_PERFMON. Kernels of
 * Debian and Ubuntu open no clock without it where kernel.perf_event_paranoid is over 2; and where
 * a function of the kernel that our program names is missing (bpf_iter_task_vma), libbpf looks for
 * it in the modules, whose types the kernel shows to nobody else. The calling thread is without the
 * capability for a moment.
 */
bool features_need_admin(void);

#endif
