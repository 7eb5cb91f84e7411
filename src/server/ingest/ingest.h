/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest - decodes pprof and OTLP requests, and turns each into one normalised batch.
 *
 *   pprof bytes -> codec/pprof -> from_pprof --+
 *                                              +-> tables (batch) -> store_append
 *   OTLP bytes  -> from_otlp ------------------+
 *
 * Structure is validated, meaning is repaired, and every repair is counted in a metric with its
 * reason. A request is accepted or refused as a whole, with a message that says what and where;
 * reports outside the store's time window are refused one by one (append_result). Thread-safe: each
 * call works in a `struct ingest_scratch` that one thread uses at a time.
 */
#ifndef FIRN_SERVER_INGEST_INGEST_H
#define FIRN_SERVER_INGEST_INGEST_H

#include "base/budget.h"
#include "base/clock.h"
#include "base/err.h"
#include "model/tables.h"
#include "server/ingest/label_guard.h"

struct ingest_limits {
	size_t decompressed_bytes_max;
	size_t samples_max;	   /* per request */
	size_t stack_depth_max;	   /* frames; deeper stacks keep the leaf side and a marker frame */
	size_t string_bytes_max;   /* longer ones are cut (at a UTF-8 boundary) and counted */
	size_t labels_max;	   /* per series */
	size_t moments_max;	   /* times and links of samples, per report; 0 = none kept */
	struct label_guard *guard; /* of series' labels; NULL: none */
	/* Admits a set of so many labels, by its hash: 0 or an error. NULL: all. */
	int (*admit_series)(void *context, uint64_t hash, uint32_t labels, struct err *err);
	void *admit_context;
};
extern const struct ingest_limits ingest_limits_default;

/*
 * The memory of one running request; kept for the next, because that makes ingest fast. It counts
 * against the budget (NULL: no limit) until it is freed; additions to batches count until these are
 * forgotten. A request that takes more is refused: ERR_LIMIT, or ERR_NO_MEMORY if the budget's
 * parents have none left at the moment.
 */
struct ingest_scratch;
struct ingest_scratch *ingest_scratch_new(struct budget *budget);
void ingest_scratch_free(struct ingest_scratch *scratch);
void ingest_scratch_forget_batch(struct ingest_scratch *scratch); /* it was reset or freed */

/* The tenant of the next requests: a label that clients cannot set. Empty: none. Borrowed. */
#define INGEST_TENANT_LABEL "__tenant__"
void ingest_scratch_set_tenant(struct ingest_scratch *scratch, struct slice tenant);

struct ingest_label {
	struct slice name, value;
};

struct ingest_type;

/* A sample type that is wanted. */
struct ingest_kept {
	struct slice type, unit;
};

/* One pprof (gzip or not) for one series. `labels` may hold __name__ (the profile's name). */
struct ingest_pprof {
	struct slice bytes;
	struct slice name; /* "memory"; empty = from __name__, else ingest_default_name */
	const struct ingest_label *labels;
	size_t labels_count;
	int64_t now_ns;
	int64_t from_ns, until_ns; /* as the request says; where the profile does not. 0: neither */
	bool deltas;	     /* values are of this profile alone, but for inuse_* and the like */
	bool named_by_type;  /* each sample type under the name that Pyroscope gives it */
	bool datadog_labels; /* span ids and times of samples are in labels, as Datadog's are */
	const struct ingest_type *types; /* what the request says of sample types */
	size_t types_count;
	const struct ingest_kept *kept; /* no others are; none at all is an error. NULL: all */
	size_t kept_count;
};

/* Properties of one sample type that the request gives. */
struct ingest_type {
	struct slice type;
	struct slice name; /* "mutex_count", to tell mutex from block; empty: none */
	bool cumulative;   /* since the program's start */
	bool average;	   /* a gauge */
};

/*
 * Adds to `into` (a batch being built; several profiles may share it). Kinds: a duration means
 * delta; without one, Go's alloc_*, contentions and delay are cumulative, everything else a gauge.
 * With `deltas`, all that is no gauge by its name is a delta; `types` come before that.
 */
int ingest_from_pprof(struct ingest_scratch *scratch, const struct ingest_limits *limits,
		      const struct ingest_pprof *profile, struct tables *into, struct err *err);

/* The counts that OTLP's partial_success reports. */
struct ingest_partial {
	int64_t rejected_profiles;
	char message[256];
};

/* A protobuf ExportProfilesServiceRequest, dialects 1.5 and 1.7 to 1.11 (detected per request). */
int ingest_from_otlp(struct ingest_scratch *scratch, const struct ingest_limits *limits,
		     struct slice bytes, int64_t now_ns, struct tables *into,
		     struct ingest_partial *ret, struct err *err);

/*
 * The name of a profile that came without one: `process_cpu` when a sample type is CPU time
 * (cpu/nanoseconds, or samples/count with a period of cpu), `memory` for heap types (alloc_*,
 * inuse_*), `mutex` for contentions and delay (`block` when the fallback contains that word: the
 * two cannot be told apart otherwise), `goroutine` for goroutine(s); else the fallback (a file's
 * stem), and without one the first sample type. The slice lives as long as the profile's bytes
 * and the fallback.
 */
struct pprof; /* codec/profile/pprof.h */
struct slice ingest_default_name(const struct pprof *profile, struct slice fallback);

/*
 * The same for one sample type, as Pyroscope names it: `wall`, `process_cpu`, `memory`, `mutex`,
 * `block`, `goroutine`; else the type's own name. `said` is what the request calls the type.
 */
struct slice ingest_type_name(const struct pprof *profile, size_t type, struct slice said);

#endif
