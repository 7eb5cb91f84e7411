/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/self/self_timers.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/slice.h"

/* The kernel's encoding of "CPU time of thread N" (include/linux/posix-timers.h). */
#define THREAD_CLOCK_FLAGS 6u

static clockid_t clock_of_thread(pid_t thread)
{
	return (clockid_t)((~(unsigned)thread << 3) | THREAD_CLOCK_FLAGS);
}

static bool is_followed(const struct self_timers *timers, pid_t thread)
{
	for (size_t i = 0; i < timers->count; i++)
		if (timers->of[i].thread == thread)
			return true;
	return false;
}

/* A thread that ended meanwhile is no error. */
static void follow(struct self_timers *timers, pid_t thread)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec spec = { .it_interval = { timers->period_ns / CLOCK_NS_PER_S,
						    timers->period_ns % CLOCK_NS_PER_S } };
	timer_t timer;

	event._sigev_un._tid = thread;
	spec.it_value = spec.it_interval;
	if (timer_create(clock_of_thread(thread), &event, &timer))
		return;
	if (timer_settime(timer, 0, &spec, NULL)) {
		timer_delete(timer);
		return;
	}
	timers->of[timers->count].thread = thread;
	timers->of[timers->count].timer = timer;
	timers->count++;
}

int self_timers_follow(struct self_timers *timers, struct err *err)
{
	DIR *threads = opendir("/proc/self/task");
	struct dirent *entry;

	if (!threads)
		return err_set_errno(err, errno, "list the threads in \"/proc/self/task\"");
	while (timers->count < SELF_TIMERS_MAX && (entry = readdir(threads)) != NULL) {
		uint64_t thread;

		if (slice_parse_u64(slice_of(entry->d_name), &thread) &&
		    !is_followed(timers, (pid_t)thread))
			follow(timers, (pid_t)thread);
	}
	closedir(threads);
	return 0;
}

void self_timers_stop(struct self_timers *timers)
{
	for (size_t i = 0; i < timers->count; i++)
		timer_delete(timers->of[i].timer);
	timers->count = 0;
}
