/* SPDX-License-Identifier: Apache-2.0 */
#include "config/tenant_limits.h"

#include <stdlib.h>
#include <string.h>

#include "config/units.h"

#define NOT_GIVEN 0u
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct reading {
	struct document *document;
	struct arena *arena;
	struct tenant_limits_list *list;
	struct tenant_limits *limits; /* that are read now */
	size_t capacity;
	bool has_fallback;
};

static const struct tenant_limits unlimited = { TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE };

void tenant_limits_init(struct tenant_limits_list *list)
{
	*list = (struct tenant_limits_list){ .fallback = unlimited };
}

bool tenant_limits_is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.data[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    (!c || !strchr("!-_.*'()", c)))
			return false;
	}
	return name.len <= TENANT_LIMITS_NAME_BYTES_MAX;
}

static int take_number(const struct reading *reading, const struct yaml_node_s *value,
		       uint64_t *ret, struct err *err)
{
	struct slice text;
	int rc = document_text(reading->document, value, &text, err);

	if (rc)
		return rc;
	if (!slice_parse_u64(text, ret) || *ret == TENANT_LIMITS_NONE)
		return document_error(reading->document, value, err,
				      "\"%.*s\" is no number; 0 is no limit", SLICE_FMT(text));
	if (!*ret)
		*ret = TENANT_LIMITS_NONE;
	return 0;
}

/* "2MB", "512KB", or a number of bytes. */
static int take_bytes(const struct reading *reading, const struct yaml_node_s *value, uint64_t *ret,
		      struct err *err)
{
	struct slice text;
	struct err reason;
	int rc = document_text(reading->document, value, &text, err);

	if (rc)
		return rc;
	if (units_parse_size(text, ret, NULL, &reason))
		return document_error(reading->document, value, err, "%s; 0 is no limit",
				      reason.message);
	if (!*ret)
		*ret = TENANT_LIMITS_NONE;
	return 0;
}

static int take_span(const struct reading *reading, const struct yaml_node_s *value, uint64_t *ret,
		     struct err *err)
{
	struct slice text;
	struct err reason;
	int64_t ns;
	int rc = document_text(reading->document, value, &text, err);

	if (rc)
		return rc;
	if (units_parse_duration(text, &ns, &reason))
		return document_error(reading->document, value, err, "%s; 0s is no limit",
				      reason.message);
	*ret = ns ? (uint64_t)ns : TENANT_LIMITS_NONE;
	return 0;
}

#define TAKE(function, member, how)                                                                \
	static int function(void *context, const struct yaml_node_s *value, struct err *err)       \
	{                                                                                          \
		const struct reading *reading = context;                                           \
                                                                                                   \
		return how(reading, value, &reading->limits->member, err);                         \
	}
TAKE(take_ingest, ingest_rows_per_s, take_number)
TAKE(take_ingest_bytes, ingest_bytes_per_s, take_bytes)
TAKE(take_series, active_series, take_number)
TAKE(take_labels, labels_per_series, take_number)
TAKE(take_queries, concurrent_queries, take_number)
TAKE(take_range, query_range_ns, take_span)

static int take_retention(void *context, const struct yaml_node_s *value, struct err *err)
{
	const struct reading *reading = context;

	if (reading->limits == &reading->list->fallback)
		return document_error(reading->document, value, err,
				      "the retention of all tenants is "
				      "--storage-retention-time; give it by name here");
	return take_span(reading, value, &reading->limits->retention_ns, err);
}

static int add_row(struct reading *reading, struct slice tenant, const struct yaml_node_s *value,
		   struct err *err)
{
	struct tenant_limits_list *list = reading->list;
	struct tenant_limits_row *grown;

	if (!tenant_limits_is_name(tenant))
		return document_error(reading->document, value, err,
				      "a tenant has at most %u letters, digits and !-_.*'()",
				      TENANT_LIMITS_NAME_BYTES_MAX);
	if (list->count == TENANT_LIMITS_TENANTS_MAX)
		return document_error(reading->document, value, err, "more than %u tenants",
				      TENANT_LIMITS_TENANTS_MAX);
	if (list->count == reading->capacity) {
		reading->capacity = reading->capacity ? 2 * reading->capacity : 8;
		grown = arena_alloc_array(reading->arena, reading->capacity, sizeof(*grown));
		if (list->count)
			memcpy(grown, list->rows, list->count * sizeof(*grown));
		list->rows = grown;
	}
	list->rows[list->count] =
		(struct tenant_limits_row){ .tenant = arena_copy(reading->arena, tenant) };
	reading->limits = &list->rows[list->count++].limits;
	return 0;
}

static int take_tenant(void *context, struct slice key, const struct yaml_node_s *value,
		       struct err *err)
{
	static const struct document_key keys[] = {
		{ "ingest_rows_per_second", take_ingest },
		{ "ingest_bytes_per_second", take_ingest_bytes },
		{ "active_series", take_series },
		{ "labels_per_series", take_labels },
		{ "concurrent_queries", take_queries },
		{ "query_range", take_range },
		{ "retention", take_retention },
	};
	struct reading *reading = context;
	int rc = 0;

	if (slice_is(key, "*")) {
		if (reading->has_fallback)
			return document_error(reading->document, value, err,
					      "\"*\" is given twice");
		reading->has_fallback = true;
		reading->limits = &reading->list->fallback;
	} else {
		rc = add_row(reading, key, value, err);
	}
	return rc ? rc
		  : document_take_map(reading->document, value, keys, COUNT_OF(keys), reading, err);
}

static int compare_names(struct slice a, struct slice b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.data, b.data, len) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *left, const void *right)
{
	const struct tenant_limits_row *a = left, *b = right;

	return compare_names(a->tenant, b->tenant);
}

static void take_over(uint64_t *limit, uint64_t from)
{
	if (*limit == NOT_GIVEN)
		*limit = from;
}

static void take_all_over(struct tenant_limits *limits, const struct tenant_limits *from)
{
	take_over(&limits->ingest_rows_per_s, from->ingest_rows_per_s);
	take_over(&limits->ingest_bytes_per_s, from->ingest_bytes_per_s);
	take_over(&limits->active_series, from->active_series);
	take_over(&limits->labels_per_series, from->labels_per_series);
	take_over(&limits->concurrent_queries, from->concurrent_queries);
	take_over(&limits->query_range_ns, from->query_range_ns);
	take_over(&limits->retention_ns, from->retention_ns);
}

int tenant_limits_take(struct document *document, const struct yaml_node_s *map,
		       struct arena *arena, struct tenant_limits_list *ret, struct err *err)
{
	struct reading reading = { .document = document, .arena = arena, .list = ret };
	int rc;

	*ret = (struct tenant_limits_list){ .is_given = true };
	rc = document_each_pair(document, map, take_tenant, &reading, err);
	if (rc)
		return rc;
	take_all_over(&ret->fallback, &unlimited);
	for (size_t i = 0; i < ret->count; i++)
		take_all_over(&ret->rows[i].limits, &ret->fallback);
	if (ret->count)
		qsort(ret->rows, ret->count, sizeof(*ret->rows), by_name);
	for (size_t i = 1; i < ret->count; i++)
		if (slice_equal(ret->rows[i - 1].tenant, ret->rows[i].tenant))
			return document_error(document, map, err, "tenant \"%.*s\" is given twice",
					      SLICE_FMT(ret->rows[i].tenant));
	return 0;
}

const struct tenant_limits *tenant_limits_find(const struct tenant_limits_list *list,
					       struct slice tenant)
{
	struct tenant_limits_row wanted = { .tenant = tenant };
	const struct tenant_limits_row *found =
		list->count
			? bsearch(&wanted, list->rows, list->count, sizeof(*list->rows), by_name)
			: NULL;

	return found ? &found->limits : &list->fallback;
}
