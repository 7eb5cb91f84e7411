/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/short_type.h"

#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/wire/json_read.h"

#define WHOLE_COLONS 4 /* name:sample_type:sample_unit:period_type:period_unit[:delta] */
#define TOLD_MAX 8     /* types that a message names */

/* The types that begin with `head`, told with commas, and how many. */
struct found {
	struct slice head;
	struct strbuf told;
	const char *type; /* the last one, in the answer */
	size_t count;
};

static struct slice head_of(const char *selector)
{
	return (struct slice){ selector, strcspn(selector, "{") };
}

bool short_type_is_whole(const char *selector)
{
	struct slice head = head_of(selector);
	size_t colons = 0;

	for (size_t i = 0; i < head.len; i++)
		colons += head.data[i] == ':';
	return colons >= WHOLE_COLONS;
}

static bool begins(const char *type, struct slice head)
{
	return !head.len || (!strncmp(type, head.data, head.len) && type[head.len] == ':');
}

static void find(struct found *found, const json_t *types)
{
	for (size_t i = 0; i < json_array_size(types); i++) {
		const char *type =
			json_string_value(json_object_get(json_array_get(types, i), "type"));

		if (!type || !begins(type, found->head))
			continue;
		found->type = type;
		if (found->count++ < TOLD_MAX)
			strbuf_addf(&found->told, "%s%s", found->count > 1 ? ", " : "", type);
	}
	if (found->count > TOLD_MAX)
		strbuf_add_text(&found->told, ", ...");
}

static int tell_none(struct slice head, const json_t *types, struct err *err)
{
	struct found all = { 0 };
	int rc;

	find(&all, types);
	if (!all.count)
		rc = err_set(err, ERR_INVALID, "the server has no profiles yet");
	else
		rc = err_set(err, ERR_INVALID, "no profile type is called \"%.*s\"; there is %s",
			     SLICE_FMT(head), strbuf_text(&all.told));
	strbuf_free(&all.told);
	return rc;
}

static int complete(const json_t *types, const char *selector, char **ret, struct err *err)
{
	struct found found = { .head = head_of(selector) };
	struct strbuf whole = { 0 };
	int rc = 0;

	find(&found, types);
	if (!found.count) {
		rc = tell_none(found.head, types, err);
	} else if (found.count > 1) {
		rc = err_set(err, ERR_INVALID, "\"%.*s\" may be %s: say which",
			     SLICE_FMT(found.head), strbuf_text(&found.told));
	} else {
		strbuf_addf(&whole, "%s%s", found.type, selector + found.head.len);
		*ret = mem_strndup(strbuf_text(&whole), whole.len);
		strbuf_free(&whole);
	}
	strbuf_free(&found.told);
	return rc;
}

int short_type_find(struct slice types, const char *selector, char **ret, struct err *err)
{
	struct json_read read;
	int rc = json_read(types, 0, "profile types", NULL, &read, err);

	if (!rc)
		rc = complete(json_object_get(read.root, "types"), selector, ret, err);
	json_read_free(&read);
	return rc;
}
