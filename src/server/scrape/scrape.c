/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/scrape.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/idmap.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/scrape/discovery.h"
#include "remote/access/credentials.h"
#include "remote/access/http_access.h"

#define RUNNING_MAX 4096u /* scrapes at once */
#define STORES_MAX 8u	  /* of them, those that store what they got */
#define STACK_BYTES ((size_t)1 << 20)
#define LOOK_NS (20 * CLOCK_NS_PER_MS)	 /* a scrape begins that late at most, on an idle host */
#define SYNC_NS (5 * CLOCK_NS_PER_S)	 /* between two looks at what a job's discoveries found */
#define TLS_AGE_NS (10 * CLOCK_NS_PER_S) /* then certificates are read anew */
#define DROPPED_MAX 2000u		 /* of a job, told */

static METRIC_COUNTER(scrapes_good, "firn_scrapes_total", "{result=\"ok\"}",
		      "Scrapes of targets, by result.");
static METRIC_COUNTER(scrapes_bad, "firn_scrapes_total", "{result=\"error\"}",
		      "Scrapes of targets, by result.");
static METRIC_COUNTER(scraped_bytes, "firn_scraped_bytes_total", "",
		      "Bytes of profiles that targets gave.");
static METRIC_GAUGE(reload_good, "firn_config_last_reload_successful", "",
		    "Whether the configuration file was right when it was read last.");
static METRIC_GAUGE(reload_at, "firn_config_last_reload_success_timestamp_seconds", "",
		    "When the configuration that is used was read.");

static const double lateness_bounds[] = { 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 };
#define LATENESS_BOUNDS (sizeof(lateness_bounds) / sizeof(lateness_bounds[0]))

struct job_state {
	const struct scrape_job *job;
	struct discovery **discoveries;
	uint64_t *versions; /* of what the targets come from */
	int64_t synced_at_ns;
	struct scrape_target **targets;
	size_t count;
	struct scrape_dropped *dropped;
	size_t dropped_count, dropped_all;
	struct tls *tls;
	int64_t tls_at_ns;
};

/* One configuration and what came of it. Lives as long as one of its targets. */
struct plan {
	struct scrape_config *config;
	struct job_state *jobs;
	unsigned refs;
};

struct scrape {
	struct scrape_options options;
	char *config_file;
	_Atomic bool stops;
	pthread_t thread;
	struct metric_collector collector;
	struct lock reloading; /* one reload at a time */
	struct lock lock;      /* guards the rest */
	struct lock_condition wakes, ended;
	struct plan *plan;
	bool is_syncing; /* uses the discoveries of a plan, without the lock */
	unsigned running, storing;
	uint64_t lateness[LATENESS_BOUNDS + 1];
	double lateness_sum;
};

/* Plans */

static void forget_dropped(struct scrape_dropped *dropped, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		found_free(dropped[i].origin.found);
		free(dropped[i].reason);
	}
	free(dropped);
}

static void plan_unref(struct plan *plan)
{
	if (--plan->refs)
		return;
	for (size_t i = 0; i < plan->config->jobs_count; i++) {
		struct job_state *state = &plan->jobs[i];

		forget_dropped(state->dropped, state->dropped_count);
		free(state->targets);
		free(state->discoveries);
		free(state->versions);
		tls_unref(state->tls);
	}
	free(plan->jobs);
	scrape_config_free(plan->config);
	free(plan);
}

static void target_unref(struct scrape_target *target)
{
	struct plan *plan = target->plan;

	if (--target->refs)
		return;
	target_free(target);
	plan_unref(plan);
}

static void forget_targets(struct job_state *state)
{
	for (size_t i = 0; i < state->count; i++)
		target_unref(state->targets[i]);
	state->count = 0;
}

/* On a discovery's thread, or on that of who starts it. */
static void wake(void *context)
{
	struct scrape *scrape = context;

	lock_take(&scrape->lock);
	lock_signal(&scrape->wakes);
	lock_give(&scrape->lock);
}

/* What an earlier plan's job of that name has looked at, if this is it. */
static struct discovery *find_discovery(const struct plan *plan, const struct scrape_job *job,
					const struct discovery_config *wanted)
{
	for (size_t i = 0; plan && i < plan->config->jobs_count; i++) {
		const struct scrape_job *old = plan->jobs[i].job;

		for (size_t j = 0; j < old->discoveries.count; j++)
			if (slice_equal(old->name, job->name) &&
			    discovery_is_same(&old->discoveries.items[j], wanted))
				return plan->jobs[i].discoveries[j];
	}
	return NULL;
}

/* Whether the rules of the job leave it, with any of the profiles. */
static bool is_wanted(const void *context, const struct found_target *target)
{
	const struct scrape_job *job = context;
	bool is_kept = false;

	for (size_t i = 0; !is_kept && i < job->profiles_count; i++) {
		struct target_labels labels;

		if (!job->profiles[i].enabled)
			continue;
		target_labels_make(job, &job->profiles[i], target, &labels);
		is_kept = !labels.reason[0];
		target_labels_free(&labels);
	}
	return is_kept;
}

static struct discovery *start_discovery(struct scrape *scrape, const struct plan *before,
					 const struct scrape_job *job, size_t number)
{
	const struct discovery_config *config = &job->discoveries.items[number];
	const struct found_filter filter = { is_wanted, job };

	return discovery_start(
		config, &filter,
		config->kind == DISCOVERY_STATIC ? NULL : find_discovery(before, job, config), wake,
		scrape);
}

/* `before` is the plan that it will replace, or NULL. */
static struct plan *plan_new(struct scrape *scrape, const struct plan *before,
			     struct scrape_config *config)
{
	struct plan *plan = mem_new(struct plan);

	plan->config = config;
	plan->refs = 1;
	plan->jobs = mem_new_array(struct job_state, config->jobs_count + 1);
	for (size_t i = 0; i < config->jobs_count; i++) {
		struct job_state *state = &plan->jobs[i];
		size_t count = config->jobs[i].discoveries.count;

		state->job = &config->jobs[i];
		state->discoveries = mem_new_array(struct discovery *, count + 1);
		state->versions = mem_new_array(uint64_t, count + 1);
		for (size_t j = 0; j < count; j++)
			state->discoveries[j] =
				start_discovery(scrape, before, &config->jobs[i], j);
	}
	return plan;
}

static void stop_discoveries(struct plan *plan)
{
	for (size_t i = 0; i < plan->config->jobs_count; i++)
		for (size_t j = 0; j < plan->jobs[i].job->discoveries.count; j++)
			discovery_ask_to_stop(plan->jobs[i].discoveries[j]);
	for (size_t i = 0; i < plan->config->jobs_count; i++)
		for (size_t j = 0; j < plan->jobs[i].job->discoveries.count; j++)
			discovery_stop(plan->jobs[i].discoveries[j]);
}

/* The list of a job's targets, from what its discoveries have found */

struct target_lists {
	struct scrape_target **targets;
	size_t count, capacity;
	struct scrape_dropped *dropped;
	size_t dropped_count, dropped_capacity, dropped_all;
};

static void add_dropped(struct target_lists *lists, const struct scrape_origin *origin,
			const struct target_labels *labels)
{
	lists->dropped_all++;
	if (lists->dropped_count >= DROPPED_MAX)
		return;
	mem_grow(lists->dropped, lists->dropped_count, lists->dropped_capacity);
	lists->dropped[lists->dropped_count++] = (struct scrape_dropped){
		.origin = { found_share(origin->found), origin->target, origin->profile },
		.reason = mem_strndup(labels->reason, strlen(labels->reason)),
	};
}

static int make_target(const struct scrape_job *job, const struct scrape_origin *origin,
		       struct target_lists *ret, struct err *err)
{
	struct scrape_target *target = NULL;
	struct target_labels labels;
	int rc = 0;

	target_labels_make(job, origin->profile, origin->target, &labels);
	if (labels.reason[0])
		add_dropped(ret, origin, &labels);
	else
		target = target_new(job, origin, &labels);
	if (target) {
		mem_grow(ret->targets, ret->count, ret->capacity);
		ret->targets[ret->count++] = target;
	} else if (!labels.reason[0]) {
		rc = discovery_memory_fail(err);
	}
	target_labels_free(&labels);
	return rc;
}

/* Adds to *ret. ERR_LIMIT: there are more than there is memory for. */
static int make_targets(const struct scrape *scrape, const struct scrape_job *job,
			struct found *found, struct target_lists *ret, struct err *err)
{
	int rc = 0;

	for (size_t j = 0; j < job->profiles_count; j++)
		ret->dropped_all += job->profiles[j].enabled ? found->left_out : 0;
	for (size_t i = 0; !rc && i < found->count && !atomic_load(&scrape->stops); i++) {
		for (size_t j = 0; !rc && j < job->profiles_count; j++) {
			const struct scrape_origin origin = { found, &found->targets[i],
							      &job->profiles[j] };

			if (job->profiles[j].enabled)
				rc = make_target(job, &origin, ret, err);
		}
	}
	return rc;
}

static bool has_key(const void *context, uint32_t id, const void *key)
{
	struct scrape_target *const *list = context;

	return list[id]->key == *(const uint64_t *)key;
}

/* The moment of the interval that is the target's: the same on all servers and after a restart. */
static int64_t first_at(const struct scrape_target *target)
{
	int64_t interval_ns = target->interval_ns, now_ns = clock_real_ns();
	int64_t offset_ns = (int64_t)(target->key % (uint64_t)interval_ns);
	int64_t wait_ns = (offset_ns - now_ns % interval_ns + interval_ns) % interval_ns;

	return clock_monotonic_ns() + wait_ns;
}

/* What the target was before stays: its turn, and how it went. */
static void inherit(struct scrape_target *target, const struct scrape_target *old)
{
	target->health = old->health;
	target->last_at_ns = old->last_at_ns;
	target->last_duration_ns = old->last_duration_ns;
	if (old->error)
		target->error = mem_strndup(old->error, strlen(old->error));
	if (target->interval_ns == old->interval_ns)
		target->next_at_ns = old->next_at_ns;
}

/* With the lock held. `lists` are taken over. */
static void replace_targets(struct plan *plan, struct job_state *state, struct target_lists *lists)
{
	struct idmap old = { 0 }, seen = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < state->count; i++)
		idmap_add(&old, state->targets[i]->key, (uint32_t)i);
	for (size_t i = 0; i < lists->count; i++) {
		struct scrape_target *target = lists->targets[i], *known;
		uint32_t id = idmap_find(&seen, target->key, has_key, lists->targets, &target->key);

		if (id != IDMAP_NONE) { /* found twice */
			target_free(target);
			continue;
		}
		id = idmap_find(&old, target->key, has_key, state->targets, &target->key);
		known = id == IDMAP_NONE ? NULL : state->targets[id];
		if (known && known->plan == plan) {
			target_move_origin(known, target);
			target_free(target);
			target = known;
			target->refs++;
		} else {
			target->plan = plan;
			target->job_index = (size_t)(state - plan->jobs);
			plan->refs++;
			target->next_at_ns = first_at(target);
			if (known)
				inherit(target, known);
		}
		lists->targets[kept] = target;
		idmap_add(&seen, target->key, (uint32_t)kept++);
	}
	idmap_free(&old);
	idmap_free(&seen);
	forget_targets(state);
	free(state->targets);
	forget_dropped(state->dropped, state->dropped_count);
	state->targets = lists->targets;
	state->count = kept;
	state->dropped = lists->dropped;
	state->dropped_count = lists->dropped_count;
	state->dropped_all = lists->dropped_all;
}

static void forget_lists(struct target_lists *lists)
{
	for (size_t i = 0; i < lists->count; i++)
		target_free(lists->targets[i]);
	free(lists->targets);
	forget_dropped(lists->dropped, lists->dropped_count);
}

/* Gives the lock while it works; the plan may be another one's afterwards. */
static void sync_job(struct scrape *scrape, struct plan *plan, struct job_state *state)
{
	size_t count = state->job->discoveries.count;
	struct target_lists lists = { 0 };
	struct err err;
	int rc = 0;

	plan->refs++;
	scrape->is_syncing = true;
	lock_give(&scrape->lock);
	for (size_t i = 0; !rc && i < count; i++) {
		struct found *found = discovery_found(state->discoveries[i], &state->versions[i]);

		rc = make_targets(scrape, state->job, found, &lists, &err);
		found_free(found);
	}
	for (size_t i = 0; rc && i < count;
	     i++) { /* what was known stays, and this is tried again */
		discovery_refuse(state->discoveries[i], &err);
		state->versions[i] = 0;
	}
	for (size_t i = 0; !rc && i < count; i++)
		discovery_refuse(state->discoveries[i], NULL);
	lock_take(&scrape->lock);
	scrape->is_syncing = false;
	lock_broadcast(&scrape->ended);
	state->synced_at_ns = clock_monotonic_ns();
	if (!rc && scrape->plan == plan)
		replace_targets(plan, state, &lists);
	else
		forget_lists(&lists);
	plan_unref(plan);
}

/* True if its discoveries have found something else; not before each has found or failed. */
static bool is_outdated(const struct job_state *state)
{
	struct err err;
	bool is_other = false;

	for (size_t i = 0; i < state->job->discoveries.count; i++) {
		uint64_t version = discovery_version(state->discoveries[i]);

		if (!version && !state->synced_at_ns &&
		    !discovery_failure(state->discoveries[i], &err))
			return false;
		is_other |= version != state->versions[i];
	}
	return is_other || !state->synced_at_ns;
}

/* Scrapes */

struct taking {
	struct strbuf body;
	struct budget *memory;
};

static int take_piece(void *context, struct slice bytes, struct err *err)
{
	struct taking *into = context;

	if (!budget_take(into->memory, bytes.len))
		return budget_fail(into->memory, bytes.len, "the body of a scrape", err);
	strbuf_add_slice(&into->body, bytes);
	return 0;
}

static int certificates(struct scrape *scrape, const struct scrape_target *target, struct tls **ret,
			struct err *err)
{
	struct job_state *state = &((struct plan *)target->plan)->jobs[target->job_index];
	struct tls *made = NULL;
	int rc;

	lock_take(&scrape->lock);
	if (state->tls && clock_monotonic_ns() - state->tls_at_ns < TLS_AGE_NS)
		made = tls_ref(state->tls);
	lock_give(&scrape->lock);
	if (made) {
		*ret = made;
		return 0;
	}
	rc = credentials_tls(&target->job->access.tls, &made, err);
	if (rc)
		return rc;
	lock_take(&scrape->lock);
	tls_unref(state->tls);
	state->tls = tls_ref(made);
	state->tls_at_ns = clock_monotonic_ns();
	lock_give(&scrape->lock);
	*ret = made;
	return 0;
}

static int store(struct scrape *scrape, const struct scrape_target *target, struct slice body,
		 int64_t from_ns, struct err *err)
{
	const struct plan *plan = target->plan;
	const struct scrape_taken taken = {
		.body = body,
		.url = slice_of(target->url),
		.labels = &target->after,
		.external_labels = &plan->config->external_labels,
		.profile = target->origin.profile,
		.is_delta = label_list_get(&target->after, "__param_seconds").len > 0,
		.from_ns = from_ns,
		.until_ns = clock_real_ns(),
	};
	int rc;

	lock_take(&scrape->lock);
	while (scrape->storing >= STORES_MAX)
		lock_wait(&scrape->ended, &scrape->lock);
	scrape->storing++;
	lock_give(&scrape->lock);
	rc = scrape->options.store(scrape->options.store_context, &taken, err);
	lock_take(&scrape->lock);
	scrape->storing--;
	lock_broadcast(&scrape->ended);
	lock_give(&scrape->lock);
	return rc;
}

static int ask(struct scrape *scrape, const struct scrape_target *target, struct err *err)
{
	struct taking into = { .memory = scrape->options.memory };
	struct strbuf refusal = { 0 };
	int64_t from_ns = clock_real_ns();
	struct http_access access = { .tls = NULL };
	struct fetch fetch = {
		.url = target->url,
		.deadline_at_ns = clock_monotonic_ns() + target->timeout_ns,
		.body_bytes_max = target->job->body_bytes_max ? target->job->body_bytes_max
							      : SCRAPE_CONFIG_BODY_BYTES,
		.take = take_piece,
		.context = &into,
		.cancelled = &scrape->stops,
		.may_end_with_connection = true, /* a profile tells whether it is whole */
		.refusal = &refusal,
	};
	struct tls *tls = NULL;
	int status = 0, rc = 0;

	if (!strncmp(target->url, "https:", strlen("https:")))
		rc = certificates(scrape, target, &tls, err);
	fetch.tls = tls;
	if (!rc)
		rc = http_access_make(&target->job->access, NULL, &fetch, &access, err);
	if (!rc)
		rc = fetch_get(&fetch, &status, err);
	if (!rc && status != 200)
		rc = fetch_refused(status, &refusal, err);
	if (!rc && !into.body.len)
		rc = err_set(err, ERR_UNAVAILABLE, "the target's answer is empty");
	if (!rc) {
		metric_add(&scraped_bytes, (int64_t)into.body.len);
		rc = store(scrape, target, strbuf_slice(&into.body), from_ns, err);
	}
	budget_give(into.memory, into.body.len);
	strbuf_free(&into.body);
	strbuf_free(&refusal);
	http_access_free(&access);
	tls_unref(tls);
	return rc;
}

struct asking {
	struct scrape *scrape;
	struct scrape_target *target;
};

static void note(struct scrape_target *target, int rc, const struct err *err, int64_t at_ns,
		 int64_t duration_ns)
{
	free(target->error);
	target->error = rc ? mem_strndup(err->message, strlen(err->message)) : NULL;
	target->health = rc ? SCRAPE_DOWN : SCRAPE_UP;
	target->last_at_ns = at_ns;
	target->last_duration_ns = duration_ns;
	metric_add(rc ? &scrapes_bad : &scrapes_good, 1);
}

static void *run(void *argument)
{
	struct asking asking = *(struct asking *)argument;
	struct scrape *scrape = asking.scrape;
	int64_t at_ns = clock_real_ns(), from_ns = clock_monotonic_ns();
	struct err err;
	int rc;

	free(argument);
	rc = ask(scrape, asking.target, &err);
	lock_take(&scrape->lock);
	if (rc != -ERR_CANCELLED)
		note(asking.target, rc, &err, at_ns, clock_monotonic_ns() - from_ns);
	asking.target->in_flight = false;
	target_unref(asking.target);
	scrape->running--;
	lock_signal(&scrape->wakes);
	lock_broadcast(&scrape->ended);
	lock_give(&scrape->lock);
	return NULL;
}

static void note_lateness(struct scrape *scrape, int64_t ns)
{
	double seconds = (double)ns / CLOCK_NS_PER_S;
	size_t i = 0;

	while (i < LATENESS_BOUNDS && seconds > lateness_bounds[i])
		i++;
	scrape->lateness[i]++;
	scrape->lateness_sum += seconds;
}

static void start_one(struct scrape *scrape, struct scrape_target *target, int64_t now_ns)
{
	struct asking *asking = mem_new(struct asking);
	pthread_attr_t attributes;
	pthread_t thread;
	struct err err;
	int code;

	note_lateness(scrape, now_ns - target->next_at_ns);
	target->next_at_ns += target->interval_ns;
	if (target->next_at_ns <= now_ns) /* turns that have passed are lost */
		target->next_at_ns +=
			(now_ns - target->next_at_ns) / target->interval_ns * target->interval_ns;
	*asking = (struct asking){ scrape, target };
	target->in_flight = true;
	target->refs++;
	scrape->running++;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	code = pthread_create(&thread, &attributes, run, asking);
	pthread_attr_destroy(&attributes);
	if (!code)
		return;
	err_set_errno(&err, code, "start a thread for the scrape");
	note(target, -ERR_LIMIT, &err, clock_real_ns(), 0);
	target->in_flight = false;
	target->refs--;
	scrape->running--;
	free(asking);
}

/* Starts what is due; returns when the next one is. */
static int64_t start_due(struct scrape *scrape, int64_t now_ns)
{
	struct plan *plan = scrape->plan;
	int64_t next_ns = now_ns + CLOCK_NS_PER_S;

	for (size_t i = 0; i < plan->config->jobs_count; i++) {
		struct job_state *state = &plan->jobs[i];

		for (size_t j = 0; j < state->count; j++) {
			struct scrape_target *target = state->targets[j];

			if (target->in_flight || target->plan != plan)
				continue;
			if (target->next_at_ns <= now_ns && scrape->running < RUNNING_MAX)
				start_one(scrape, target, now_ns);
			if (!target->in_flight && target->next_at_ns < next_ns)
				next_ns = target->next_at_ns;
		}
	}
	return next_ns < now_ns + LOOK_NS ? now_ns + LOOK_NS : next_ns;
}

/* The first job that must be looked at now; *ret_next: when another one may be. */
static struct job_state *find_outdated(const struct plan *plan, int64_t now_ns, int64_t *ret_next)
{
	for (size_t i = 0; i < plan->config->jobs_count; i++) {
		struct job_state *state = &plan->jobs[i];

		if (!is_outdated(state))
			continue;
		if (!state->synced_at_ns || now_ns - state->synced_at_ns >= SYNC_NS)
			return state;
		if (state->synced_at_ns + SYNC_NS < *ret_next)
			*ret_next = state->synced_at_ns + SYNC_NS;
	}
	return NULL;
}

static void *manage(void *argument)
{
	struct scrape *scrape = argument;

	lock_take(&scrape->lock);
	while (!atomic_load(&scrape->stops)) {
		int64_t now_ns = clock_monotonic_ns(), next_ns = INT64_MAX, due_ns;
		struct job_state *state = find_outdated(scrape->plan, now_ns, &next_ns);

		if (state) {
			sync_job(scrape, scrape->plan, state);
			continue;
		}
		due_ns = start_due(scrape, now_ns);
		(void)lock_wait_until(&scrape->wakes, &scrape->lock,
				      due_ns < next_ns ? due_ns : next_ns);
	}
	lock_give(&scrape->lock);
	return NULL;
}

/* Metrics */

static void render_metrics(void *context, struct strbuf *out)
{
	static const char *const names[] = { "unknown", "up", "down" };
	struct scrape *scrape = context;
	const struct plan *plan;

	lock_take(&scrape->lock);
	plan = scrape->plan;
	metrics_add_family(out, "firn_scrape_targets", "gauge",
			   "Targets that are scraped, by job and how the last scrape went.");
	for (size_t i = 0; i < plan->config->jobs_count; i++) {
		const struct job_state *state = &plan->jobs[i];
		size_t counts[3] = { 0 };

		for (size_t j = 0; j < state->count; j++)
			counts[state->targets[j]->health]++;
		for (size_t h = 0; h < 3; h++) {
			strbuf_add_text(out, "firn_scrape_targets{job=\"");
			metrics_add_label_value(out, state->job->name);
			strbuf_addf(out, "\",health=\"%s\"} %zu\n", names[h], counts[h]);
		}
	}
	metrics_add_family(out, "firn_scrape_lateness_seconds", "histogram",
			   "How long after its moment a scrape began.");
	metrics_add_histogram(out, "firn_scrape_lateness_seconds", "", lateness_bounds,
			      LATENESS_BOUNDS, scrape->lateness, scrape->lateness_sum);
	lock_give(&scrape->lock);
}

static void register_metrics(void)
{
	static struct metric *const all[] = { &scrapes_good, &scrapes_bad, &scraped_bytes,
					      &reload_good, &reload_at };

	metrics_register(all, sizeof(all) / sizeof(all[0]));
}

/* Start, reload, stop */

static void tell_config(const struct scrape_config *config)
{
	if (config->has_object_storage)
		log_warn("scrape",
			 "object_storage is ignored: firn stores profiles in --storage-path",
			 "file=%s", config->path);
	log_info("scrape", "configuration read", "file=%s jobs=%zu", config->path,
		 config->jobs_count);
}

static int load(const struct scrape *scrape, struct scrape_config **ret, struct err *err)
{
	int rc = scrape_config_load(scrape->config_file, ret, err);

	metric_set(&reload_good, !rc);
	if (!rc) {
		metric_set(&reload_at, clock_real_ns() / CLOCK_NS_PER_S);
		tell_config(*ret);
	}
	return rc;
}

int scrape_start(const struct scrape_options *options, struct scrape **ret, struct err *err)
{
	struct scrape *scrape = mem_new(struct scrape);
	struct scrape_config *config;
	int rc;

	scrape->options = *options;
	scrape->config_file = mem_strndup(options->config_file, strlen(options->config_file));
	lock_init(&scrape->reloading, "scrape.reloading", LOCK_SCRAPE - 1);
	lock_init(&scrape->lock, "scrape", LOCK_SCRAPE);
	lock_condition_init(&scrape->wakes);
	lock_condition_init(&scrape->ended);
	register_metrics();
	rc = load(scrape, &config, err);
	if (!rc) {
		scrape->plan = plan_new(scrape, NULL, config);
		rc = pthread_create(&scrape->thread, NULL, manage, scrape);
		if (rc) {
			rc = err_set_errno(err, rc, "start the thread that scrapes");
			stop_discoveries(scrape->plan);
			plan_unref(scrape->plan);
		}
	}
	if (rc) {
		lock_condition_free(&scrape->wakes);
		lock_condition_free(&scrape->ended);
		lock_free(&scrape->lock);
		lock_free(&scrape->reloading);
		free(scrape->config_file);
		free(scrape);
		return rc;
	}
	scrape->collector = (struct metric_collector){ render_metrics, scrape, NULL };
	metrics_add_collector(&scrape->collector);
	*ret = scrape;
	return 0;
}

/* Targets of a job of the same name stay known until its discoveries have found them again. */
static void hand_over(struct plan *from, struct plan *to)
{
	for (size_t i = 0; i < to->config->jobs_count; i++) {
		struct job_state *state = &to->jobs[i];

		for (size_t j = 0; j < from->config->jobs_count; j++) {
			struct job_state *old = &from->jobs[j];

			if (!slice_equal(old->job->name, state->job->name))
				continue;
			state->targets = old->targets;
			state->count = old->count;
			old->targets = NULL;
			old->count = 0;
		}
	}
	for (size_t j = 0; j < from->config->jobs_count; j++)
		forget_targets(&from->jobs[j]);
}

int scrape_reload(struct scrape *scrape, struct err *err)
{
	struct scrape_config *config;
	struct plan *plan, *old;
	int rc;

	lock_take(&scrape->reloading);
	rc = load(scrape, &config, err);
	if (!rc) {
		plan = plan_new(scrape, scrape->plan, config); /* only reloads change it */
		lock_take(&scrape->lock);
		old = scrape->plan;
		hand_over(old, plan);
		scrape->plan = plan;
		lock_signal(&scrape->wakes);
		while (scrape->is_syncing)
			lock_wait(&scrape->ended, &scrape->lock);
		lock_give(&scrape->lock);
		stop_discoveries(old);
		lock_take(&scrape->lock);
		plan_unref(old);
		lock_give(&scrape->lock);
	}
	lock_give(&scrape->reloading);
	return rc;
}

void scrape_stop(struct scrape *scrape)
{
	if (!scrape)
		return;
	metrics_remove_collector(&scrape->collector);
	lock_take(&scrape->lock);
	atomic_store(&scrape->stops, true);
	lock_signal(&scrape->wakes);
	lock_give(&scrape->lock);
	pthread_join(scrape->thread, NULL);
	stop_discoveries(scrape->plan);
	lock_take(&scrape->lock);
	while (scrape->running)
		lock_wait(&scrape->ended, &scrape->lock);
	for (size_t i = 0; i < scrape->plan->config->jobs_count; i++)
		forget_targets(&scrape->plan->jobs[i]);
	plan_unref(scrape->plan);
	lock_give(&scrape->lock);
	lock_condition_free(&scrape->wakes);
	lock_condition_free(&scrape->ended);
	lock_free(&scrape->lock);
	lock_free(&scrape->reloading);
	free(scrape->config_file);
	free(scrape);
}

void scrape_visit(struct scrape *scrape, const struct scrape_visitor *visitor)
{
	const struct plan *plan;

	lock_take(&scrape->lock);
	plan = scrape->plan;
	for (size_t i = 0; i < plan->config->jobs_count; i++) {
		const struct job_state *state = &plan->jobs[i];
		struct err err;

		for (size_t j = 0; visitor->active && j < state->count; j++)
			visitor->active(visitor->context, state->targets[j]);
		for (size_t j = 0; visitor->dropped && j < state->dropped_count; j++)
			visitor->dropped(visitor->context, state->job, &state->dropped[j]);
		for (size_t j = 0; visitor->failure && j < state->job->discoveries.count; j++)
			if (discovery_failure(state->discoveries[j], &err))
				visitor->failure(visitor->context, state->job,
						 &state->job->discoveries.items[j], &err);
		if (visitor->job)
			visitor->job(visitor->context, state->job, state->count,
				     state->dropped_all);
	}
	lock_give(&scrape->lock);
}
