/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/answer_scraped.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "server/scrape/scrape.h"

static void put_labels(struct json *json, const char *key, const struct label_list *list,
		       bool public_only)
{
	json_member_object(json, key);
	for (size_t i = 0; i < list->count; i++) {
		if (public_only && !target_labels_is_public(list->labels[i].name))
			continue;
		json_put_key_slice(json, list->labels[i].name);
		json_put_string(json, list->labels[i].value);
	}
	json_close_object(json);
}

static void put_discovered(struct json *json, const struct scrape_origin *origin,
			   const struct scrape_job *job)
{
	struct label_list list = scrape_origin_labels(origin, job, json->out->len);

	put_labels(json, "discoveredLabels", &list, false);
	label_list_free(&list);
}

static void put_time(struct json *json, const char *key, int64_t at_ns)
{
	time_t seconds = (time_t)(at_ns / CLOCK_NS_PER_S);
	char day[32], text[64];
	struct tm tm;

	if (!at_ns) { /* Go's zero time: never */
		json_member_text(json, key, "0001-01-01T00:00:00Z");
		return;
	}
	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%09" PRId64 "Z", day, (int64_t)(at_ns % CLOCK_NS_PER_S));
	json_member_text(json, key, text);
}

static void put_active(void *context, const struct scrape_target *target)
{
	static const char *const health[] = { "unknown", "up", "down" };
	struct json *json = context;

	json_open_object(json);
	put_discovered(json, &target->origin, target->job);
	put_labels(json, "labels", &target->after, true);
	json_member_string(json, "profile", label_list_get(&target->after, "__name__"));
	json_member_string(json, "scrapePool", target->job->name);
	json_member_text(json, "scrapeUrl", target->url);
	json_member_text(json, "globalUrl", target->url);
	json_member_text(json, "lastError", target->error ? target->error : "");
	put_time(json, "lastScrape", target->last_at_ns);
	json_put_key(json, "lastScrapeDuration");
	json_put_double(json, (double)target->last_duration_ns / CLOCK_NS_PER_S);
	put_time(json, "nextScrape", clock_real_ns() + (target->next_at_ns - clock_monotonic_ns()));
	json_member_text(json, "health", health[target->health]);
	json_member_string(json, "scrapeInterval",
			   label_list_get(&target->after, "__scrape_interval__"));
	json_member_string(json, "scrapeTimeout",
			   label_list_get(&target->after, "__scrape_timeout__"));
	json_close_object(json);
}

static void put_dropped(void *context, const struct scrape_job *job,
			const struct scrape_dropped *dropped)
{
	struct json *json = context;

	json_open_object(json);
	put_discovered(json, &dropped->origin, job);
	json_member_string(json, "scrapePool", job->name);
	json_member_text(json, "reason", dropped->reason);
	json_close_object(json);
}

static void put_count(void *context, const struct scrape_job *job, size_t active, size_t dropped)
{
	struct json *json = context;

	(void)active;
	json_put_key_slice(json, job->name);
	json_put_uint(json, dropped);
}

static void put_failure(void *context, const struct scrape_job *job,
			const struct discovery_config *discovery, const struct err *err)
{
	struct json *json = context;

	json_open_object(json);
	json_member_string(json, "scrapePool", job->name);
	json_member_text(json, "discovery", discovery_config_names[discovery->kind]);
	json_member_uint(json, "line", discovery->line);
	json_member_text(json, "error", err->message);
	json_close_object(json);
}

static void visit(struct scrape *scrape, struct scrape_visitor visitor, struct json *json)
{
	visitor.context = json;
	if (scrape)
		scrape_visit(scrape, &visitor);
}

void answer_scraped_put(struct json *json, struct scrape *scrape, struct slice state)
{
	bool active = !slice_is(state, "dropped"), dropped = !slice_is(state, "active");

	json_member_text(json, "status", "success");
	json_member_object(json, "data");
	json_member_array(json, "activeTargets");
	visit(scrape, (struct scrape_visitor){ .active = active ? put_active : NULL }, json);
	json_close_array(json);
	json_member_array(json, "droppedTargets");
	visit(scrape, (struct scrape_visitor){ .dropped = dropped ? put_dropped : NULL }, json);
	json_close_array(json);
	json_member_object(json, "droppedTargetCounts");
	visit(scrape, (struct scrape_visitor){ .job = put_count }, json);
	json_close_object(json);
	json_member_array(json, "discoveryErrors");
	visit(scrape, (struct scrape_visitor){ .failure = put_failure }, json);
	json_close_array(json);
	json_close_object(json);
}
