/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_key.h"

#include <assert.h>

#include "model/service.h"

static const char *const service_labels[] = {
	"service_name", "container", "systemd_unit", "executable", "comm",
};

#define SERVICE_LABELS (sizeof(service_labels) / sizeof(service_labels[0]))

struct part_key part_key_of(const struct tables_view *view, uint32_t label_set,
			    struct slice *ret_label)
{
	struct part_key key = {
		.tenant = tables_label_value(view, label_set, SLICE_LITERAL(PART_KEY_TENANT)),
		.service = SLICE_LITERAL(""),
	};
	struct slice label = SLICE_LITERAL("");

	assert(label_set < view->label_sets_count);
	for (size_t i = 0; i < SERVICE_LABELS && !key.service.len; i++) {
		label = slice_of(service_labels[i]);
		key.service = tables_label_value(view, label_set, label);
	}
	if (ret_label)
		*ret_label = key.service.len ? label : SLICE_LITERAL("");
	return key;
}

int part_key_compare(const struct part_key *a, const struct part_key *b)
{
	int order = slice_compare(a->tenant, b->tenant);

	return order ? order : slice_compare(a->service, b->service);
}

/* A series without service_name goes by other labels, of which the key knows some (service.h). */
static bool known_service(const struct part_key *key, struct slice label, struct slice *ret)
{
	*ret = key->service;
	return slice_is(label, SERVICE_LABEL) && !service_is_unknown(key->service);
}

/* What the key tells about a label of all the partition's series; false when it tells nothing. */
static bool known_value(const struct part_key *key, struct slice label, struct slice name,
			struct slice *ret)
{
	*ret = SLICE_LITERAL("");
	if (slice_is(name, PART_KEY_TENANT)) {
		*ret = key->tenant;
		return true;
	}
	if (slice_is(name, SERVICE_LABEL))
		return known_service(key, label, ret);
	/* Labels before the one that says the service are empty; without any, all of them are. */
	for (size_t i = 0; i < SERVICE_LABELS && (label.len || !key->service.len); i++) {
		bool says = slice_is(label, service_labels[i]);

		if (slice_is(name, service_labels[i])) {
			*ret = says ? key->service : SLICE_LITERAL("");
			return true;
		}
		if (says)
			return false;
	}
	return false;
}

static bool is_among(struct slice name, const struct slice *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(name, names[i]))
			return true;
	return false;
}

bool part_key_may_match(const struct part_key *key, struct slice label, const struct slice *of_rows,
			size_t of_rows_count, const struct selector *selector)
{
	for (size_t i = 0; i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];
		struct slice value;

		if (is_among(matcher->name, of_rows, of_rows_count))
			continue;
		if (known_value(key, label, matcher->name, &value) &&
		    !matcher_matches(matcher, value))
			return false;
	}
	return true;
}
