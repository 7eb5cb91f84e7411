/* SPDX-License-Identifier: Apache-2.0 */
#include "model/service.h"

/* The first comes first. */
static const struct {
	const char *label;
	bool is_named;
} rule[] = {
	{ SERVICE_LABEL, true },
	{ "service.name", true },
	{ "service", true },
	{ "job", true },
	{ "app", true },
	{ "workload", true },
	{ "k8s.deployment.name", true },
	{ "k8s.statefulset.name", true },
	{ "k8s.daemonset.name", true },
	{ "k8s.cronjob.name", true },
	{ "k8s.job.name", true },
	{ "container", true },
	{ "k8s.container.name", true },
	{ "container.name", true },
	{ "systemd_unit", false },
	{ "comm", false },
	{ "process.executable.name", false },
};

#define RANKS ((uint32_t)(sizeof(rule) / sizeof(rule[0])))

static uint32_t rank_of(struct slice name)
{
	uint32_t rank = 0;

	while (rank < RANKS && !slice_is(name, rule[rank].label))
		rank++;
	return rank;
}

bool service_is_unknown(struct slice name)
{
	const struct slice unknown = SLICE_LITERAL(SERVICE_UNKNOWN);

	return slice_starts_with(name, unknown) &&
	       (name.len == unknown.len || name.data[unknown.len] == ':');
}

/* A login's scope is a unit as well, and says nothing of what runs in it. */
static bool says(struct slice label, struct slice value)
{
	return value.len && (!slice_is(label, "systemd_unit") ||
			     slice_ends_with(value, SLICE_LITERAL(".service")));
}

struct service service_begin(void)
{
	return (struct service){ .name = SLICE_LITERAL(SERVICE_UNKNOWN),
				 .label = SLICE_LITERAL(""),
				 .rank = 2 * RANKS };
}

void service_consider(struct service *service, struct slice label, struct slice value)
{
	uint32_t rank = rank_of(label);
	bool is_named;

	if (rank == RANKS || !says(label, value))
		return;
	is_named = rule[rank].is_named && !service_is_unknown(value);
	if (service_is_unknown(value))
		rank += RANKS; /* behind all that are known */
	if (rank < service->rank)
		*service = (struct service){ value, label, is_named, rank };
}

struct service service_of(const struct tables_view *view, uint32_t label_set)
{
	const struct label_set *set = &view->label_sets[label_set];
	struct service service = service_begin();

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		if (!label->numeric)
			service_consider(&service, tables_text(view, label->name),
					 tables_text(view, label->value));
	}
	return service;
}

struct slice service_label_value(const struct tables_view *view, uint32_t label_set,
				 struct slice name)
{
	if (slice_is(name, SERVICE_LABEL))
		return service_of(view, label_set).name;
	return tables_label_value(view, label_set, name);
}
