/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/traffic.h"

#include "base/metrics.h"
#include "net/http/response.h"

/* X(index, protocol): the index is NET_HTTP1 or NET_HTTP2, or 1 + the kind of call. */
#define PROTOCOLS(X) X(0, "http1") X(1, "http2") X(2, "grpc") X(3, "grpc_web") X(4, "grpc_web_text")
#define PROTOCOLS_COUNT 5
#define CLASSES_COUNT 4 /* 2xx to 5xx */

#define COUNTER(protocol, class)                                                                   \
	{                                                                                          \
		METRIC_TYPE_COUNTER, "firn_net_requests_total",                                    \
			"{protocol=\"" protocol "\",class=\"" class "\"}",                         \
			"Requests answered, by protocol and class of status (gRPC statuses by "    \
			"their HTTP likes).",                                                      \
			1.0, 0                                                                     \
	}
#define COUNTERS(index, protocol)                                                                  \
	[index] = { COUNTER(protocol, "2xx"), COUNTER(protocol, "3xx"), COUNTER(protocol, "4xx"),  \
		    COUNTER(protocol, "5xx") },
static struct metric requests[PROTOCOLS_COUNT][CLASSES_COUNT] = { PROTOCOLS(COUNTERS) };

static METRIC_COUNTER(received_bytes, "firn_net_received_bytes_total", "",
		      "Bytes received on the listener's connections.");
static METRIC_COUNTER(sent_bytes, "firn_net_sent_bytes_total", "",
		      "Bytes sent on the listener's connections.");
static METRIC_COUNTER(connections_opened, "firn_net_connections_opened_total", "",
		      "Connections accepted.");
static METRIC_COUNTER(connections_evicted, "firn_net_connections_evicted_total", "",
		      "Idle connections closed to make room for new ones.");
static METRIC_GAUGE(connections_open, "firn_net_connections", "", "Connections open now.");
static METRIC_GAUGE(inflight_bytes, "firn_net_inflight_bytes", "",
		    "Bytes of requests and answers in memory.");
static METRIC_GAUGE(handlers_running, "firn_net_handlers_running", "", "Handlers running now.");
void traffic_register(void)
{
	static struct metric *const singles[] = { &received_bytes,	&sent_bytes,
						  &connections_opened,	&connections_open,
						  &connections_evicted, &inflight_bytes,
						  &handlers_running };

	for (size_t i = 0; i < PROTOCOLS_COUNT; i++) {
		for (size_t j = 0; j < CLASSES_COUNT; j++) {
			struct metric *metric = &requests[i][j];

			metrics_register(&metric, 1);
		}
	}
	metrics_register(singles, sizeof(singles) / sizeof(singles[0]));
}

void traffic_count_answer(const struct net_request *request, const struct net_response *response)
{
	bool is_rpc = request->rpc != NET_RPC_NONE;
	size_t protocol = is_rpc ? 1 + (size_t)request->rpc : (size_t)request->protocol;
	int status = is_rpc ? response_http_of_grpc(response->grpc_status) : response->status;
	int class = status / 100 - 2;

	if (class >= 0 && class < CLASSES_COUNT)
		metric_add(&requests[protocol][class], 1);
}

void traffic_add_handler(int change)
{
	metric_add(&handlers_running, change);
}

void traffic_add_connection(int change)
{
	metric_add(&connections_open, change);
	if (change > 0)
		metric_add(&connections_opened, change);
}

void traffic_count_evicted(void)
{
	metric_add(&connections_evicted, 1);
}

void traffic_set_inflight(int64_t bytes)
{
	metric_set(&inflight_bytes, bytes);
}

void traffic_count_received(size_t bytes)
{
	metric_add(&received_bytes, (int64_t)bytes);
}

void traffic_count_sent(size_t bytes)
{
	metric_add(&sent_bytes, (int64_t)bytes);
}
