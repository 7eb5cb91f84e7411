/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_model - makes a workload and puts it where a benchmark wants it.
 *
 *     store_model MAKER [KEY=VALUE...] [OUTPUT...]
 *
 *   fleet      services=10 pods=10 after=0 minutes=60 mean=95 report_s=10 stacks=200000 labels=0
 *              first=0 hosts_run=0 (services per pod, 0 = all) times=0 (1: each sample's)
 *   host       processes=200 minutes=1440
 *   requests   file=FILE that store_capture wrote
 *
 *   floor      prints sizes and the information floor in bytes per row, as JSON
 *   otlp=FILE  as agents send it: one request per batch (bench/requests.h)
 *   pprof=FILE the same as WriteRaw requests, one gzip-compressed profile per report
 *   csv=DIR    rows, series, nodes and frames for other databases
 *   append=DIR straight into a store; seal_minutes=M makes a part of every M minutes of it, 0
 *              leaves all in the log; "full": until the log is as full as a server lets it become
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/export/encode_otlp.h"
#include "base/mem.h"
#include "bench/floor.h"
#include "bench/peer_csv.h"
#include "bench/requests.h"
#include "bench/write_raw.h"
#include "server/persist/store_admin.h"

struct arguments {
	char **items;
	int count;
};

static const char *text_of(const struct arguments *arguments, const char *key)
{
	size_t len = strlen(key);

	for (int i = 0; i < arguments->count; i++)
		if (!strncmp(arguments->items[i], key, len) && arguments->items[i][len] == '=')
			return arguments->items[i] + len + 1;
	return NULL;
}

static double number_of(const struct arguments *arguments, const char *key, double otherwise)
{
	const char *text = text_of(arguments, key);

	return text ? strtod(text, NULL) : otherwise;
}

static bool has(const struct arguments *arguments, const char *word)
{
	for (int i = 0; i < arguments->count; i++)
		if (!strcmp(arguments->items[i], word))
			return true;
	return false;
}

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "store_model: %s: %s\n", what, err->message);
	exit(2);
}

static void make(const struct arguments *arguments, struct workload *workload)
{
	struct workload_fleet fleet = {
		.services = (uint32_t)number_of(arguments, "services", 10),
		.pods = (uint32_t)number_of(arguments, "pods", 10),
		.hosts_run = (uint32_t)number_of(arguments, "hosts_run", 0),
		.report_s = (uint32_t)number_of(arguments, "report_s", 10),
		.mean = number_of(arguments, "mean", 95),
		.after = (int64_t)number_of(arguments, "after", 0),
		.minutes = (int64_t)number_of(arguments, "minutes", 60),
		.stacks = (uint32_t)number_of(arguments, "stacks", 200000),
		.labels = (uint32_t)number_of(arguments, "labels", 0),
		.first = (uint32_t)number_of(arguments, "first", 0),
		.times = number_of(arguments, "times", 0) > 0,
	};
	struct err err = { 0 };

	if (has(arguments, "fleet"))
		workload_make_fleet(workload, &fleet);
	else if (has(arguments, "host"))
		workload_make_host(workload, (uint32_t)number_of(arguments, "processes", 200),
				   (int64_t)number_of(arguments, "minutes", 1440));
	else if (!text_of(arguments, "file"))
		die("what to make", &(struct err){ .message = "say fleet, host, or requests "
							      "file=FILE" });
	else if (workload_read_requests(workload, text_of(arguments, "file"), &err))
		die("read", &err);
}

typedef void encode_f(const struct tables_view *view, struct strbuf *out);

static void write_requests(const struct workload *workload, const char *path, encode_f *encode)
{
	struct workload_copier copier;
	FILE *file = fopen(path, "wb");
	struct strbuf body = { 0 };
	struct tables batch;

	if (!file)
		die(path, &(struct err){ .message = "cannot be written" });
	tables_init(&batch);
	workload_copier_begin(&copier, workload);
	for (size_t i = 0; i < workload->batches_count; i++) {
		struct tables_view view;

		tables_reset(&batch);
		strbuf_clear(&body);
		workload_copy_batch(&copier, i, &batch);
		view = tables_view_of(&batch);
		encode(&view, &body);
		requests_write(file,
			       &(struct requests_item){ strbuf_slice(&body), view.rows_count });
	}
	workload_copier_end(&copier);
	tables_free(&batch);
	strbuf_free(&body);
	if (fclose(file))
		die(path, &(struct err){ .message = "cannot be written" });
}

/* Together, when a store is filled without a server; a log to be read back has them one by one. */
#define APPEND_ROWS 20000u

static int64_t clock_at; /* follows the reports */

static int64_t model_clock(void *context)
{
	(void)context;
	return clock_at;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void seal(struct store *store)
{
	struct err err;

	if (store_seal(store, &err))
		die("seal", &err);
}

static void compact(struct store *store)
{
	const struct store_compact_options options = { .all = true };
	struct store_compacted done;
	struct err err;

	if (store_compact(store, &options, &done, &err))
		die("compact", &err);
}

static void append(const struct workload *workload, const char *path, int64_t seal_ns,
		   bool with_compaction, bool until_full)
{
	struct store_options options = { .path = path,
					 .clock = model_clock,
					 .no_background = true,
					 .seal_age_ns = INT64_MAX,
					 .seal_bytes = seal_ns || until_full ? 0 : UINT64_MAX };
	int64_t sealed_ns = WORKLOAD_START_NS;
	uint64_t rows = 0;
	double append_s = 0, seal_s = 0, compact_s, begin, nodes = 0, frames = 0;
	struct workload_copier copier;
	struct err err = { 0 };
	struct tables batch;
	struct store *store;

	clock_at = WORKLOAD_START_NS;
	if (store_open(&options, &store, &err))
		die("open", &err);
	tables_init(&batch);
	workload_copier_begin(&copier, workload);
	for (size_t i = 0; i < workload->batches_count; i++) {
		struct append_result result;
		struct tables_view view;
		int rc;

		workload_copy_batch(&copier, i, &batch);
		view = tables_view_of(&batch);
		if (!until_full && view.rows_count < APPEND_ROWS && i + 1 < workload->batches_count)
			continue; /* syncing each would take longer than all the rest */
		clock_at = view.reports[view.reports_count - 1].start_ns;
		nodes += view.nodes_count;
		frames += view.frames_count;
		begin = cpu_seconds();
		if (seal_ns && clock_at - sealed_ns >= seal_ns) {
			sealed_ns = clock_at;
			seal(store);
			seal_s += cpu_seconds() - begin;
		}
		begin = cpu_seconds();
		rc = store_append(store, &view, &result, &err);
		if (rc == -ERR_NO_MEMORY && !until_full) {
			seal(store);
			rc = store_append(store, &view, &result, &err);
		}
		if (rc == -ERR_NO_MEMORY && until_full)
			break;
		if (rc)
			die("append", &err);
		if (result.reports_stored != view.reports_count)
			die("append", &(struct err){ .message = "reports were refused" });
		append_s += cpu_seconds() - begin;
		rows += view.rows_count;
		tables_reset(&batch);
	}
	begin = cpu_seconds();
	if (seal_ns)
		seal(store);
	seal_s += cpu_seconds() - begin;
	begin = cpu_seconds();
	if (with_compaction)
		compact(store);
	compact_s = cpu_seconds() - begin;
	workload_copier_end(&copier);
	tables_free(&batch);
	store_close(store);
	printf("{\"rows\": %llu, \"batch_nodes\": %.0f, \"batch_frames\": %.0f, "
	       "\"append_cpu_s\": %.3f, \"seal_cpu_s\": %.3f, \"compact_cpu_s\": %.3f}\n",
	       (unsigned long long)rows, nodes, frames, append_s, seal_s, compact_s);
}

int main(int argc, char **argv)
{
	struct arguments arguments = { argv + 1, argc - 1 };
	double seal_minutes = number_of(&arguments, "seal_minutes", 10);
	struct workload workload;

	make(&arguments, &workload);
	if (has(&arguments, "floor")) {
		struct floor_bits bits = floor_of(&workload);

		floor_print(&bits);
	}
	if (text_of(&arguments, "otlp"))
		write_requests(&workload, text_of(&arguments, "otlp"), encode_otlp);
	if (text_of(&arguments, "pprof"))
		write_requests(&workload, text_of(&arguments, "pprof"), write_raw_encode);
	if (text_of(&arguments, "csv"))
		peer_csv_write(&workload, text_of(&arguments, "csv"));
	if (text_of(&arguments, "append"))
		append(&workload, text_of(&arguments, "append"),
		       has(&arguments, "full") ? 0 : (int64_t)(seal_minutes * 60) * CLOCK_NS_PER_S,
		       has(&arguments, "compact"), has(&arguments, "full"));
	workload_free(&workload);
	return 0;
}
