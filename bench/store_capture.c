/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_capture - keeps what agents send: an OTLP server that writes every request to a file, for
 * store_model to make a workload of.
 *
 *     store_capture ADDRESS FILE        until SIGINT or SIGTERM
 *
 * The file is a run of requests (bench/requests.h).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/requests.h"
#include "net/server.h"

#define OTLP_SERVICE "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/"
#define BODY_BYTES_MAX ((size_t)128 << 20)

struct capture {
	pthread_mutex_t lock; /* guards the file */
	FILE *file;
};

static void keep(void *context, const struct net_request *request, struct net_response *response)
{
	struct capture *capture = context;

	pthread_mutex_lock(&capture->lock);
	requests_write(capture->file, &(struct requests_item){ .body = request->body });
	fflush(capture->file);
	pthread_mutex_unlock(&capture->lock);
	response->content_type = "application/x-protobuf";
}

int main(int argc, char **argv)
{
	struct capture capture = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct net_route routes[] = {
		{ "POST", OTLP_SERVICE "Export", keep, &capture, BODY_BYTES_MAX, NULL, 0 },
		{ "POST", "/v1development/profiles", keep, &capture, BODY_BYTES_MAX, NULL, 0 },
	};
	struct net_server_options options = { .routes = routes, .routes_count = 2, .workers = 2 };
	struct net_server *server;
	struct err err;
	sigset_t set;
	int number;

	if (argc != 3) {
		fprintf(stderr, "usage: store_capture ADDRESS FILE\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	options.address = argv[1];
	capture.file = fopen(argv[2], "ab");
	if (!capture.file) {
		perror("store_capture: open the file");
		return 2;
	}
	if (net_server_start(&options, &server, &err)) {
		fprintf(stderr, "store_capture: %s\n", err.message);
		return 2;
	}
	sigwait(&set, &number);
	net_server_stop(server, CLOCK_NS_PER_S);
	return fclose(capture.file) ? 2 : 0;
}
