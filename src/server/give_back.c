/* SPDX-License-Identifier: Apache-2.0 */
#include "server/give_back.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "server/resolve/resolver.h"
#include "server/serve/admission/answer_cache.h"

#define LOOK_EVERY_NS CLOCK_NS_PER_S
#define MUCH_BYTES ((int64_t)8 << 20)

struct give_back {
	struct resolver *resolver;
	struct answer_cache *answers;
	struct lock lock;
	struct lock_condition wake;
	bool stopping;
	pthread_t thread;
	/* After the last time: of memory beyond what the heaps have in use, and of mapped files. */
	int64_t unused_bytes, mapped_bytes;
};

/*
 * Memory that the heaps do not have in use is not all theirs: the store's tables have pages of
 * their own. So what counts is how it changed, up or down, since there was nothing to give.
 */
static void look(struct give_back *give_back)
{
	struct mem_resident now;

	answer_cache_age(give_back->answers, clock_monotonic_ns());
	arena_age_spares();
	now = mem_resident();
	if (llabs(now.unused_bytes - give_back->unused_bytes) > MUCH_BYTES) {
		mem_trim();
		give_back->unused_bytes = mem_resident().unused_bytes;
	}
	if (llabs(now.mapped_bytes - give_back->mapped_bytes) > MUCH_BYTES) {
		resolver_rest(give_back->resolver);
		give_back->mapped_bytes = mem_resident().mapped_bytes;
	}
}

static void *run(void *context)
{
	struct give_back *give_back = context;
	int64_t at_ns = clock_monotonic_ns();

	pthread_setname_np(pthread_self(), "firn-give-back");
	lock_take(&give_back->lock);
	while (!give_back->stopping) {
		if (lock_wait_until(&give_back->wake, &give_back->lock, at_ns))
			continue;
		lock_give(&give_back->lock);
		look(give_back);
		at_ns = clock_monotonic_ns() + LOOK_EVERY_NS;
		lock_take(&give_back->lock);
	}
	lock_give(&give_back->lock);
	return NULL;
}

int give_back_start(struct resolver *resolver, struct answer_cache *answers, struct give_back **ret,
		    struct err *err)
{
	struct give_back *give_back = mem_new(struct give_back);
	sigset_t all, old;
	int code;

	give_back->resolver = resolver;
	give_back->answers = answers;
	lock_init(&give_back->lock, "give back", LOCK_SERVE);
	lock_condition_init(&give_back->wake);
	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&give_back->thread, NULL, run, give_back);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code) {
		lock_condition_free(&give_back->wake);
		lock_free(&give_back->lock);
		free(give_back);
		return err_set_errno(err, code, "start the thread that gives memory back");
	}
	*ret = give_back;
	return 0;
}

void give_back_stop(struct give_back *give_back)
{
	if (!give_back)
		return;
	lock_take(&give_back->lock);
	give_back->stopping = true;
	lock_signal(&give_back->wake);
	lock_give(&give_back->lock);
	pthread_join(give_back->thread, NULL);
	lock_condition_free(&give_back->wake);
	lock_free(&give_back->lock);
	free(give_back);
}
