/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/attach/features.h"
#include "agent/attach/privileges.h"
#include "agent/collect/drain.h"
#include "agent/describe/batch.h"
#include "agent/files/prompt.h"
#include "agent/jit/jit_metrics.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/procs/procs_metrics.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/privilege.h"

/* Priority of threads that nothing races with: below that of the profiled programs. */
#define NICE 5
#define FINISH_LOOK_NS (CLOCK_NS_PER_S / 10)
#define LATE_SETTLE_NS CLOCK_NS_PER_S /* at the end, for what started just before it */

/* The one window that goes back and forth between the threads. */
enum window_state {
	WINDOW_EMPTY, /* the drain thread may take it */
	WINDOW_FULL,  /* the report thread's */
};

struct agent {
	struct agent_options options;
	bool follows_config; /* no option says how often samples are taken */
	pid_t *pids;
	struct drain *drain;
	pthread_t drain_thread, report_thread;
	struct window window;

	struct lock lock; /* guards what follows */
	struct lock_condition changed;
	enum window_state state;
	bool finished; /* no further window will come */
	uint64_t delivered;
};

static METRIC_COUNTER(batches_delivered, "firn_agent_batches_delivered_total", "",
		      "Batches handed out.");
static METRIC_COUNTER(samples_delivered, "firn_agent_delivered_samples_total", "",
		      "Samples in the batches handed out.");
static METRIC_COUNTER(binaries_announced, "firn_agent_binaries_announced_total", "",
		      "Binaries made known for their symbols.");
static METRIC_COUNTER(binaries_put_off, "firn_agent_binaries_put_off_total", "",
		      "Binaries that there was no room for, and that are offered again.");

/* What agent_confine has opened; without a lender: nothing. */
static struct host_handles confined = { .kernel = KERNEL_SYMBOL_FILES_NONE };

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &batches_delivered, &samples_delivered,
						  &binaries_announced, &binaries_put_off };

	mem_bound_heaps();
	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	procs_metrics_register();
	jit_metrics_register();
	runtime_metrics_register();
	drain_metrics_register();
}

static struct window *take_empty(void *context)
{
	struct agent *agent = context;

	lock_take(&agent->lock);
	while (agent->state != WINDOW_EMPTY)
		lock_wait(&agent->changed, &agent->lock);
	lock_give(&agent->lock);
	return &agent->window;
}

static void give(void *context, struct window *window)
{
	struct agent *agent = context;

	assert(window == &agent->window && agent->state == WINDOW_EMPTY);
	lock_take(&agent->lock);
	agent->state = WINDOW_FULL;
	lock_broadcast(&agent->changed);
	lock_give(&agent->lock);
}

static bool offer(const struct agent *agent, const struct binary_news *news)
{
	const struct agent_binary binary = { slice_of(news->build_id), slice_of(news->path),
					     news->fd, (pid_t)news->pid };

	return agent->options.binary_seen(agent->options.binary_seen_context, &binary);
}

/* What is not taken stays in the window. */
static void announce(struct agent *agent)
{
	struct window *window = &agent->window;
	size_t kept = 0;

	for (size_t i = 0; i < window->news_count; i++) {
		struct binary_news *news = &window->news[i];

		if (agent->options.binary_seen && !offer(agent, news)) {
			window->news[kept++] = *news;
			metric_add(&binaries_put_off, 1);
		} else {
			metric_add(&binaries_announced, 1);
			binary_news_free(news);
		}
	}
	window->news_count = kept;
}

static void deliver(struct agent *agent)
{
	struct tables_view view = tables_view_of(&agent->window.tables);

	if (view.reports_count) {
		for (uint64_t i = 0; i < view.totals_count; i++)
			metric_add(&samples_delivered, view.totals[i]);
		metric_add(&batches_delivered, 1);
		agent->options.deliver(agent->options.deliver_context, &view);
	}
	tables_reset(&agent->window.tables);
}

/* Waits for a full window; false when there will be none. */
static bool wait_full(struct agent *agent)
{
	bool full;

	lock_take(&agent->lock);
	while (agent->state != WINDOW_FULL && !agent->finished)
		lock_wait(&agent->changed, &agent->lock);
	full = agent->state == WINDOW_FULL;
	lock_give(&agent->lock);
	return full;
}

static void *run_report(void *data)
{
	struct agent *agent = data;

	setpriority(PRIO_PROCESS, 0, NICE); /* on Linux, of this thread */
	while (wait_full(agent)) {
		announce(agent);
		deliver(agent);
		lock_take(&agent->lock);
		agent->state = WINDOW_EMPTY;
		agent->delivered++;
		lock_broadcast(&agent->changed);
		lock_give(&agent->lock);
	}
	return NULL;
}

static void *run_drain(void *data)
{
	struct agent *agent = data;

	prompt_begin();
	drain_run(agent->drain);
	lock_take(&agent->lock);
	agent->finished = true;
	lock_broadcast(&agent->changed);
	lock_give(&agent->lock);
	return NULL;
}

static char *copy_node(const char *node)
{
	char name[HOST_NAME_MAX + 1] = "";

	if (!node) {
		gethostname(name, sizeof(name) - 1);
		node = name;
	}
	return mem_strndup(node, strlen(node));
}

static void copy_options(struct agent *agent, const struct agent_options *options)
{
	agent->options = *options;
	agent->follows_config = !options->frequency_hz;
	if (!options->frequency_hz && options->config)
		agent->options.frequency_hz = agent_config_frequency(options->config);
	if (!agent->options.frequency_hz)
		agent->options.frequency_hz = AGENT_FREQUENCY_DEFAULT_HZ;
	if (options->window_ns <= 0)
		agent->options.window_ns = AGENT_WINDOW_DEFAULT_NS;
	if (options->target == AGENT_TARGET_PIDS) {
		agent->pids = mem_new_array(pid_t, options->pids_count + 1);
		if (options->pids_count)
			memcpy(agent->pids, options->pids, options->pids_count * sizeof(pid_t));
	}
	agent->options.pids = agent->pids;
}

static int start_sampling(struct agent *agent, struct err *err)
{
	const struct agent_options *options = &agent->options;
	struct drain_options drain = {
		.sampler = { .frequency_hz = options->frequency_hz,
			     .pids = agent->pids,
			     .pids_count = options->pids_count },
		.default_frequency_hz = agent->follows_config ? AGENT_FREQUENCY_DEFAULT_HZ : 0,
		.window_ns = options->window_ns,
		.node = copy_node(options->node),
		.config = options->config,
		.container_sockets = options->container_sockets,
		.container_sockets_count = options->container_sockets_count,
		.pods = options->pods,
		.cloud = options->cloud,
		.thread_labels = options->thread_labels,
		.sample_labels = options->sample_labels,
		.sample_times = options->sample_times,
		.unwind_cache_path = options->unwind_cache_path,
		.unwind_memory_bytes = options->unwind_memory_bytes,
		.program = options->program,
		.announce_binaries = options->binary_seen != NULL,
		.take_empty = take_empty,
		.give = give,
		.context = agent,
	};

	int code = 0;

	if (!confined.lender)
		code = host_handles_open(&confined, err);
	if (code) {
		free(drain.node);
		agent_config_free(drain.config);
		return code;
	}
	drain.handles = confined;
	confined = (struct host_handles){ .kernel = KERNEL_SYMBOL_FILES_NONE };
	return drain_new(&drain, &agent->drain, err);
}

static int start_threads(struct agent *agent, struct err *err)
{
	int failed = pthread_create(&agent->report_thread, NULL, run_report, agent);

	if (failed)
		return err_set_errno(err, failed, "start the report thread");
	pthread_setname_np(agent->report_thread, "firn-report");
	failed = pthread_create(&agent->drain_thread, NULL, run_drain, agent);
	if (failed) {
		lock_take(&agent->lock);
		agent->finished = true;
		lock_broadcast(&agent->changed);
		lock_give(&agent->lock);
		pthread_join(agent->report_thread, NULL);
		return err_set_errno(err, failed, "start the drain thread");
	}
	pthread_setname_np(agent->drain_thread, "firn-drain");
	return 0;
}

static void agent_free(struct agent *agent)
{
	drain_free(agent->drain);
	tables_free(&agent->window.tables);
	for (size_t i = 0; i < agent->window.news_count; i++)
		binary_news_free(&agent->window.news[i]);
	free(agent->window.news);
	free(agent->pids);
	lock_condition_free(&agent->changed);
	lock_free(&agent->lock);
	free(agent);
}

static struct agent *agent_new(const struct agent_options *options)
{
	struct agent *agent = mem_new(struct agent);

	copy_options(agent, options);
	tables_init(&agent->window.tables);
	lock_init(&agent->lock, "agent", LOCK_AGENT);
	lock_condition_init(&agent->changed);
	return agent;
}

static int check_options(const struct agent_options *options, struct err *err)
{
	if (options->frequency_hz > AGENT_FREQUENCY_MAX_HZ)
		return err_set(err, ERR_INVALID, "start sampling: %u Hz is over the limit of %u Hz",
			       options->frequency_hz, AGENT_FREQUENCY_MAX_HZ);
	if (options->target == AGENT_TARGET_PIDS && !options->pids_count)
		return err_set(err, ERR_INVALID, "start sampling: no process was named");
	return 0;
}

int agent_confine(struct err *err)
{
	int code = host_handles_open(&confined, err);

	if (code)
		return code;
	return privilege_enter(features_need_admin() ? PRIVILEGE_AGENT_ADMIN : PRIVILEGE_AGENT,
			       NULL, err);
}

int agent_start(const struct agent_options *options, struct agent **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct agent *agent;
	int code = check_options(options, err);

	if (code)
		return code;
	pthread_once(&once, register_metrics);
	agent = agent_new(options);
	code = start_sampling(agent, err);
	if (code)
		code = privileges_explain(options->command, err);
	if (!code)
		code = start_threads(agent, err);
	if (code) {
		agent_free(agent);
		return code;
	}
	log_info("agent", "sampling", "frequency_hz=%u window_ms=%lld", agent->options.frequency_hz,
		 (long long)(agent->options.window_ns / CLOCK_NS_PER_MS));
	*ret = agent;
	return 0;
}

/* Each sample that was taken is delivered, left out or lost. */
static void log_balance(void)
{
	log_info("agent", "sampling has ended",
		 "samples=%" PRIu64 " delivered=%" PRId64 " left_out=%" PRIu64 " lost=%" PRIu64,
		 drain_taken_samples(), metric_get(&samples_delivered), batch_left_out_samples(),
		 drain_lost_samples());
}

void agent_stop(struct agent *agent)
{
	agent_finish(agent, LATE_SETTLE_NS, NULL);
}

/* False when it has not ended in time. */
static bool join_until(pthread_t thread, int64_t at_real_ns)
{
	const struct timespec at = { at_real_ns / CLOCK_NS_PER_S, at_real_ns % CLOCK_NS_PER_S };

	return !pthread_timedjoin_np(thread, NULL, &at);
}

void agent_finish(struct agent *agent, int64_t wait_ns, bool (*is_stopping)(void))
{
	if (!agent)
		return;
	drain_stop(agent->drain, wait_ns);
	while (!join_until(agent->drain_thread, clock_real_ns() + FINISH_LOOK_NS))
		if (is_stopping && is_stopping())
			drain_stop(agent->drain, 0);
	pthread_join(agent->report_thread, NULL);
	log_balance();
	agent_free(agent);
}

void agent_set_config(struct agent *agent, struct agent_config *config)
{
	drain_set_config(agent->drain, config);
}

uint64_t agent_lost_samples(void)
{
	return drain_lost_samples();
}

bool agent_wait_window(struct agent *agent, int64_t timeout_ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool delivered, in_time = true;

	lock_take(&agent->lock);
	while (!agent->delivered && in_time)
		in_time = lock_wait_until(&agent->changed, &agent->lock, deadline_ns);
	delivered = agent->delivered > 0;
	lock_give(&agent->lock);
	return delivered;
}

void agent_missing_privileges(struct strbuf *out)
{
	privileges_missing(NULL, out);
}
