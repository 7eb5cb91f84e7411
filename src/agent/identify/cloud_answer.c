/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/cloud_answer.h"

#include <ctype.h>

#include "base/budget.h"
#include "codec/wire/json_read.h"

#define MEMORY_BYTES_MAX ((int64_t)4 << 20)
#define VALUE_BYTES_MAX 128u

struct instance {
	struct slice id, type, zone, region;
};

static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x80 || (!isalnum(c) && c != '-' && c != '_' && c != '.'))
			return false;
	}
	return text.len <= VALUE_BYTES_MAX;
}

static int add(const char *provider, const struct instance *instance, struct meta_labels *ret,
	       struct err *err)
{
	if (!instance->id.len)
		return err_set(err, ERR_INVALID, "%s: the answer names no instance", provider);
	if (!is_plain(instance->id) || !is_plain(instance->type) || !is_plain(instance->zone) ||
	    !is_plain(instance->region))
		return err_set(err, ERR_INVALID, "%s: the answer has what is no name", provider);
	meta_labels_add(ret, CLOUD_META "provider", slice_of(provider));
	meta_labels_add(ret, CLOUD_META "instance_id", instance->id);
	meta_labels_add(ret, CLOUD_META "instance_type", instance->type);
	meta_labels_add(ret, CLOUD_META "zone", instance->zone);
	meta_labels_add(ret, CLOUD_META "region", instance->region);
	return 0;
}

int cloud_read_aws(struct slice json, struct meta_labels *ret, struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX };
	struct json_read read;
	int rc = json_read(json, 0, "aws", &budget, &read, err);
	const struct instance instance = {
		.id = json_text_at(read.root, "instanceId"),
		.type = json_text_at(read.root, "instanceType"),
		.zone = json_text_at(read.root, "availabilityZone"),
		.region = json_text_at(read.root, "region"),
	};

	if (!rc)
		rc = add("aws", &instance, ret, err);
	json_read_free(&read);
	return rc;
}

/* A zone is "1", of a region; as Kubernetes names it: "westeurope-1". */
int cloud_read_azure(struct slice json, struct meta_labels *ret, struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX };
	struct strbuf zone = { 0 };
	struct json_read read;
	int rc = json_read(json, 0, "azure", &budget, &read, err);
	struct instance instance = {
		.id = json_text_at(read.root, "vmId"),
		.type = json_text_at(read.root, "vmSize"),
		.zone = json_text_at(read.root, "zone"),
		.region = json_text_at(read.root, "location"),
	};

	if (instance.zone.len && instance.region.len) {
		strbuf_add_slice(&zone, instance.region);
		strbuf_add_byte(&zone, '-');
		strbuf_add_slice(&zone, instance.zone);
		instance.zone = strbuf_slice(&zone);
	}
	if (!rc)
		rc = add("azure", &instance, ret, err);
	strbuf_free(&zone);
	json_read_free(&read);
	return rc;
}

/* What stands behind the last slash. */
static struct slice last_part(struct slice path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;

	return slash ? slice_tail(path, (size_t)(slash - path.data) + 1) : path;
}

/* "us-east1-b" is in "us-east1". */
static struct slice region_of(struct slice zone)
{
	const char *dash = zone.len ? memrchr(zone.data, '-', zone.len) : NULL;

	return dash ? slice_from(zone.data, (size_t)(dash - zone.data)) : (struct slice){ "", 0 };
}

int cloud_read_gce(struct slice id, struct slice type, struct slice zone, struct meta_labels *ret,
		   struct err *err)
{
	const struct instance instance = {
		.id = slice_trim(id),
		.type = last_part(slice_trim(type)),
		.zone = last_part(slice_trim(zone)),
		.region = region_of(last_part(slice_trim(zone))),
	};

	return add("gce", &instance, ret, err);
}
