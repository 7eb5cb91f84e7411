/* SPDX-License-Identifier: Apache-2.0 */
/* firn store restore - a storage directory made of what is in a bucket. */
#include <stdio.h>
#include <time.h>

#include "base/printable.h"
#include "cli/flags/object_flags.h"
#include "cli/verb.h"
#include "server/persist/store_bucket.h"

struct restore_options {
	struct verb_common common;
	struct object_flags object;
	const char *store;
};

static const struct option restore_options[] = {
	OBJECT_FLAGS_OPTIONS(struct restore_options, object),
	OPTION_AT(RESTORE_STORE, offsetof(struct restore_options, store)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb restore_spec = {
	.name = "store restore",
	.operands = "URL DIR",
	.summary = "restore a storage directory from object storage",
	.details = "URL is the --object-url of the server. Makes DIR with everything that was\n"
		   "acknowledged before the time that is printed. A server started with DIR and\n"
		   "the same URL continues from there; the previous server, if it still runs, can\n"
		   "no longer write to the bucket.\n"
		   "\n"
		   "  firn store restore s3://profiles/firn /var/lib/firn",
	.options = restore_options,
	.options_count = VERB_COUNT_OF(restore_options),
};

static void print_done(const char *to, const struct store_restore *done)
{
	time_t seconds = (time_t)(done->covered_ns / CLOCK_NS_PER_S);
	int64_t age_ns = clock_real_ns() - done->covered_ns;
	char text[32] = "";
	struct tm parts;

	if (gmtime_r(&seconds, &parts))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	printable_print(stdout, "%s: %llu parts, %llu bytes, of store %s\n", to,
			(unsigned long long)done->parts, (unsigned long long)done->bytes,
			done->store);
	printable_print(stdout, "everything acknowledged until %s, %lld s ago\n", text,
			(long long)(age_ns > 0 ? age_ns / CLOCK_NS_PER_S : 0));
}

static int run_restore(int argc, char **argv)
{
	struct restore_options values = { 0 };
	struct option_operands operands;
	struct store_restore done;
	struct s3_options options;
	struct bucket *bucket;
	struct err err;
	int code = verb_parse(&verb_store_restore, argc, argv, &values, &operands);

	if (code < 0 && operands.count != 2) {
		err_set(&err, ERR_INVALID,
			"expected a bucket and a directory to make, for example s3://profiles/firn "
			"/var/lib/firn");
		code = verb_error(&verb_store_restore, &err);
	}
	if (code >= 0)
		return code;
	options = object_flags_options(&values.object, operands.items[0]);
	if (s3_open(&options, &bucket, &err))
		return verb_error(&verb_store_restore, &err);
	code = store_restore(bucket, operands.items[0], values.store, operands.items[1], NULL,
			     &done, &err);
	bucket->close(bucket);
	if (code)
		return verb_error(&verb_store_restore, &err);
	print_done(operands.items[1], &done);
	return VERB_OK;
}

const struct verb verb_store_restore = { &restore_spec, run_restore, LOG_WARN };
