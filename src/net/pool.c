/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pool.h"

#include <pthread.h>
#include <signal.h>

#include "base/lock.h"
#include "base/mem.h"

struct queue {
	struct exchange *first, *last;
};

struct pool {
	struct lock lock; /* guards all but the threads' own fields */
	struct lock_condition wake;
	struct queue waiting, finished;
	unsigned waiting_count, queue_max, idle_count;
	bool is_stopping;

	void (*on_finished)(void *context);
	void *context;
	pthread_t *threads;
	unsigned threads_count;
};

static void push(struct queue *queue, struct exchange *exchange)
{
	exchange->queue_next = NULL;
	if (queue->last)
		queue->last->queue_next = exchange;
	else
		queue->first = exchange;
	queue->last = exchange;
}

static struct exchange *pop(struct queue *queue)
{
	struct exchange *exchange = queue->first;

	if (!exchange)
		return NULL;
	queue->first = exchange->queue_next;
	if (!queue->first)
		queue->last = NULL;
	return exchange;
}

/* The next exchange to run; NULL when the pool stops. */
static struct exchange *wait_for_work(struct pool *pool)
{
	lock_assert_held(&pool->lock);
	while (!pool->waiting.first && !pool->is_stopping) {
		pool->idle_count++;
		lock_wait(&pool->wake, &pool->lock);
		pool->idle_count--;
	}
	if (pool->is_stopping)
		return NULL;
	pool->waiting_count--;
	return pop(&pool->waiting);
}

static void *work(void *context)
{
	struct pool *pool = context;
	struct exchange *exchange;

	pthread_setname_np(pthread_self(), "firn-http-work");
	lock_take(&pool->lock);
	while ((exchange = wait_for_work(pool))) {
		bool was_empty;

		lock_give(&pool->lock);
		exchange_run(exchange);
		lock_take(&pool->lock);
		was_empty = !pool->finished.first;
		push(&pool->finished, exchange);
		if (was_empty)
			pool->on_finished(pool->context);
	}
	lock_give(&pool->lock);
	return NULL;
}

bool pool_submit(struct pool *pool, struct exchange *exchange)
{
	bool has_room;

	lock_take(&pool->lock);
	has_room = pool->waiting_count < pool->queue_max && !pool->is_stopping;
	if (has_room) {
		push(&pool->waiting, exchange);
		pool->waiting_count++;
		if (pool->idle_count)
			lock_signal(&pool->wake);
	}
	lock_give(&pool->lock);
	return has_room;
}

struct exchange *pool_take_finished(struct pool *pool)
{
	struct exchange *first;

	lock_take(&pool->lock);
	first = pool->finished.first;
	pool->finished = (struct queue){ 0 };
	lock_give(&pool->lock);
	return first;
}

static void free_all(struct queue *queue)
{
	struct exchange *exchange;

	while ((exchange = pop(queue)))
		exchange_free(exchange);
}

void pool_stop(struct pool *pool)
{
	if (!pool)
		return;
	lock_take(&pool->lock);
	pool->is_stopping = true;
	lock_broadcast(&pool->wake);
	lock_give(&pool->lock);
	for (unsigned i = 0; i < pool->threads_count; i++)
		pthread_join(pool->threads[i], NULL);
	free_all(&pool->waiting);
	free_all(&pool->finished);
	lock_condition_free(&pool->wake);
	lock_free(&pool->lock);
	free(pool->threads);
	free(pool);
}

int pool_start(unsigned workers, unsigned queue_max, void (*finished)(void *context), void *context,
	       struct pool **ret, struct err *err)
{
	struct pool *pool = mem_new(struct pool);
	sigset_t all, old;
	int code = 0;

	lock_init(&pool->lock, "net.pool", LOCK_NET);
	lock_condition_init(&pool->wake);
	pool->queue_max = queue_max;
	pool->on_finished = finished;
	pool->context = context;
	pool->threads = mem_new_array(pthread_t, workers);
	sigfillset(&all);	  /* signals are the main thread's, */
	sigdelset(&all, SIGPROF); /* but for one that asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; pool->threads_count < workers && !code; pool->threads_count += !code)
		code = pthread_create(&pool->threads[pool->threads_count], NULL, work, pool);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code) {
		pool_stop(pool);
		return err_set_errno(err, code, "start %u worker threads", workers);
	}
	*ret = pool;
	return 0;
}
