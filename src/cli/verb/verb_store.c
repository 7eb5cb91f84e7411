/* SPDX-License-Identifier: Apache-2.0 */
/* firn store - looks into a storage directory: verify, stat. */
#include <stdio.h>
#include <time.h>

#include "base/printable.h"
#include "cli/output_file.h"
#include "cli/verb.h"
#include "config/units.h"
#include "server/serve/api/operations.h"
#include "server/serve/api/service_senders.h"

#define TIME_BYTES 32

#define VALUE_SHOWN_BYTES 40

struct store_verb_options {
	struct verb_common common;
	bool json, labels;
};

static const struct option verify_options[] = { VERB_COMMON_OPTIONS };
static const struct option stat_options[] = {
	OPTION_AT(STAT_LABELS, offsetof(struct store_verb_options, labels)),
	OPTION_AT(JSON, offsetof(struct store_verb_options, json)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb verify_spec = {
	.name = "store verify",
	.operands = "DIR",
	.summary = "read and check every byte of a storage directory",
	.details = "Checks all checksums, ids and references of the log, the parts and the\n"
		   "manifest, and prints one line per problem. Changes nothing. Exits 0 when the\n"
		   "directory is clean, 1 when it is not.",
	.options = verify_options,
	.options_count = VERB_COUNT_OF(verify_options),
};

static const struct option_verb stat_spec = {
	.name = "store stat",
	.operands = "DIR",
	.summary = "show how much a storage directory holds",
	.details = "Counts rows, reports, series, stacks and bytes. The server may be running.\n"
		   "Stacks are those of all parts; distinct: each once.\n"
		   "With --labels, a line per label of series, those with most values first: such\n"
		   "labels make most series.",
	.options = stat_options,
	.options_count = VERB_COUNT_OF(stat_options),
};

static int one_directory(const struct verb *verb, const struct option_operands *operands)
{
	struct err err;

	if (operands->count == 1)
		return -1;
	err_set(&err, ERR_INVALID, "expected one storage directory, for example /var/lib/firn");
	return verb_error(verb, &err);
}

/* The list that the server keeps beside its store. */
static int verify_senders(const char *folder, struct err *err)
{
	struct strbuf path = { 0 };
	int rc;

	strbuf_addf(&path, "%s/" SERVICE_SENDERS_FILE, folder);
	rc = service_senders_check(strbuf_text(&path), err);
	strbuf_free(&path);
	return rc;
}

static int run_verify(int argc, char **argv)
{
	struct store_verb_options values = { 0 };
	struct option_operands operands;
	struct strbuf report = { 0 };
	struct err err;
	int code = verb_parse(&verb_store_verify, argc, argv, &values, &operands);

	if (code < 0)
		code = one_directory(&verb_store_verify, &operands);
	if (code >= 0)
		return code;
	if (!store_verify(operands.items[0], NULL, &report, &err) &&
	    !verify_senders(operands.items[0], &err)) {
		printable_print(stdout, "%sclean: %s\n", strbuf_text(&report), operands.items[0]);
		code = VERB_OK;
	} else if (report.len) {
		printable_write(stdout, strbuf_slice(&report));
		verb_error(&verb_store_verify, &err);
		code = VERB_NEGATIVE;
	} else {
		code = verb_error(&verb_store_verify, &err);
	}
	strbuf_free(&report);
	return code;
}

static void print_stat(const struct store_stat *stat)
{
	printf("rows      %llu\nreports   %llu\nseries    %llu\n"
	       "stacks    %llu (%llu distinct)\n",
	       (unsigned long long)stat->rows, (unsigned long long)stat->reports,
	       (unsigned long long)stat->series, (unsigned long long)stat->stacks,
	       (unsigned long long)stat->stacks_distinct);
	printf("parts     %llu (%llu quarantined)\n", (unsigned long long)stat->parts,
	       (unsigned long long)stat->parts_quarantined);
	printf("bytes     %llu (wal %llu, samples %llu, stacks %llu, symbols %llu, rollups %llu, "
	       "sample times %llu)\n",
	       (unsigned long long)stat->bytes_total, (unsigned long long)stat->bytes_wal,
	       (unsigned long long)stat->bytes_samples, (unsigned long long)stat->bytes_stacks,
	       (unsigned long long)stat->bytes_symbols, (unsigned long long)stat->bytes_rollups,
	       (unsigned long long)stat->bytes_moments);
}

/* In UTC; "-" stands for no bound. */
static const char *time_text(int64_t at_ns, char ret[static TIME_BYTES])
{
	time_t seconds = (time_t)(at_ns / CLOCK_NS_PER_S);
	struct tm parts;

	if (at_ns <= UNITS_TIME_MIN_NS || at_ns >= UNITS_TIME_MAX_NS ||
	    !gmtime_r(&seconds, &parts) || !strftime(ret, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts))
		snprintf(ret, TIME_BYTES, "-");
	return ret;
}

static void print_deletes(const struct store_deletes *deletes)
{
	for (size_t i = 0; i < deletes->count; i++) {
		const struct store_deleted *deleted = &deletes->items[i];
		char from[TIME_BYTES], to[TIME_BYTES], created[TIME_BYTES];

		printable_print(stdout, "deleted   %s from %s to %s, at %s by %s%s\n",
				deleted->selector, time_text(deleted->from_ns, from),
				time_text(deleted->to_ns, to),
				time_text(deleted->created_ns, created), deleted->by,
				deleted->done_ns ? "" : " (bytes remain until compaction)");
	}
}

static void print_json(const struct store_stat *stat, const struct store_deletes *deletes)
{
	struct strbuf text = { 0 };
	struct json json;

	json_begin(&json, &text);
	operations_put_stat(&json, stat, deletes);
	printf("%s\n", strbuf_text(&text));
	strbuf_free(&text);
}

static void print_labels(const struct store_labels *labels)
{
	printf("%-28s %10s %10s %12s %14s  %s\n", "LABEL", "VALUES", "SERIES", "REPORTS", "ROWS",
	       "MOST ROWS");
	for (size_t i = 0; i < labels->count; i++) {
		const struct store_label *label = &labels->items[i];
		uint64_t rows = label->rows ? label->rows : 1;

		printable_print(stdout, "%-28s %10llu %10llu %12llu %14llu  %.*s (%.0f%%)\n",
				label->name, (unsigned long long)label->values,
				(unsigned long long)label->series,
				(unsigned long long)label->reports, (unsigned long long)label->rows,
				VALUE_SHOWN_BYTES, label->largest,
				100.0 * (double)label->largest_rows / (double)rows);
	}
	printf("%llu series in all\n", (unsigned long long)labels->series);
}

static void print_labels_json(const struct store_labels *labels)
{
	struct strbuf text = { 0 };
	struct json json;

	json_begin(&json, &text);
	json_open_object(&json);
	json_put_key(&json, "series");
	json_put_uint(&json, labels->series);
	json_put_key(&json, "labels");
	json_open_array(&json);
	for (size_t i = 0; i < labels->count; i++) {
		const struct store_label *label = &labels->items[i];

		json_open_object(&json);
		json_put_key(&json, "name");
		json_put_text(&json, label->name);
		json_put_key(&json, "values");
		json_put_uint(&json, label->values);
		json_put_key(&json, "series");
		json_put_uint(&json, label->series);
		json_put_key(&json, "reports");
		json_put_uint(&json, label->reports);
		json_put_key(&json, "rows");
		json_put_uint(&json, label->rows);
		json_put_key(&json, "largest");
		json_put_text(&json, label->largest);
		json_put_key(&json, "largest_rows");
		json_put_uint(&json, label->largest_rows);
		json_close_object(&json);
	}
	json_close_array(&json);
	json_close_object(&json);
	printf("%s\n", strbuf_text(&text));
	strbuf_free(&text);
}

static int show_labels(struct store *store, bool as_json)
{
	struct store_labels labels;
	struct err err;

	if (store_count_labels(store, &labels, &err))
		return verb_error(&verb_store_stat, &err);
	if (as_json)
		print_labels_json(&labels);
	else
		print_labels(&labels);
	store_labels_free(&labels);
	return VERB_OK;
}

static int run_stat(int argc, char **argv)
{
	struct store_verb_options values = { 0 };
	struct option_operands operands;
	struct store_options open = { .read_only = true, .no_background = true };
	struct store_stat stat;
	struct store *store;
	struct err err;
	int code = verb_parse(&verb_store_stat, argc, argv, &values, &operands);

	if (code < 0)
		code = one_directory(&verb_store_stat, &operands);
	if (code >= 0)
		return code;
	open.path = operands.items[0];
	if (store_open(&open, &store, &err))
		return verb_error(&verb_store_stat, &err);
	if (values.labels) {
		code = show_labels(store, values.json);
	} else if (store_stat(store, &stat, &err) ||
		   store_count_stacks(store, &stat.stacks_distinct, &err)) {
		code = verb_error(&verb_store_stat, &err);
	} else {
		struct store_deletes deletes;

		stat.has_stacks_distinct = true;
		store_deletes(store, NULL, &deletes);
		if (values.json) {
			print_json(&stat, &deletes);
		} else {
			print_stat(&stat);
			print_deletes(&deletes);
		}
		store_deletes_free(&deletes);
		code = VERB_OK;
	}
	store_close(store);
	return code;
}

const struct verb verb_store_verify = { &verify_spec, run_verify, LOG_WARN };
const struct verb verb_store_stat = { &stat_spec, run_stat, LOG_WARN };
