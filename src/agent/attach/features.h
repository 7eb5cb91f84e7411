/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features - probes the optional features of this kernel that the sampler uses.
 *
 * Each call tries the feature (a trial program, the kernel's BTF) and never looks at the version,
 * because features are back-ported. Takes milliseconds, and needs the privilege to use BPF; false
 * without it.
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
 * Debian and Ubuntu open no clock without it if kernel.perf_event_paranoid is over 2; and if the
 * kernel lacks a function that our program names (bpf_iter_task_vma), libbpf searches the modules,
 * whose types need the capability. The calling thread drops the capability for a moment.
 */
bool features_need_admin(void);

#endif
