/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/quota.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"

#define CHAINS 1024u /* a power of two */
#define SET_SLOTS_MIN 64u
#define SEEN 1u /* bit of a hash in a set: it came in this span */

/* Series of the span and of the one before, in open addressing; 0 is an empty slot. */
struct series_set {
	uint64_t *slots;
	size_t slots_count, count;
	int64_t span_begun_ns;
};

/* What may come at once; negative: a debt. */
struct token_bucket {
	double left;
	int64_t filled_ns; /* INT64_MIN: nothing limits it */
};

struct quota_tenant {
	struct quota_tenant *next; /* of the chain */
	uint64_t hash;
	char name[TENANT_LIMITS_NAME_BYTES_MAX + 1];
	struct tenant_limits limits; /* as of the last request */
	unsigned inside;	     /* who entered and has not left */
	uint64_t entered;	     /* when, in entries */
	struct token_bucket rows, bytes;
	struct series_set series;
	struct quota_usage usage;
};

struct quota {
	struct lock lock; /* guards the rest */
	quota_limits_f *limits;
	void *context;
	struct quota_tenant *chains[CHAINS];
	size_t count, series_slots; /* of all sets */
	uint64_t entries;
};

struct quota *quota_new(quota_limits_f *limits, void *context)
{
	struct quota *quota = mem_new(struct quota);

	lock_init(&quota->lock, "quota", LOCK_SERVE + 21);
	quota->limits = limits;
	quota->context = context;
	return quota;
}

static void free_tenant(struct quota *quota, struct quota_tenant *tenant)
{
	assert(!tenant->inside && quota->series_slots >= tenant->series.slots_count);
	quota->series_slots -= tenant->series.slots_count;
	quota->count--;
	free(tenant->series.slots);
	free(tenant);
}

void quota_free(struct quota *quota)
{
	if (!quota)
		return;
	for (size_t i = 0; i < CHAINS; i++)
		while (quota->chains[i]) {
			struct quota_tenant *tenant = quota->chains[i];

			quota->chains[i] = tenant->next;
			free_tenant(quota, tenant);
		}
	lock_free(&quota->lock);
	free(quota);
}

static struct quota_tenant *find(const struct quota *quota, uint64_t hash, struct slice name)
{
	struct quota_tenant *tenant = quota->chains[hash % CHAINS];

	while (tenant && !(tenant->hash == hash && slice_is(name, tenant->name)))
		tenant = tenant->next;
	return tenant;
}

/* Removes the unused tenant that was entered longest ago. */
static void forget_oldest(struct quota *quota)
{
	struct quota_tenant **oldest = NULL, *tenant;

	for (size_t i = 0; i < CHAINS; i++)
		for (struct quota_tenant **at = &quota->chains[i]; *at; at = &(*at)->next)
			if (!(*at)->inside && (!oldest || (*at)->entered < (*oldest)->entered))
				oldest = at;
	if (!oldest)
		return;
	tenant = *oldest;
	*oldest = tenant->next;
	free_tenant(quota, tenant);
}

static struct quota_tenant *add(struct quota *quota, uint64_t hash, struct slice name)
{
	struct quota_tenant *tenant = mem_new(struct quota_tenant);

	assert(name.len < sizeof(tenant->name));
	if (quota->count >= QUOTA_TENANTS_MAX)
		forget_oldest(quota);
	tenant->hash = hash;
	memcpy(tenant->name, name.data, name.len);
	tenant->rows.filled_ns = tenant->bytes.filled_ns = INT64_MIN;
	tenant->next = quota->chains[hash % CHAINS];
	quota->chains[hash % CHAINS] = tenant;
	quota->count++;
	return tenant;
}

struct quota_tenant *quota_enter(struct quota *quota, struct slice name)
{
	uint64_t hash = hash_bytes(name.data, name.len);
	struct quota_tenant *tenant;
	struct tenant_limits limits;

	if (!quota)
		return NULL;
	quota->limits(quota->context, name, &limits);
	lock_take(&quota->lock);
	tenant = find(quota, hash, name);
	if (!tenant)
		tenant = add(quota, hash, name);
	tenant->limits = limits;
	tenant->entered = ++quota->entries;
	tenant->inside++;
	lock_give(&quota->lock);
	return tenant;
}

void quota_leave(struct quota *quota, struct quota_tenant *tenant)
{
	if (!tenant)
		return;
	lock_take(&quota->lock);
	assert(tenant->inside);
	tenant->inside--;
	lock_give(&quota->lock);
}

static int refuse(struct quota_tenant *tenant, enum quota_refusal refusal)
{
	tenant->usage.refused[refusal]++;
	return refusal == QUOTA_ACTIVE_SERIES || refusal == QUOTA_LABELS ||
			       refusal == QUOTA_QUERY_RANGE
		       ? -ERR_QUOTA
		       : -ERR_RATE;
}

/* False: it is empty. */
static bool fill(struct token_bucket *bucket, uint64_t per_s, int64_t now_ns)
{
	double rate = (double)per_s, most = rate * QUOTA_BURST_S;

	if (per_s == TENANT_LIMITS_NONE) {
		bucket->filled_ns = INT64_MIN;
		return true;
	}
	if (bucket->filled_ns == INT64_MIN)
		bucket->left = most;
	else if (now_ns > bucket->filled_ns)
		bucket->left += rate * (double)(now_ns - bucket->filled_ns) / CLOCK_NS_PER_S;
	if (bucket->left > most)
		bucket->left = most;
	bucket->filled_ns = now_ns;
	return bucket->left > 0;
}

static void take(struct token_bucket *bucket, uint64_t tokens)
{
	if (bucket->filled_ns != INT64_MIN)
		bucket->left -= (double)tokens;
}

int quota_check_ingest(struct quota *quota, struct quota_tenant *tenant, int64_t now_ns,
		       struct err *err)
{
	enum quota_refusal refusal = QUOTA_REFUSALS;
	struct tenant_limits limits;
	bool has_rows, has_bytes;
	int rc = 0;

	if (!tenant)
		return 0;
	lock_take(&quota->lock);
	limits = tenant->limits;
	has_rows = fill(&tenant->rows, limits.ingest_rows_per_s, now_ns);
	has_bytes = fill(&tenant->bytes, limits.ingest_bytes_per_s, now_ns);
	if (!has_rows || !has_bytes) {
		refusal = has_rows ? QUOTA_INGEST_BYTES : QUOTA_INGEST_RATE;
		rc = refuse(tenant, refusal);
	}
	lock_give(&quota->lock);
	return rc ? err_set(err, ERR_RATE,
			    "tenant \"%s\" sends more than its %s, %llu; send again later",
			    tenant->name, quota_refusal_name(refusal),
			    (unsigned long long)(has_rows ? limits.ingest_bytes_per_s
							  : limits.ingest_rows_per_s))
		  : 0;
}

void quota_charge(struct quota *quota, struct quota_tenant *tenant, uint64_t rows, uint64_t reports,
		  uint64_t bytes)
{
	if (!tenant)
		return;
	lock_take(&quota->lock);
	tenant->usage.rows += rows;
	tenant->usage.reports += reports;
	tenant->usage.bytes += bytes;
	take(&tenant->rows, rows);
	take(&tenant->bytes, bytes);
	lock_give(&quota->lock);
}

static uint64_t *slot_of(uint64_t *slots, size_t slots_count, uint64_t hash)
{
	size_t at = (size_t)(hash >> 1) & (slots_count - 1);

	while (slots[at] && (slots[at] | SEEN) != (hash | SEEN))
		at = (at + 1) & (slots_count - 1);
	return &slots[at];
}

/* Moves what is kept to a new table: all, or what came in the span that is over. */
static void rebuild(struct quota *quota, struct series_set *set, size_t slots_count, bool is_over)
{
	uint64_t *slots = mem_new_array(uint64_t, slots_count);

	set->count = 0;
	for (size_t i = 0; i < set->slots_count; i++) {
		uint64_t hash = set->slots[i];

		if (!hash || (is_over && !(hash & SEEN)))
			continue;
		*slot_of(slots, slots_count, hash) = is_over ? hash & ~(uint64_t)SEEN : hash;
		set->count++;
	}
	free(set->slots);
	quota->series_slots += slots_count - set->slots_count;
	set->slots = slots;
	set->slots_count = slots_count;
}

static void begin_spans(struct quota *quota, struct series_set *set, int64_t now_ns)
{
	size_t slots_count = SET_SLOTS_MIN;

	if (!set->slots_count)
		set->span_begun_ns = now_ns;
	for (int spans = 0;
	     set->slots_count && spans < 2 && now_ns - set->span_begun_ns >= QUOTA_SERIES_SPAN_NS;
	     spans++) {
		while (slots_count < 2 * set->count)
			slots_count *= 2;
		rebuild(quota, set, slots_count, true);
		set->span_begun_ns += QUOTA_SERIES_SPAN_NS;
	}
	if (now_ns - set->span_begun_ns >= QUOTA_SERIES_SPAN_NS)
		set->span_begun_ns = now_ns;
}

static bool has_no_room(const struct quota *quota, const struct quota_tenant *tenant)
{
	return tenant->limits.active_series == TENANT_LIMITS_NONE &&
	       quota->series_slots >= 2 * QUOTA_SERIES_MAX;
}

/* False: it is new, and too much. */
static bool note_series(struct quota *quota, struct quota_tenant *tenant, uint64_t hash,
			int64_t now_ns)
{
	struct series_set *set = &tenant->series;
	uint64_t key = hash > SEEN ? hash & ~(uint64_t)SEEN : 2 * SEEN, *slot;

	begin_spans(quota, set, now_ns);
	if (2 * (set->count + 1) > set->slots_count && !has_no_room(quota, tenant))
		rebuild(quota, set, set->slots_count ? 2 * set->slots_count : SET_SLOTS_MIN, false);
	if (!set->slots_count)
		return true;
	slot = slot_of(set->slots, set->slots_count, key);
	if (!*slot && set->count >= tenant->limits.active_series)
		return false;
	if (!*slot && 2 * (set->count + 1) > set->slots_count)
		return true; /* not counted: there is no room */
	set->count += !*slot;
	*slot = key | SEEN;
	return true;
}

int quota_check_series(struct quota *quota, struct quota_tenant *tenant, uint64_t hash,
		       uint32_t labels, int64_t now_ns, struct err *err)
{
	struct tenant_limits limits;
	int rc = 0, too_long = 0;

	if (!tenant)
		return 0;
	lock_take(&quota->lock);
	limits = tenant->limits;
	if (labels > limits.labels_per_series)
		too_long = refuse(tenant, QUOTA_LABELS);
	else if (!note_series(quota, tenant, hash, now_ns))
		rc = refuse(tenant, QUOTA_ACTIVE_SERIES);
	lock_give(&quota->lock);
	if (too_long)
		return err_set(err, ERR_QUOTA,
			       "take profile: its series has %u labels, and the labels_per_series "
			       "of tenant \"%s\" is %llu",
			       labels, tenant->name, (unsigned long long)limits.labels_per_series);
	return rc ? err_set(err, ERR_QUOTA,
			    "take profile: tenant \"%s\" has %llu active series, as many as its "
			    "active_series allows; new ones are refused until others have not sent "
			    "for 40 minutes",
			    tenant->name, (unsigned long long)limits.active_series)
		  : 0;
}

int quota_begin_query(struct quota *quota, struct quota_tenant *tenant, struct err *err)
{
	uint64_t limit;
	int rc = 0;

	if (!tenant)
		return 0;
	lock_take(&quota->lock);
	limit = tenant->limits.concurrent_queries;
	if (tenant->usage.queries_running >= limit)
		rc = refuse(tenant, QUOTA_CONCURRENT_QUERIES);
	else
		tenant->usage.queries_running++, tenant->usage.queries++;
	lock_give(&quota->lock);
	return rc ? err_set(err, ERR_RATE,
			    "query: tenant \"%s\" has %llu at once, as many as its "
			    "concurrent_queries allows; ask again when one has ended",
			    tenant->name, (unsigned long long)limit)
		  : 0;
}

void quota_end_query(struct quota *quota, struct quota_tenant *tenant)
{
	if (!tenant)
		return;
	lock_take(&quota->lock);
	assert(tenant->usage.queries_running);
	tenant->usage.queries_running--;
	lock_give(&quota->lock);
}

int quota_check_range(struct quota *quota, struct quota_tenant *tenant, int64_t from_ns,
		      int64_t to_ns, int64_t now_ns, struct err *err)
{
	int64_t range_ns;
	uint64_t limit;
	int rc = 0;

	if (!tenant)
		return 0;
	if (to_ns > now_ns)
		to_ns = now_ns;
	if (__builtin_sub_overflow(to_ns, from_ns, &range_ns))
		range_ns = INT64_MAX;
	lock_take(&quota->lock);
	limit = tenant->limits.query_range_ns;
	if (range_ns > 0 && (uint64_t)range_ns > limit)
		rc = refuse(tenant, QUOTA_QUERY_RANGE);
	lock_give(&quota->lock);
	return rc ? err_set(err, ERR_QUOTA,
			    "query: its time range has %.1f hours, and the query_range of tenant "
			    "\"%s\" is %.1f; ask for less",
			    (double)range_ns / (3600.0 * CLOCK_NS_PER_S), tenant->name,
			    (double)limit / (3600.0 * CLOCK_NS_PER_S))
		  : 0;
}

static struct quota_usage usage_of(struct quota *quota, struct quota_tenant *tenant, int64_t now_ns)
{
	lock_assert_held(&quota->lock);
	begin_spans(quota, &tenant->series, now_ns);
	tenant->usage.active_series = tenant->series.count;
	return tenant->usage;
}

void quota_usage(struct quota *quota, struct slice name, int64_t now_ns, struct quota_usage *ret,
		 struct tenant_limits *ret_limits)
{
	struct quota_tenant *tenant;

	quota->limits(quota->context, name, ret_limits);
	lock_take(&quota->lock);
	tenant = find(quota, hash_bytes(name.data, name.len), name);
	*ret = tenant ? usage_of(quota, tenant, now_ns) : (struct quota_usage){ 0 };
	lock_give(&quota->lock);
}

const char *quota_refusal_name(enum quota_refusal refusal)
{
	static const char *const names[] = {
		[QUOTA_INGEST_RATE] = "ingest_rows_per_second",
		[QUOTA_INGEST_BYTES] = "ingest_bytes_per_second",
		[QUOTA_ACTIVE_SERIES] = "active_series",
		[QUOTA_LABELS] = "labels_per_series",
		[QUOTA_CONCURRENT_QUERIES] = "concurrent_queries",
		[QUOTA_QUERY_RANGE] = "query_range",
	};

	return names[refusal];
}

struct seen {
	char name[TENANT_LIMITS_NAME_BYTES_MAX + 1];
	struct quota_usage usage;
};

static int by_tenant(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* A copy, so that `sees` is asked without the lock. */
static struct seen *list(struct quota *quota, int64_t now_ns, size_t *ret_count)
{
	struct seen *rows;
	size_t count = 0;

	lock_take(&quota->lock);
	rows = mem_new_array(struct seen, quota->count + 1);
	for (size_t i = 0; i < CHAINS; i++)
		for (struct quota_tenant *at = quota->chains[i]; at; at = at->next) {
			memcpy(rows[count].name, at->name, sizeof(at->name));
			rows[count++].usage = usage_of(quota, at, now_ns);
		}
	lock_give(&quota->lock);
	qsort(rows, count, sizeof(*rows), by_tenant);
	*ret_count = count;
	return rows;
}

static void put_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_family(struct strbuf *out, const struct seen *rows, size_t count, const char *name,
		       const char *type, const char *help, size_t offset)
{
	put_head(out, name, type, help);
	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&rows[i].usage + offset, sizeof(value));
		strbuf_addf(out, "%s{tenant=\"%s\"} %llu\n", name, rows[i].name,
			    (unsigned long long)value);
	}
}

static void put_refused(struct strbuf *out, const struct seen *rows, size_t count)
{
	static const char name[] = "firn_tenant_refused_total";

	put_head(out, name, "counter",
		 "Requests (of active_series and labels_per_series: series) beyond a limit of the "
		 "tenant.");
	for (size_t i = 0; i < count; i++)
		for (int r = 0; r < QUOTA_REFUSALS; r++)
			strbuf_addf(out, "%s{tenant=\"%s\",reason=\"%s\"} %llu\n", name,
				    rows[i].name, quota_refusal_name((enum quota_refusal)r),
				    (unsigned long long)rows[i].usage.refused[r]);
}

void quota_render(struct quota *quota, quota_sees_f *sees, const void *context, int64_t now_ns,
		  struct strbuf *out)
{
	struct seen *rows;
	size_t all, count = 0;

	if (!quota)
		return;
	rows = list(quota, now_ns, &all);
	for (size_t i = 0; i < all; i++)
		if (sees(context, slice_of(rows[i].name)))
			rows[count++] = rows[i];
	put_family(out, rows, count, "firn_tenant_ingest_rows_total", "counter",
		   "Rows (a stack in a report) that were taken from the tenant.",
		   offsetof(struct quota_usage, rows));
	put_family(out, rows, count, "firn_tenant_ingest_reports_total", "counter",
		   "Reports that were taken from the tenant.",
		   offsetof(struct quota_usage, reports));
	put_family(out, rows, count, "firn_tenant_ingest_bytes_total", "counter",
		   "Bytes of requests with profiles, decompressed.",
		   offsetof(struct quota_usage, bytes));
	put_family(out, rows, count, "firn_tenant_active_series", "gauge",
		   "Sets of labels that came within the last 20 to 40 minutes.",
		   offsetof(struct quota_usage, active_series));
	put_family(out, rows, count, "firn_tenant_queries_running", "gauge",
		   "Queries that run or wait.", offsetof(struct quota_usage, queries_running));
	put_family(out, rows, count, "firn_tenant_queries_total", "counter",
		   "Queries that were begun.", offsetof(struct quota_usage, queries));
	put_refused(out, rows, count);
	free(rows);
}
