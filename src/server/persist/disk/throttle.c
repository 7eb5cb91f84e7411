/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/disk/throttle.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "server/persist/disk/persist_locks.h"

#define PAUSE_MIN_NS ((int64_t)2000000)	  /* shorter ones cost more than they give */
#define PAUSE_MAX_NS (2 * CLOCK_NS_PER_S) /* a clock that jumps stops nothing for long */

void throttle_init(struct throttle *throttle, uint64_t bytes_per_s, unsigned int cpu_percent)
{
	assert(cpu_percent <= 100);
	*throttle = (struct throttle){ .bytes_per_s = bytes_per_s, .cpu_percent = cpu_percent };
	lock_init(&throttle->lock, "throttle", THROTTLE_RANK);
	lock_condition_init(&throttle->changed);
}

void throttle_fini(struct throttle *throttle)
{
	lock_free(&throttle->lock);
	lock_condition_free(&throttle->changed);
}

static int64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * CLOCK_NS_PER_S + used.tv_nsec;
}

void throttle_begin(struct throttle *throttle)
{
	if (!throttle)
		return;
	throttle->began_ns = clock_monotonic_ns();
	throttle->cpu_began_ns = cpu_ns();
	throttle->bytes = 0;
}

/* When as much as was done would be done within the budget. */
static int64_t due_ns(const struct throttle *throttle)
{
	int64_t due = throttle->began_ns, cpu_due;

	assert(throttle->began_ns && throttle->cpu_percent <= 100);
	if (throttle->bytes_per_s)
		due += (int64_t)((double)throttle->bytes / (double)throttle->bytes_per_s * 1e9);
	if (!throttle->cpu_percent)
		return due;
	cpu_due = throttle->began_ns +
		  (cpu_ns() - throttle->cpu_began_ns) * 100 / throttle->cpu_percent;
	return cpu_due > due ? cpu_due : due;
}

/* Whoever is woken meanwhile waits on: that ends a throttle_sleep. */
static void wait_until(struct throttle *throttle, int64_t until_ns)
{
	lock_take(&throttle->lock);
	while (!throttle->stopped &&
	       lock_wait_until(&throttle->changed, &throttle->lock, until_ns)) {
	}
	lock_give(&throttle->lock);
}

bool throttle_sleep(struct throttle *throttle, int64_t duration_ns)
{
	int64_t until_ns = clock_monotonic_ns() + duration_ns;
	bool stopped;

	assert(duration_ns > 0);
	lock_take(&throttle->lock);
	while (!throttle->stopped && !throttle->woken &&
	       lock_wait_until(&throttle->changed, &throttle->lock, until_ns)) {
	}
	throttle->woken = false;
	stopped = throttle->stopped;
	lock_give(&throttle->lock);
	return stopped;
}

int throttle_check(struct throttle *throttle, struct err *err)
{
	bool stopped;

	if (!throttle)
		return 0;
	lock_take(&throttle->lock);
	stopped = throttle->stopped;
	lock_give(&throttle->lock);
	return stopped ? err_set(err, ERR_CANCELLED, "stopped: the store closes") : 0;
}

int throttle_pause(struct throttle *throttle, uint64_t bytes, struct err *err)
{
	int64_t wait;

	if (!throttle)
		return 0;
	throttle->bytes += bytes;
	wait = due_ns(throttle) - clock_monotonic_ns();
	if (wait > PAUSE_MIN_NS)
		wait_until(throttle,
			   clock_monotonic_ns() + (wait < PAUSE_MAX_NS ? wait : PAUSE_MAX_NS));
	return throttle_check(throttle, err);
}

void throttle_wake(struct throttle *throttle)
{
	lock_take(&throttle->lock);
	throttle->woken = true;
	lock_broadcast(&throttle->changed);
	lock_give(&throttle->lock);
}

void throttle_stop(struct throttle *throttle)
{
	lock_take(&throttle->lock);
	throttle->stopped = true;
	lock_broadcast(&throttle->changed);
	lock_give(&throttle->lock);
}
