/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/repairs.h"

#include <string.h>

#include "base/metrics.h"

#define COUNTER(name, labels, help)                                                                \
	{                                                                                          \
		METRIC_TYPE_COUNTER, name, labels, help, 1.0, 0                                    \
	}
#define REFUSED(reason)                                                                            \
	COUNTER("firn_ingest_refused_total", "{reason=\"" reason "\"}",                            \
		"Requests that ingest refused; profile: single OTLP profiles of a request")

static struct metric repaired[REPAIR_KINDS] = {
#define X(id, reason, help)                                                                        \
	[REPAIR_##id] = COUNTER("firn_ingest_repairs_total", "{reason=\"" reason "\"}",            \
				"Things ingest repaired or dropped, by reason"),
	REPAIRS(X)
#undef X
};

static const char *const texts[REPAIR_KINDS] = {
#define X(id, reason, help) [REPAIR_##id] = help,
	REPAIRS(X)
#undef X
};

/* A request is read by one thread from its beginning to its end. */
static _Thread_local int64_t in_request[REPAIR_KINDS];

enum refusal { REFUSAL_INVALID, REFUSAL_LIMIT, REFUSAL_UNSUPPORTED, REFUSAL_PROFILE, REFUSALS };
static struct metric refused[REFUSALS] = {
	[REFUSAL_INVALID] = REFUSED("invalid"),
	[REFUSAL_LIMIT] = REFUSED("limit"),
	[REFUSAL_UNSUPPORTED] = REFUSED("unsupported"),
	[REFUSAL_PROFILE] = REFUSED("profile"),
};

#define REQUESTS(protocol)                                                                         \
	COUNTER("firn_ingest_requests_total", "{protocol=\"" protocol "\"}",                       \
		"Profiles (pprof) and requests (otlp) that came in")
#define BYTES(protocol)                                                                            \
	COUNTER("firn_ingest_bytes_total", "{protocol=\"" protocol "\"}",                          \
		"Bytes that came in, as they came out of the transport")
static struct metric requests[DOORS] = {
	[DOOR_PPROF] = REQUESTS("pprof"), [DOOR_OTLP] = REQUESTS("otlp")
};
static struct metric bytes_in[DOORS] = {
	[DOOR_PPROF] = BYTES("pprof"), [DOOR_OTLP] = BYTES("otlp")
};

#define DIALECT(dialect)                                                                           \
	COUNTER("firn_ingest_otlp_dialects_total", "{dialect=\"" dialect "\"}",                    \
		"OTLP requests by the version of the protocol that they were read as")
static struct metric dialects[OTLP_DIALECTS] = { [OTLP_1_5] = DIALECT("1.5"),
						 [OTLP_1_7] = DIALECT("1.7"),
						 [OTLP_1_8] = DIALECT("1.8"),
						 [OTLP_1_9] = DIALECT("1.9"),
						 [OTLP_1_10] = DIALECT("1.10") };

static METRIC_COUNTER(reports_taken, "firn_ingest_reports_total", "",
		      "Reports normalised and handed to the store");
static METRIC_COUNTER(rows_taken, "firn_ingest_rows_total", "",
		      "Rows normalised and handed to the store");

static void register_array(struct metric *metrics, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct metric *metric = &metrics[i];

		metrics_register(&metric, 1);
	}
}

void repairs_register_metrics(void)
{
	struct metric *single[] = { &reports_taken, &rows_taken };

	register_array(requests, DOORS);
	register_array(bytes_in, DOORS);
	register_array(dialects, OTLP_DIALECTS);
	metrics_register(single, 2);
	register_array(refused, REFUSALS);
	register_array(repaired, REPAIR_KINDS);
}

void repairs_count(enum repair repair, int64_t count)
{
	metric_add(&repaired[repair], count);
	in_request[repair] += count;
}

const char *repairs_text(enum repair repair)
{
	return texts[repair];
}

void repairs_begin_request(void)
{
	memset(in_request, 0, sizeof(in_request));
}

int64_t repairs_in_request(enum repair repair)
{
	return in_request[repair];
}

int64_t repairs_counted(enum repair repair)
{
	return metric_get(&repaired[repair]);
}

void repairs_count_request(enum ingest_door door, size_t bytes)
{
	metric_add(&requests[door], 1);
	metric_add(&bytes_in[door], (int64_t)bytes);
}

void repairs_count_dialect(enum otlp_dialect dialect)
{
	metric_add(&dialects[dialect], 1);
}

void repairs_count_taken(uint64_t reports, uint64_t rows)
{
	metric_add(&reports_taken, (int64_t)reports);
	metric_add(&rows_taken, (int64_t)rows);
}

void repairs_count_refused(enum err_code code)
{
	enum refusal refusal = code == ERR_LIMIT	 ? REFUSAL_LIMIT
			       : code == ERR_UNSUPPORTED ? REFUSAL_UNSUPPORTED
							 : REFUSAL_INVALID;

	metric_add(&refused[refusal], 1);
}

void repairs_count_rejected_profile(void)
{
	metric_add(&refused[REFUSAL_PROFILE], 1);
}
