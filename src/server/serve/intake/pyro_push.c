/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyro_push - push.v1.PusherService/Push of Pyroscope: series of pprof profiles, as its agents
 * (Alloy) send them. The label __name__ names the profile; __delta__="false" says that nothing is
 * to be subtracted, else Go's names tell what counts since the start.
 */
#include "codec/wire/pb.h"
#include "server/serve/intake/writing.h"

#define LABELS_MAX 256

struct push_series {
	struct ingest_label labels[LABELS_MAX];
	size_t labels_count;
	bool deltas;
};

/* LabelPair{ name = 1; value = 2 } */
static int read_label(const struct pb_reader *outer, struct slice bytes, struct push_series *series,
		      struct err *err)
{
	static const struct pb_shape shape = { .name = "LabelPair", .bytes = PB_BITS(1, 2) };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct ingest_label label = { { "", 0 }, { "", 0 } };
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == 1)
			label.name = field.bytes;
		else
			label.value = field.bytes;
	}
	if (in.problem)
		return pb_fail(&in, shape.name, err);
	if (slice_is(label.name, "__delta__"))
		series->deltas = slice_is(label.value, "false");
	if (slice_starts_with(label.name, SLICE_LITERAL("__")) && !slice_is(label.name, "__name__"))
		return 0; /* of the process, or the agent's own */
	if (series->labels_count == LABELS_MAX)
		return err_set(err, ERR_LIMIT, "RawProfileSeries: more than %d labels", LABELS_MAX);
	series->labels[series->labels_count++] = label;
	return 0;
}

/* RawSample{ raw_profile = 1; ID = 2 } */
static int take_sample(struct writing *writing, const struct pb_reader *outer, struct slice bytes,
		       const struct push_series *series)
{
	static const struct pb_shape shape = { .name = "RawSample", .bytes = PB_BITS(1, 2) };
	struct ingest_pprof profile = { .labels = series->labels,
					.labels_count = series->labels_count,
					.now_ns = clock_real_ns(),
					.deltas = series->deltas };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next_known(&in, &shape, &field))
		if (field.number == 1)
			profile.bytes = field.bytes;
	if (in.problem)
		return pb_fail(&in, shape.name, &writing->err);
	return ingest_from_pprof(writing->scratch, &writing->limits, &profile, writing->batch,
				 &writing->err);
}

/* RawProfileSeries{ labels = 1; samples = 2; annotations = 3 }, in any order: so labels first. */
static int take_series(struct writing *writing, const struct pb_reader *outer, struct slice bytes)
{
	static const struct pb_shape shape = { .name = "RawProfileSeries", .bytes = PB_BITS(1, 3) };
	struct push_series series = { .labels_count = 0 };
	struct pb_reader in = pb_reader_into(outer, bytes), again = in;
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next_known(&in, &shape, &field))
		if (field.number == 1)
			rc = read_label(&in, field.bytes, &series, &writing->err);
	if (!rc && in.problem)
		return pb_fail(&in, shape.name, &writing->err);
	while (!rc && pb_next_known(&again, &shape, &field))
		if (field.number == 2)
			rc = take_sample(writing, &again, field.bytes, &series);
	return rc;
}

/* PushRequest{ series = 1 } */
static int take(struct writing *writing, unsigned *ret_series)
{
	static const struct pb_shape shape = { .name = "PushRequest", .bytes = PB_BIT(1) };
	struct pb_reader in = pb_reader_of(writing->request->body);
	struct pb_field field;
	unsigned index = 0;

	while (pb_next_known(&in, &shape, &field)) {
		if (take_series(writing, &in, field.bytes) && !writing_refuse(writing, index))
			return -(int)writing->err.code;
		index++;
	}
	*ret_series = index;
	return in.problem ? pb_fail(&in, shape.name, &writing->err) : 0;
}

void pyro_push(void *context, const struct net_request *request, struct net_response *response)
{
	struct writing writing;
	unsigned series = 0;
	int rc = writing_begin(&writing, context, request, WRITING_PYROSCOPE);

	if (!rc)
		rc = take(&writing, &series);
	if (!rc)
		rc = writing_append_rest(&writing, series);
	(void)rc; /* writing has the error */
	writing_end(&writing, response);
}
