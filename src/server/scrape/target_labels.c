/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/target_labels.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "config/units.h"

#define PARAM_PREFIX "__param_"

static void put_if_missing(struct rule_labels *set, const char *name, struct slice value)
{
	if (!rule_labels_get(set, slice_of(name)).len)
		rule_labels_put(set, slice_of(name), value);
}

/* 90s is 1m30s, as Prometheus writes it. */
static void add_duration(struct strbuf *out, int64_t ns)
{
	static const struct {
		const char *unit;
		int64_t ms;
		bool only_whole; /* days and weeks are written when nothing is left over */
	} units[] = { { "y", 31536000000, true }, { "w", 604800000, true }, { "d", 86400000, true },
		      { "h", 3600000, false },	  { "m", 60000, false },    { "s", 1000, false },
		      { "ms", 1, false } };
	int64_t ms = ns / CLOCK_NS_PER_MS;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms < units[i].ms || (units[i].only_whole && ms % units[i].ms))
			continue;
		strbuf_addf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].unit);
		ms %= units[i].ms;
	}
	if (!out->len)
		strbuf_add_text(out, "0s");
}

static void put_duration(struct rule_labels *set, const char *name, int64_t ns)
{
	struct strbuf text = { 0 };

	add_duration(&text, ns);
	put_if_missing(set, name, strbuf_slice(&text));
	strbuf_free(&text);
}

static void add_job_labels(const struct scrape_job *job, const struct scrape_profile *profile,
			   struct rule_labels *set)
{
	struct strbuf text = { 0 };

	rule_labels_put(set, SLICE_LITERAL("__name__"), profile->name);
	rule_labels_put(set, SLICE_LITERAL("__profile_path__"), profile->path);
	put_if_missing(set, "job", job->name);
	put_if_missing(set, "__scheme__", job->scheme);
	put_duration(set, "__scrape_interval__", job->interval_ns);
	put_duration(set, "__scrape_timeout__", job->timeout_ns);
	for (size_t i = 0; i < job->params_count; i++) {
		if (!job->params[i].values.count)
			continue;
		strbuf_clear(&text);
		strbuf_addf(&text, PARAM_PREFIX "%.*s", SLICE_FMT(job->params[i].name));
		rule_labels_put(set, strbuf_slice(&text), job->params[i].values.items[0]);
	}
	strbuf_clear(&text);
	if (profile->delta) {
		strbuf_addf(&text, "%" PRId64, profile->seconds);
		rule_labels_put(set, SLICE_LITERAL(PARAM_PREFIX "seconds"), strbuf_slice(&text));
	}
	strbuf_free(&text);
}

static void drop(struct target_labels *labels, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void drop(struct target_labels *labels, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(labels->reason, sizeof(labels->reason), format, args);
	va_end(args);
}

static bool relabel(const struct scrape_job *job, struct target_labels *labels)
{
	struct strbuf rule = { 0 };
	size_t index;
	bool is_kept = relabel_apply(job->relabel, &labels->after, &index);

	if (!is_kept) {
		relabel_describe_rule(job->relabel, index, &rule);
		drop(labels, "relabel_configs line %zu: %s", relabel_rule_line(job->relabel, index),
		     strbuf_text(&rule));
	}
	strbuf_free(&rule);
	return is_kept;
}

/* With the port that the scheme has when none is given. */
static void complete_address(const struct scrape_job *job, struct rule_labels *set)
{
	struct slice address = rule_labels_get(set, SLICE_LITERAL("__address__"));
	struct slice scheme = rule_labels_get(set, SLICE_LITERAL("__scheme__"));
	bool is_ip6 = address.data[0] == '[';
	size_t colon = SIZE_MAX;
	struct strbuf text = { 0 };

	for (size_t i = address.len; i-- && colon == SIZE_MAX;)
		if (address.data[i] == ':' || address.data[i] == ']')
			colon = i;
	if (job->keeps_addresses || (colon != SIZE_MAX && address.data[colon] == ':'))
		return;
	if (is_ip6 != (colon != SIZE_MAX))
		return;
	strbuf_addf(&text, "%.*s:%s", SLICE_FMT(address), slice_is(scheme, "https") ? "443" : "80");
	rule_labels_put(set, SLICE_LITERAL("__address__"), strbuf_slice(&text));
	strbuf_free(&text);
}

static void remove_meta(struct rule_labels *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (!slice_starts_with(set->labels[i].name, SLICE_LITERAL("__meta_")))
			set->labels[kept++] = set->labels[i];
	set->count = kept;
}

static void check(const struct scrape_job *job, struct target_labels *labels)
{
	struct rule_labels *set = &labels->after;
	struct slice address = rule_labels_get(set, SLICE_LITERAL("__address__"));
	struct slice scheme, interval, timeout;

	if (!address.len) {
		drop(labels, "no address: the label __address__ is empty");
		return;
	}
	complete_address(job, set);
	address = rule_labels_get(set, SLICE_LITERAL("__address__"));
	scheme = rule_labels_get(set, SLICE_LITERAL("__scheme__"));
	interval = rule_labels_get(set, SLICE_LITERAL("__scrape_interval__"));
	timeout = rule_labels_get(set, SLICE_LITERAL("__scrape_timeout__"));
	if (slice_find_byte(address, '/') != SIZE_MAX)
		drop(labels, "\"%.*s\" is not a valid address: it has a /", SLICE_FMT(address));
	else if (!slice_is(scheme, "http") && !slice_is(scheme, "https"))
		drop(labels, "__scheme__ \"%.*s\" is neither http nor https", SLICE_FMT(scheme));
	else if (units_parse_duration(interval, &labels->interval_ns, NULL) ||
		 labels->interval_ns < CLOCK_NS_PER_MS)
		drop(labels, "__scrape_interval__ \"%.*s\" is not a duration over 0",
		     SLICE_FMT(interval));
	else if (units_parse_duration(timeout, &labels->timeout_ns, NULL) ||
		 labels->timeout_ns < CLOCK_NS_PER_MS)
		drop(labels, "__scrape_timeout__ \"%.*s\" is not a duration over 0",
		     SLICE_FMT(timeout));
	if (labels->reason[0])
		return;
	remove_meta(set);
	put_if_missing(set, "instance", address);
}

void target_labels_discovered(const struct scrape_job *job, const struct scrape_profile *profile,
			      const struct found_target *target, struct rule_labels *ret)
{
	rule_labels_init(ret);
	for (size_t i = 0; i < target->count; i++)
		rule_labels_put(ret, target->labels[i].name, target->labels[i].value);
	add_job_labels(job, profile, ret);
	rule_labels_sort(ret);
}

void target_labels_make(const struct scrape_job *job, const struct scrape_profile *profile,
			const struct found_target *target, struct target_labels *ret)
{
	*ret = (struct target_labels){ .interval_ns = 0 };
	target_labels_discovered(job, profile, target, &ret->before);
	rule_labels_init(&ret->after);
	rule_labels_copy(&ret->after, &ret->before);
	rule_labels_sort(&ret->after);
	if (relabel(job, ret))
		check(job, ret);
	if (!ret->reason[0] && ret->after.is_cut)
		drop(ret, "its labels are more than %zu bytes", RULE_LABELS_BYTES_MAX);
	if (ret->reason[0])
		rule_labels_free(&ret->after);
	rule_labels_sort(&ret->after);
}

void target_labels_free(struct target_labels *labels)
{
	rule_labels_free(&labels->before);
	rule_labels_free(&labels->after);
}

static void add_parameter(struct strbuf *out, bool *is_first, struct slice name, struct slice value)
{
	strbuf_add_byte(out, *is_first ? '?' : '&');
	*is_first = false;
	strbuf_add_for_uri(out, name, "");
	strbuf_add_byte(out, '=');
	strbuf_add_for_uri(out, value, "");
}

void target_labels_url(const struct rule_labels *after, const struct scrape_job *job,
		       struct strbuf *out)
{
	struct slice path = rule_labels_get(after, SLICE_LITERAL("__profile_path__"));
	bool is_first = slice_find_byte(path, '?') == SIZE_MAX;

	strbuf_addf(out, "%.*s://%.*s%s%.*s",
		    SLICE_FMT(rule_labels_get(after, SLICE_LITERAL("__scheme__"))),
		    SLICE_FMT(rule_labels_get(after, SLICE_LITERAL("__address__"))),
		    path.len && path.data[0] == '/' ? "" : "/", SLICE_FMT(path));
	for (size_t i = 0; i < after->count; i++) {
		const struct rule_label *label = &after->labels[i];

		if (slice_starts_with(label->name, SLICE_LITERAL(PARAM_PREFIX)))
			add_parameter(out, &is_first, slice_tail(label->name, strlen(PARAM_PREFIX)),
				      label->value);
	}
	/* Further values of a parameter, which a label cannot have. */
	for (size_t i = 0; i < job->params_count; i++)
		for (size_t j = 1; j < job->params[i].values.count; j++)
			add_parameter(out, &is_first, job->params[i].name,
				      job->params[i].values.items[j]);
}
