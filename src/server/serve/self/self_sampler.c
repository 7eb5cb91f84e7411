/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/self/self_sampler.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve/self/self_timers.h"

#define BUFFER_WORDS ((size_t)8 << 20) /* 64 MiB of address space, used as it fills */
#define FRAME_BYTES_MAX ((uintptr_t)1 << 20)
#define CANCEL_CHECK_NS (50 * CLOCK_NS_PER_MS)

/* What the handler sees. `inside` counts running handlers: 0 after `on` was cleared = quiet. */
static struct {
	_Atomic bool busy, on;
	_Atomic unsigned inside;
	_Atomic size_t used;
	_Atomic uint64_t lost;
	uintptr_t *words;
} sampler;

/* Where the interrupted code was. */
static bool read_context(const ucontext_t *context, uintptr_t *ret_pc, uintptr_t *ret_fp)
{
#if defined(__x86_64__)
	*ret_pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	*ret_fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
	return true;
#elif defined(__aarch64__)
	*ret_pc = context->uc_mcontext.pc;
	*ret_fp = context->uc_mcontext.regs[29];
	return true;
#else
	(void)context;
	(void)ret_pc;
	(void)ret_fp;
	return false;
#endif
}

/* Both architectures keep (caller's frame pointer, return address) at the frame pointer. */
static size_t walk(uintptr_t pc, uintptr_t fp, uintptr_t pcs[SELF_SAMPLER_DEPTH_MAX])
{
	pid_t pid = getpid();
	size_t depth = 0;

	pcs[depth++] = pc;
	while (depth < SELF_SAMPLER_DEPTH_MAX && fp && fp % sizeof(fp) == 0) {
		uintptr_t frame[2];
		struct iovec local = { frame, sizeof(frame) };
		struct iovec remote = { (void *)fp, sizeof(frame) };

		if (syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0) != sizeof(frame) ||
		    !frame[1])
			break;
		pcs[depth++] = frame[1];
		if (frame[0] <= fp || frame[0] - fp > FRAME_BYTES_MAX)
			break;
		fp = frame[0];
	}
	return depth;
}

static void record(const ucontext_t *context)
{
	uintptr_t pcs[SELF_SAMPLER_DEPTH_MAX], pc, fp;
	size_t depth, at;

	if (!read_context(context, &pc, &fp))
		return;
	depth = walk(pc, fp, pcs);
	at = atomic_fetch_add(&sampler.used, depth + 1);
	if (at > BUFFER_WORDS - SELF_SAMPLER_DEPTH_MAX - 1) {
		atomic_fetch_sub(&sampler.used, depth + 1);
		atomic_fetch_add(&sampler.lost, 1);
		return;
	}
	sampler.words[at] = depth;
	for (size_t i = 0; i < depth; i++)
		sampler.words[at + 1 + i] = pcs[i];
}

static void on_sigprof(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)number;
	(void)info;
	atomic_fetch_add(&sampler.inside, 1);
	if (atomic_load(&sampler.on))
		record(context);
	atomic_fetch_sub(&sampler.inside, 1);
	errno = saved;
}

static void sleep_ns(int64_t ns)
{
	struct timespec pause = { ns / CLOCK_NS_PER_S, ns % CLOCK_NS_PER_S };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int wait_for(int64_t duration_ns, struct self_timers *timers, const _Atomic bool *cancelled,
		    struct err *err)
{
	int64_t end_ns = clock_monotonic_ns() + duration_ns;

	for (;;) {
		int64_t left_ns = end_ns - clock_monotonic_ns();
		int status = self_timers_follow(timers, err);

		if (status)
			return status;
		if (cancelled && atomic_load(cancelled))
			return err_set(err, ERR_CANCELLED, "profile this process: cancelled");
		if (left_ns <= 0)
			return 0;
		sleep_ns(left_ns < CANCEL_CHECK_NS ? left_ns : CANCEL_CHECK_NS);
	}
}

static int sample(int64_t duration_ns, unsigned hz, const _Atomic bool *cancelled, struct err *err)
{
	struct sigaction action = { .sa_sigaction = on_sigprof,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct self_timers timers = { .period_ns = CLOCK_NS_PER_S / hz };
	int status;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGPROF, &action, NULL))
		return err_set_errno(err, errno,
				     "profile this process: install the SIGPROF handler");
	atomic_store(&sampler.on, true);
	status = wait_for(duration_ns, &timers, cancelled, err);
	self_timers_stop(&timers);
	atomic_store(&sampler.on, false);
	while (atomic_load(&sampler.inside))
		sleep_ns(CLOCK_NS_PER_MS);
	return status;
}

int self_sampler_run(int64_t duration_ns, unsigned hz, const _Atomic bool *cancelled,
		     struct self_samples *ret, struct err *err)
{
	struct self_samples samples;
	int status;

	if (!hz || hz > SELF_SAMPLER_HZ_MAX)
		return err_set(err, ERR_INVALID, "profile this process: %u Hz is not in 1..%u", hz,
			       SELF_SAMPLER_HZ_MAX);
	if (atomic_exchange(&sampler.busy, true))
		return err_set(err, ERR_BUSY, "profile this process: another profile is running");
	sampler.words = mem_new_array(uintptr_t, BUFFER_WORDS);
	atomic_store(&sampler.used, 0);
	atomic_store(&sampler.lost, 0);
	status = sample(duration_ns, hz, cancelled, err);
	samples = (struct self_samples){ sampler.words, atomic_load(&sampler.used),
					 atomic_load(&sampler.lost) };
	sampler.words = NULL;
	atomic_store(&sampler.busy, false);
	if (status) {
		self_samples_free(&samples);
		return status;
	}
	*ret = samples;
	return 0;
}

void self_samples_free(struct self_samples *samples)
{
	free(samples->words);
	*samples = (struct self_samples){ 0 };
}
