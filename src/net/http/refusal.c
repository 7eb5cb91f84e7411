/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/refusal.h"

#include "base/metrics.h"

#define COUNTER(name, label, http, grpc, retry_s, text)                                            \
	static METRIC_COUNTER(count_##name, "firn_net_refused_total", "{reason=\"" label "\"}",    \
			      "Requests and connections turned away by the server itself.");
REFUSALS(COUNTER)
#undef COUNTER

static struct metric *const counters[REFUSAL_COUNT] = {
#define POINTER(name, label, http, grpc, retry_s, text) [REFUSAL_##name] = &count_##name,
	REFUSALS(POINTER)
#undef POINTER
};

static const struct refusal_info infos[REFUSAL_COUNT] = {
#define INFO(name, label, http, grpc, retry_s, text)                                               \
	[REFUSAL_##name] = { http, grpc, (retry_s)*CLOCK_NS_PER_S, text },
	REFUSALS(INFO)
#undef INFO
};

const struct refusal_info *refusal_info(enum refusal refusal)
{
	return &infos[refusal];
}

void refusal_count(enum refusal refusal)
{
	metric_add(counters[refusal], 1);
}

void refusal_register(void)
{
	metrics_register(counters, REFUSAL_COUNT);
}
