/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of the own process: names, shares, one run at a time, cancelling. */
#include "server/serve/self/self_profile.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/resolve/worker/symbol_worker.h"

#define SAMPLES_MIN 20

static _Atomic bool stop;
static _Atomic uint64_t sink;

/* The clock is read so that the thread sanitizer gets to deliver signals. */
static __attribute__((noinline)) void burn_here(void)
{
	while (!atomic_load(&stop)) {
		uint64_t value = (uint64_t)clock_monotonic_ns();

		for (int i = 0; i < 100000; i++) {
			value = value * 6364136223846793005ull + 1442695040888963407ull;
			__asm__ volatile("" : "+r"(value)); /* clang would do without the loop */
		}
		atomic_store(&sink, value);
	}
}

static void *burn(void *context)
{
	(void)context;
	burn_here();
	return NULL;
}

static pthread_t start_burning(void)
{
	pthread_t thread;

	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, burn, NULL), 0);
	return thread;
}

static void stop_burning(pthread_t thread)
{
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

/* Sum of a column over rows whose stack holds the function. */
static int64_t share_of(const struct tables_view *view, const char *function, uint32_t column)
{
	const struct report *report = &view->reports[0];
	int64_t sum = 0;

	for (uint32_t i = 0; i < report->row_count; i++) {
		uint32_t node = view->rows[report->row_first + i].stack;

		for (; node; node = view->nodes[node].parent) {
			const struct frame *frame = &view->frames[view->nodes[node].frame];

			if (!slice_is(tables_text(view, frame->function), function))
				continue;
			sum += view->values[report->value_first + 2 * (uint64_t)i + column];
			break;
		}
	}
	return sum;
}

static const struct frame *find_frame(const struct tables_view *view, const char *function)
{
	for (uint32_t i = 0; i < view->frames_count; i++)
		if (slice_is(tables_text(view, view->frames[i].function), function))
			return &view->frames[i];
	return NULL;
}

static void busy_function_dominates(void **state)
{
	pthread_t thread = start_burning();
	const struct frame *frame;
	struct tables_view view;
	struct tables tables;
	char exe[512] = "";
	struct err err;
	int64_t total;

	(void)state;
	tables_init(&tables);
	assert_int_equal(self_profile_run(CLOCK_NS_PER_S / 2, 200, NULL, &tables, &err), 0);
	view = tables_view_of(&tables);
	while (!BUILT_WITH_TSAN && view.totals[view.reports[0].total_first] < SAMPLES_MIN) {
		tables_free(&tables);
		tables_init(&tables);
		assert_int_equal(self_profile_run(CLOCK_NS_PER_S / 2, 200, NULL, &tables, &err), 0);
		view = tables_view_of(&tables);
	}
	stop_burning(thread);
	assert_int_equal(view.reports_count, 1);
	assert_true(slice_is(tables_text(&view, view.groups[0].name), "process_cpu"));
	assert_int_equal(view.groups[0].period, CLOCK_NS_PER_S / 200);
	assert_true(view.reports[0].duration_ns >= CLOCK_NS_PER_S / 2);
	total = view.totals[view.reports[0].total_first];
	assert_int_equal(view.totals[view.reports[0].total_first + 1],
			 total * view.groups[0].period);
#if !BUILT_WITH_TSAN /* it delivers signals late: shares mean nothing */
	assert_true(total > 0);
	assert_true(share_of(&view, "burn_here", 0) * 10 >= total * 8);
	frame = find_frame(&view, "burn_here");
	assert_non_null(frame);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_true(slice_is(tables_text(&view, frame->mapping_file), exe));
	assert_true(tables_text(&view, frame->build_id).len >= 32);
	assert_non_null(strstr(tables_text(&view, frame->file).data, "self_profile_test.c"));
	assert_true(frame->line >= frame->start_line && frame->start_line > 0);
	if (!BUILT_WITH_ASAN)				    /* whose frames lie elsewhere */
		assert_non_null(find_frame(&view, "burn")); /* the caller */
#else
	(void)frame;
	(void)exe;
	(void)share_of;
	(void)find_frame;
#endif
	tables_free(&tables);
}

static void *run_long(void *context)
{
	struct tables tables;
	struct err err;
	int status;

	tables_init(&tables);
	do /* the other thread's short runs may be in the way */
		status = self_profile_run(20 * CLOCK_NS_PER_S, 100, context, &tables, &err);
	while (status == -ERR_BUSY);
	tables_free(&tables);
	return (void *)(intptr_t)status;
}

static void second_run_is_busy_and_first_can_be_cancelled(void **state)
{
	_Atomic bool cancelled = false;
	struct tables tables;
	pthread_t thread;
	struct err err;
	void *status;
	int rc;

	(void)state;
	tables_init(&tables);
	assert_int_equal(pthread_create(&thread, NULL, run_long, &cancelled), 0);
	do /* until the other thread has begun */
		rc = self_profile_run(1, 100, NULL, &tables, &err);
	while (rc == 0);
	assert_int_equal(rc, -ERR_BUSY);
	atomic_store(&cancelled, true);
	pthread_join(thread, &status);
	assert_int_equal((intptr_t)status, -ERR_CANCELLED);
	tables_free(&tables);
}

static void bad_arguments_are_refused(void **state)
{
	struct tables tables;
	struct err err;

	(void)state;
	tables_init(&tables);
	assert_int_equal(self_profile_run(0, 100, NULL, &tables, &err), -ERR_INVALID);
	assert_int_equal(self_profile_run(CLOCK_NS_PER_S, 0, NULL, &tables, &err), -ERR_INVALID);
	assert_int_equal(self_profile_run(CLOCK_NS_PER_S, 5000, NULL, &tables, &err), -ERR_INVALID);
	tables_free(&tables);
}

int main(int argc, char **argv)
{
	int worker = symbol_worker_main(argc, argv); /* it builds tables in a process of its own */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_function_dominates),
		cmocka_unit_test(second_run_is_busy_and_first_can_be_cancelled),
		cmocka_unit_test(bad_arguments_are_refused),
	};

	if (worker >= 0)
		return worker;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
