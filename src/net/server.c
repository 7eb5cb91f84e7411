/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: one loop thread that owns the listener and all connections, and the pools: queries
 * have one of their own, so that nothing else waits behind them.
 *
 * Other threads reach the loop through one uv_async_t only: a worker when requests are finished,
 * net_server_stop when it is time. Stopping closes the listener and lets every connection finish;
 * when the last one is gone, or the grace is over, the loop closes its own handles and ends, and
 * only then the workers are joined. So a handler that runs on after its connection has gone still
 * finds the server alive.
 */
#include "net/server.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process_metrics.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/pool.h"
#include "net/http/traffic.h"

#define WORKERS_MIN 8 /* a write waits for the disk in its worker */
#define WORKERS_MAX 16
#define QUEUE_MAX 1024u /* requests that wait for a worker */
#define INFLIGHT_BYTES_DEFAULT ((size_t)256 * 1024 * 1024)
#define CONNECTIONS_DEFAULT 1024u
#define PEER_SHARE 3u /* of the connections that one peer may have, over PEER_SHARE_OF */
#define PEER_SHARE_OF 4u
#define ACCEPTED_PER_ITERATION 16u
#define TURNED_AWAY_MAX 64u /* connections over the limit that still get an answer */
#define IDLE_TIMEOUT_DEFAULT_NS (300 * CLOCK_NS_PER_S)
#define TICK_MS 250u

struct net_server {
	struct http_service service;
	struct conn_owner owner;
	struct pool *pool;
	struct pool *askers; /* for those whose role is to query; NULL where no route has it */
	unsigned connections_max;
	unsigned port;

	/* The loop thread's. */
	uv_loop_t loop;
	uv_tcp_t listener;
	uv_async_t wake;
	uv_timer_t ticker;
	uv_prepare_t iteration; /* begins an iteration of the loop */
	unsigned accepted_in_iteration;
	bool has_unaccepted; /* libuv has one more, and waits until it is taken */
	struct conn *conns;
	unsigned conns_count;
	bool is_stopping, is_closing;
	int64_t stop_at_ns;

	pthread_t thread;
	_Atomic bool stop_asked;
	int64_t grace_ns; /* written before stop_asked */
};

static struct net_server *server_of(struct conn_owner *owner)
{
	return (struct net_server *)((char *)owner - offsetof(struct net_server, owner));
}

static void close_handles(struct net_server *server)
{
	if (server->is_closing)
		return;
	server->is_closing = true;
	uv_close((uv_handle_t *)&server->wake, NULL);
	uv_close((uv_handle_t *)&server->ticker, NULL);
	uv_close((uv_handle_t *)&server->iteration, NULL);
}

static void on_conn_closed(struct conn_owner *owner, struct conn *conn)
{
	struct net_server *server = server_of(owner);

	if (conn->previous)
		conn->previous->next = conn->next;
	else
		server->conns = conn->next;
	if (conn->next)
		conn->next->previous = conn->previous;
	server->conns_count--;
	if (server->is_stopping && !server->conns)
		close_handles(server);
}

static bool on_submit(struct engine_host *host, struct exchange *exchange)
{
	struct conn *conn = (struct conn *)((char *)host - offsetof(struct conn, host));

	bool asks = exchange->route && exchange->route->role == NET_ROLE_QUERY;
	struct net_server *server = server_of(conn->owner);

	return pool_submit(asks ? server->askers : server->pool, exchange);
}

/* What is open besides a newcomer, and which of it could go: NULL where nothing is idle. */
struct census {
	unsigned open, of_peer;
	struct conn *idle, *idle_of_peer;
};

static struct conn *older(struct conn *a, struct conn *b)
{
	return !a || conn_idle_since(b) < conn_idle_since(a) ? b : a;
}

static struct census take_census(const struct net_server *server, const struct conn *newcomer)
{
	struct census census = { 0 };

	for (struct conn *conn = server->conns; conn; conn = conn->next) {
		bool is_idle = conn_idle_since(conn) != INT64_MAX;
		bool is_same = !memcmp(&conn->network, &newcomer->network, sizeof(conn->network));

		if (conn == newcomer || conn->phase == CONN_CLOSING)
			continue;
		census.open++;
		census.of_peer += is_same;
		if (is_idle)
			census.idle = older(census.idle, conn);
		if (is_idle && is_same)
			census.idle_of_peer = older(census.idle_of_peer, conn);
	}
	return census;
}

/*
 * True if there is room for a newcomer, after the connection that has been idle longest made some
 * if need be: of its own peer, where that has its share. So nobody is locked out by connections
 * that ask nothing.
 */
static bool make_room(struct net_server *server, const struct conn *newcomer)
{
	unsigned share = server->connections_max / PEER_SHARE_OF * PEER_SHARE;
	struct conn *victim = NULL;
	struct census census;

	if (server->conns_count <= share)
		return true;
	census = take_census(server, newcomer);
	if (census.of_peer >= share)
		victim = census.idle_of_peer;
	else if (census.open >= server->connections_max)
		victim = census.idle;
	else
		return true;
	if (!victim)
		return false;
	traffic_count_evicted();
	conn_stop(victim); /* says so, where the protocol has words for it */
	conn_close(victim);
	return true;
}

static void on_tick(uv_timer_t *ticker)
{
	struct net_server *server = ticker->data;
	bool is_over = server->is_stopping && clock_monotonic_ns() >= server->stop_at_ns;

	traffic_set_inflight(atomic_load(&server->service.budget.used_bytes));
	for (struct conn *conn = server->conns; conn; conn = conn->next) {
		if (is_over)
			conn_close(conn);
		else
			conn_tick(conn);
	}
	if (!server->conns)
		uv_timer_stop(ticker);
}

/* While there are connections: a server that nobody asks sleeps. */
static void begin_ticks(struct net_server *server)
{
	traffic_set_inflight(atomic_load(&server->service.budget.used_bytes));
	uv_timer_start(&server->ticker, on_tick, TICK_MS, TICK_MS);
}

static void accept_one(struct net_server *server)
{
	struct conn *conn = conn_accept((uv_stream_t *)&server->listener, &server->owner);

	if (!server->conns)
		begin_ticks(server);
	server->accepted_in_iteration++;
	server->conns_count++;
	conn->next = server->conns;
	if (conn->next)
		conn->next->previous = conn;
	server->conns = conn;
	if (conn->phase == CONN_CLOSING)
		return;
	if (make_room(server, conn)) {
		conn_begin(conn);
	} else if (server->conns_count <= server->connections_max + TURNED_AWAY_MAX) {
		conn_turn_away(conn, REFUSAL_CONNECTIONS);
	} else {
		refusal_count(REFUSAL_CONNECTIONS);
		conn_close(conn);
	}
}

/*
 * Only so many at a time: where somebody connects faster than connections are accepted, those that
 * are there would never be read.
 */
static void on_connection(uv_stream_t *listener, int status)
{
	struct net_server *server = listener->data;

	if (status)
		refusal_count(REFUSAL_CONNECTIONS);
	else if (server->accepted_in_iteration >= ACCEPTED_PER_ITERATION)
		server->has_unaccepted = true;
	else
		accept_one(server);
}

static void on_iteration(uv_prepare_t *iteration)
{
	struct net_server *server = iteration->data;

	server->accepted_in_iteration = 0;
	if (!server->has_unaccepted || server->is_stopping)
		return;
	server->has_unaccepted = false;
	accept_one(server);
}

/* Hands answers to their engines; then each connection sends what it has, once. */
static void take_answers(struct pool *pool)
{
	struct exchange *exchange = pool_take_finished(pool);
	struct conn *dirty = NULL;

	while (exchange) {
		struct exchange *next = exchange->queue_next;
		struct conn *conn;

		if (!exchange->engine) {
			exchange_free(exchange);
			exchange = next;
			continue;
		}
		conn = conn_of_engine(exchange->engine);
		conn->host.now_ns = clock_monotonic_ns();
		exchange->engine->ops->answer(exchange->engine, exchange);
		if (!conn->is_dirty) {
			conn->is_dirty = true;
			conn->dirty_next = dirty;
			dirty = conn;
		}
		exchange = next;
	}
	for (; dirty; dirty = dirty->dirty_next) {
		dirty->is_dirty = false;
		conn_run(dirty);
	}
}

/* Lets bodies go on that waited for the budget. */
static void unpark(struct net_server *server)
{
	if (!server->owner.has_parked || budget_is_tight(&server->service.budget))
		return;
	server->owner.has_parked = false;
	for (struct conn *conn = server->conns; conn; conn = conn->next)
		if (conn->engine && conn->engine->is_parked)
			conn_tick(conn);
}

static void begin_stop(struct net_server *server)
{
	server->is_stopping = true;
	server->stop_at_ns = clock_monotonic_ns() + server->grace_ns;
	uv_close((uv_handle_t *)&server->listener, NULL);
	for (struct conn *conn = server->conns; conn; conn = conn->next)
		conn_stop(conn);
	if (!server->conns)
		close_handles(server);
}

static void on_wake(uv_async_t *wake)
{
	struct net_server *server = wake->data;

	take_answers(server->pool);
	if (server->askers)
		take_answers(server->askers);
	unpark(server);
	if (atomic_load(&server->stop_asked) && !server->is_stopping)
		begin_stop(server);
}

static void *run_loop(void *context)
{
	struct net_server *server = context;

	pthread_setname_np(pthread_self(), "firn-http-loop");
	uv_run(&server->loop, UV_RUN_DEFAULT);
	return NULL;
}

static void on_finished(void *context)
{
	struct net_server *server = context;

	uv_async_send(&server->wake);
}

static unsigned default_workers(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < WORKERS_MIN)
		return WORKERS_MIN;
	return cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned)cpus;
}

static struct net_server *new_server(const struct net_server_options *options)
{
	struct net_server *server = mem_new(struct net_server);

	server->service.routes = options->routes;
	server->service.routes_count = options->routes_count;
	server->service.durations = durations_new(options->routes, options->routes_count);
	server->service.authorize = options->authorize;
	server->service.authorize_context = options->authorize_context;
	server->service.hosts = options->hosts;
	server->service.headers = options->headers;
	server->service.path_prefix = options->path_prefix;
	server->service.budget.max_bytes =
		(int64_t)(options->inflight_bytes_max ? options->inflight_bytes_max
						      : INFLIGHT_BYTES_DEFAULT);
	server->service.budget.parent = options->memory;
	if (options->memory && options->memory->max_bytes < server->service.budget.max_bytes)
		server->service.budget.max_bytes = options->memory->max_bytes;
	server->service.answers.max_bytes =
		server->service.budget.max_bytes / SERVICE_ANSWERS_SHARE;
	server->service.answers.parent = &server->service.budget;
	server->connections_max =
		options->connections_max ? options->connections_max : CONNECTIONS_DEFAULT;
	server->owner = (struct conn_owner){
		.service = &server->service,
		.idle_timeout_ns = options->idle_timeout_ns ? options->idle_timeout_ns
							    : IDLE_TIMEOUT_DEFAULT_NS,
		.read_buffer = mem_calloc(CONN_READ_BYTES, 1),
		.submit = on_submit,
		.closed = on_conn_closed,
		.tls = options->tls,
		.tls_context = options->tls_context,
	};
	return server;
}

static void free_server(struct net_server *server)
{
	durations_free(server->service.durations);
	free(server->owner.read_buffer);
	free(server);
}

/* Makes the loop and its handles. On failure nothing is left of them. */
static int open_loop(struct net_server *server, int fd, struct err *err)
{
	int code = uv_loop_init(&server->loop);

	if (code) {
		close(fd);
		return err_set(err, ERR_IO, "start the event loop: %s", uv_strerror(code));
	}
	uv_tcp_init(&server->loop, &server->listener);
	uv_async_init(&server->loop, &server->wake, on_wake);
	uv_timer_init(&server->loop, &server->ticker);
	uv_prepare_init(&server->loop, &server->iteration);
	server->listener.data = server->wake.data = server->ticker.data = server;
	server->iteration.data = server;
	code = uv_tcp_open(&server->listener, fd);
	if (code)
		close(fd);
	if (!code)
		code = uv_listen((uv_stream_t *)&server->listener, SOMAXCONN, on_connection);
	if (!code)
		code = uv_prepare_start(&server->iteration, on_iteration);
	if (code)
		err_set(err, ERR_IO, "listen: %s", uv_strerror(code));
	return code ? -ERR_IO : 0;
}

/* For a loop that never ran in its thread. */
static void close_loop(struct net_server *server)
{
	uv_close((uv_handle_t *)&server->listener, NULL);
	close_handles(server);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
}

static int start_thread(struct net_server *server, struct err *err)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);	  /* signals are the main thread's; a blocked SIGPIPE is an EPIPE */
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&server->thread, NULL, run_loop, server);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code ? err_set_errno(err, code, "start the event loop's thread") : 0;
}

static bool has_queries(const struct net_server_options *options)
{
	for (size_t i = 0; i < options->routes_count; i++)
		if (options->routes[i].role == NET_ROLE_QUERY)
			return true;
	return false;
}

int net_server_start(const struct net_server_options *options, struct net_server **ret,
		     struct err *err)
{
	unsigned workers = options->workers ? options->workers : default_workers();
	struct net_server *server;
	int fd, code;

	code = listener_open(options->address, &fd, err);
	if (code)
		return code;
	process_metrics_register();
	traffic_register();
	refusal_register();
	server = new_server(options);
	server->port = listener_port(fd);
	code = open_loop(server, fd, err);
	if (code) {
		free_server(server);
		return code;
	}
	code = pool_start(workers, QUEUE_MAX, on_finished, server, &server->pool, err);
	if (!code && has_queries(options))
		code = pool_start(NET_SERVER_ASKERS, QUEUE_MAX, on_finished, server,
				  &server->askers, err);
	if (!code)
		code = start_thread(server, err);
	if (code) {
		close_loop(server);
		pool_stop(server->pool);
		pool_stop(server->askers);
		free_server(server);
		return code;
	}
	*ret = server;
	return 0;
}

unsigned net_server_port(const struct net_server *server)
{
	return server->port;
}

void net_server_stop(struct net_server *server, int64_t grace_ns)
{
	if (!server)
		return;
	server->grace_ns = grace_ns;
	atomic_store(&server->stop_asked, true);
	uv_async_send(&server->wake);
	pthread_join(server->thread, NULL);
	pool_stop(server->pool);
	pool_stop(server->askers);
	uv_loop_close(&server->loop);
	free_server(server);
}
