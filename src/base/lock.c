/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

static _Thread_local char thread_mark; /* its address differs from thread to thread */

static void __attribute__((noreturn)) die(const char *what, const struct lock *lock)
{
	fprintf(stderr, "firn: lock \"%s\" %s\n", lock->name, what);
	abort();
}

#ifdef LOCK_CHECKS_ORDER
static _Thread_local const struct lock *held[LOCK_HELD_MAX];
static _Thread_local unsigned int held_count;

static void check_order(const struct lock *lock)
{
	for (unsigned int i = 0; i < held_count; i++) {
		if (held[i] == lock || held[i]->rank < lock->rank)
			continue;
		fprintf(stderr, "firn: lock \"%s\" (rank %u) is taken after \"%s\" (rank %u)\n",
			lock->name, lock->rank, held[i]->name, held[i]->rank);
		abort();
	}
}

static void note_taken(const struct lock *lock)
{
	if (held_count == LOCK_HELD_MAX)
		die("is one more than a thread may hold", lock);
	held[held_count++] = lock;
}

static void note_given(const struct lock *lock)
{
	unsigned int i = 0;

	while (i < held_count && held[i] != lock)
		i++;
	assert(i < held_count);
	held[i] = held[--held_count];
}
#else
static void check_order(const struct lock *lock)
{
	(void)lock;
}

static void note_taken(const struct lock *lock)
{
	(void)lock;
}

static void note_given(const struct lock *lock)
{
	(void)lock;
}
#endif

const void *lock_thread(void)
{
	return &thread_mark;
}

/* Relaxed: a thread only ever compares with itself, and sees its own stores. */
bool lock_is_held(const struct lock *lock)
{
	return atomic_load_explicit(&lock->owner, memory_order_relaxed) == lock_thread();
}

static void set_owner(struct lock *lock, const void *owner)
{
	atomic_store_explicit(&lock->owner, owner, memory_order_relaxed);
}

/* A mutex of the default kind fails only when it is misused. */
static void must(int rc, const char *what, const struct lock *lock)
{
	if (rc)
		die(what, lock);
}

void lock_die_not_held(const struct lock *lock)
{
	die("is not held by the thread that has to hold it", lock);
}

void lock_init(struct lock *lock, const char *name, unsigned int rank)
{
	assert(name && rank);
	lock->name = name;
	lock->rank = rank;
	atomic_init(&lock->owner, NULL);
	must(pthread_mutex_init(&lock->mutex, NULL), "cannot be made", lock);
}

void lock_free(struct lock *lock)
{
	must(pthread_mutex_destroy(&lock->mutex), "is held when it is freed", lock);
}

void lock_take(struct lock *lock)
{
	if (lock_is_held(lock))
		die("is taken twice by one thread", lock);
	check_order(lock);
	must(pthread_mutex_lock(&lock->mutex), "cannot be taken", lock);
	set_owner(lock, lock_thread());
	note_taken(lock);
}

bool lock_try(struct lock *lock)
{
	int rc = pthread_mutex_trylock(&lock->mutex);

	if (rc == EBUSY)
		return false;
	must(rc, "cannot be taken", lock);
	set_owner(lock, lock_thread());
	note_taken(lock);
	return true;
}

void lock_give(struct lock *lock)
{
	lock_assert_held(lock);
	note_given(lock);
	set_owner(lock, NULL);
	must(pthread_mutex_unlock(&lock->mutex), "cannot be given", lock);
}

void lock_condition_init(struct lock_condition *condition)
{
	int rc = pthread_cond_init(&condition->condition, NULL);

	assert(!rc);
}

void lock_condition_free(struct lock_condition *condition)
{
	pthread_cond_destroy(&condition->condition);
}

/* Waking takes the lock anew, behind all else that the thread holds. */
static void begin_wait(struct lock *lock)
{
	lock_assert_held(lock);
	check_order(lock);
	set_owner(lock, NULL);
}

void lock_wait(struct lock_condition *condition, struct lock *lock)
{
	begin_wait(lock);
	must(pthread_cond_wait(&condition->condition, &lock->mutex), "cannot be waited with", lock);
	set_owner(lock, lock_thread());
}

bool lock_wait_until(struct lock_condition *condition, struct lock *lock, int64_t at_ns)
{
	struct timespec at;
	int rc;

	if (at_ns < 0)
		at_ns = 0;
	at.tv_sec = at_ns / CLOCK_NS_PER_S;
	at.tv_nsec = at_ns % CLOCK_NS_PER_S;
	begin_wait(lock);
	rc = pthread_cond_clockwait(&condition->condition, &lock->mutex, CLOCK_MONOTONIC, &at);
	set_owner(lock, lock_thread());
	must(rc == ETIMEDOUT ? 0 : rc, "cannot be waited with", lock);
	return rc != ETIMEDOUT;
}

void lock_signal(struct lock_condition *condition)
{
	pthread_cond_signal(&condition->condition);
}

void lock_broadcast(struct lock_condition *condition)
{
	pthread_cond_broadcast(&condition->condition);
}
