/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/target_list.h"

#include "base/budget.h"
#include "codec/wire/json_read.h"
#include "config/fields.h"
#include "server/scrape/discovery.h"

static int read_group(const json_t *group, size_t number, const char *name, const char *where,
		      struct found *into, struct err *err)
{
	const json_t *targets = json_object_get(group, "targets"), *value;
	json_t *labels = json_object_get(group, "labels");
	const char *key;
	size_t i;

	if (!json_is_object(group) || (targets && !json_is_array(targets)) ||
	    (labels && !json_is_object(labels) && !json_is_null(labels)))
		return err_set(err, ERR_INVALID,
			       "%.200s: group %zu is not {\"targets\": [...], \"labels\": {...}}",
			       where, number);
	json_object_foreach(labels, key, value)
	{
		if (!json_is_string(value) || !rule_labels_is_name(slice_of(key)))
			return err_set(err, ERR_INVALID,
				       "%.200s: group %zu: label \"%.64s\" is not a name with a "
				       "text",
				       where, number, key);
	}
	json_array_foreach(targets, i, value)
	{
		const json_t *label;

		if (into->is_cut) /* the rest would be left out, too */
			return 0;
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID,
				       "%.200s: group %zu: target %zu is not a string", where,
				       number, i);
		json_object_foreach(labels, key, label)
		{
			found_label(into, slice_of(key), json_text_of(label));
		}
		found_label(into, slice_of(name), slice_of(where));
		found_label(into, SLICE_LITERAL("__address__"), json_text_of(value));
		found_target(into, 0);
	}
	return 0;
}

int target_list_read_json(struct slice text, const char *name, const char *where,
			  struct found *into, struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX,
				 .parent = &discovery_memory };
	struct json_read read;
	int rc = json_read(text, 0, where, &budget, &read, err);
	const json_t *group;
	size_t i;

	if (!rc && !json_is_array(read.root))
		rc = err_set(err, ERR_INVALID, "%.200s: expected a list of groups", where);
	json_array_foreach(read.root, i, group)
	{
		rc = read_group(group, i, name, where, into, err);
		if (rc)
			break;
	}
	json_read_free(&read);
	return rc;
}

struct group {
	struct field_texts targets;
	struct field_pairs labels;
};

static const struct field group_fields[] = {
	{ "targets", FIELD_TEXTS, offsetof(struct group, targets), NULL, NULL },
	{ "labels", FIELD_PAIRS, offsetof(struct group, labels), NULL, NULL },
	{ 0 },
};

struct reading {
	struct fields_reader reader;
	const char *name, *where;
	struct found *into;
};

static int take_group(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct reading *reading = context;
	struct group group = { .targets = { NULL, 0 } };
	int rc = fields_read(&reading->reader, item, group_fields, &group, err);

	for (size_t i = 0; !rc && i < group.labels.count; i++)
		if (!rule_labels_is_name(group.labels.items[i].name))
			rc = document_error(reading->reader.document, item, err,
					    "\"%.*s\" is not a valid label name",
					    SLICE_FMT(group.labels.items[i].name));
	for (size_t i = 0; !rc && !reading->into->is_cut && i < group.targets.count; i++) {
		for (size_t j = 0; j < group.labels.count; j++)
			found_label(reading->into, group.labels.items[j].name,
				    group.labels.items[j].value);
		found_label(reading->into, slice_of(reading->name), slice_of(reading->where));
		found_label(reading->into, SLICE_LITERAL("__address__"), group.targets.items[i]);
		found_target(reading->into, 0);
	}
	return rc;
}

int target_list_read_yaml(struct slice text, const char *name, const char *where,
			  struct found *into, struct err *err)
{
	struct reading reading = { .name = name, .where = where, .into = into };
	struct arena arena;
	int rc = document_parse(text, where, &reading.reader.document, err);

	if (rc)
		return rc;
	arena_init(&arena, FOUND_BYTES_MAX);
	reading.reader.arena = &arena;
	if (document_root(reading.reader.document))
		rc = document_each_item(reading.reader.document,
					document_root(reading.reader.document), take_group,
					&reading, err);
	document_free(reading.reader.document);
	arena_free(&arena);
	return rc;
}
