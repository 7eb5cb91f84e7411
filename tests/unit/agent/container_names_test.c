/* SPDX-License-Identifier: Apache-2.0 */
/* Names of containers by sockets that answer, hang, lie or are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/identify/container_names.h"

#define ID "3110861908c09e957a039e95a029c734b18763dbbb89d61ca8e062dc0388a6d5"
#define WAIT_NS (60 * CLOCK_NS_PER_S) /* far more than it takes */

/* A socket that answers each connection with the same bytes, or (NULL) never. */
struct peer {
	char folder[32], path[64], source[80];
	const char *answer;
	int listener;
	pthread_t thread;
};

static void *serve(void *data)
{
	struct peer *peer = data;
	char request[4096];
	int fd;

	while ((fd = accept(peer->listener, NULL, NULL)) >= 0) {
		if (peer->answer && read(fd, request, sizeof(request)) > 0)
			(void)!write(fd, peer->answer, strlen(peer->answer));
		else
			while (read(fd, request, sizeof(request)) > 0)
				continue;
		close(fd);
	}
	return NULL;
}

static void peer_start(struct peer *peer, const char *answer)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(peer->folder, sizeof(peer->folder), "/tmp/firn-peer-XXXXXX");
	assert_non_null(mkdtemp(peer->folder));
	snprintf(peer->path, sizeof(peer->path), "%s/s", peer->folder);
	snprintf(peer->source, sizeof(peer->source), "docker:%s", peer->path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", peer->path);
	peer->answer = answer;
	peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(peer->listener, 8), 0);
	assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
}

static void peer_stop(struct peer *peer)
{
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	unlink(peer->path);
	rmdir(peer->folder);
}

static const char good[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			   "Connection: close\r\nContent-Length: 98\r\n\r\n"
			   "{\"Id\":\"" ID "\",\"Name\":\"/burner\"}        ";
static const char unknown[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
static const char garbage[] = "\x16\x03\x01 what is this\r\n\r\n";
static const char endless[] = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{";

static struct container_names *names_of(const char *first, const char *second)
{
	const char *sources[] = { first, second };
	struct container_names *names;

	assert_int_equal(container_names_new(sources, second ? 2 : 1, &names, NULL), 0);
	return names;
}

static void want(struct container_names *names, int64_t now_ns)
{
	container_names_want(names, slice_of(ID), CGROUP_RUNTIME_UNKNOWN, now_ns);
}

static void assert_name(struct container_names *names, const char *name)
{
	struct meta_labels labels = { 0 };

	assert_int_equal(container_names_find(names, slice_of(ID), &labels), name[0] != '\0');
	assert_true(slice_is(meta_labels_find(&labels, "__meta_docker_container_name"), name));
	meta_labels_free(&labels);
}

/* Asked for again where a slow host's 2 s were over. Returns when it was asked for last. */
static int64_t find_name(struct container_names *names)
{
	struct meta_labels labels = { 0 };
	int64_t now_ns;

	for (;;) {
		now_ns = clock_monotonic_ns();
		want(names, now_ns);
		container_names_settle(names, WAIT_NS);
		if (container_names_find(names, slice_of(ID), &labels))
			break;
		poll(NULL, 0, 5);
	}
	meta_labels_free(&labels);
	return now_ns;
}

static void a_container_has_its_name_until_long_after_its_end(void **state)
{
	struct container_names *names;
	struct peer peer;
	int64_t now_ns;

	(void)state;
	peer_start(&peer, good);
	names = names_of(peer.source, NULL);
	now_ns = find_name(names);
	assert_name(names, "burner");
	peer_stop(&peer); /* the runtime ends, too */
	container_names_sweep(names, now_ns + 599 * CLOCK_NS_PER_S);
	assert_name(names, "burner");
	container_names_sweep(names, now_ns + 601 * CLOCK_NS_PER_S);
	assert_name(names, "");
	container_names_free(names);
}

static void a_socket_that_hangs_is_given_up_and_others_answer(void **state)
{
	int64_t now_ns = clock_monotonic_ns();
	struct container_names *names;
	struct peer hung, fine;
	struct meta_labels labels = { 0 };

	(void)state;
	peer_start(&hung, NULL);
	peer_start(&fine, good);
	names = names_of(hung.source, fine.source);
	want(names, clock_monotonic_ns());
	while (!container_names_find(names, slice_of(ID), &labels)) {
		poll(NULL, 0, 5);
		want(names, clock_monotonic_ns()); /* after 2 s it would not be tried again */
	}
	meta_labels_free(&labels);
	assert_false(container_names_is_pending(names, clock_monotonic_ns()));
	container_names_free(names);

	names = names_of(hung.source, NULL);
	want(names, now_ns);
	assert_true(container_names_is_pending(names, now_ns));
	container_names_settle(names, WAIT_NS); /* ends by itself */
	assert_name(names, "");
	/* Meanwhile it is left alone: nothing waits for another container. */
	container_names_want(names, SLICE_LITERAL("another"), CGROUP_RUNTIME_UNKNOWN,
			     clock_monotonic_ns());
	container_names_settle(names, WAIT_NS);
	container_names_free(names);
	peer_stop(&hung);
	peer_stop(&fine);
}

static void lies_and_absence_give_no_name(void **state)
{
	static const char *const answers[] = { unknown, garbage, endless };

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct container_names *names;
		struct peer peer;

		peer_start(&peer, answers[i]);
		names = names_of(peer.source, "cri:/nowhere/at/all.sock");
		want(names, clock_monotonic_ns());
		container_names_settle(names, WAIT_NS);
		assert_name(names, "");
		container_names_free(names);
		peer_stop(&peer);
	}
}

static void sockets_are_checked(void **state)
{
	static const char *const bad[] = { "", "docker:", "cri:relative/path", "tcp://1.2.3.4" };
	struct container_names *names;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(container_names_new(&bad[i], 1, &names, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_has_its_name_until_long_after_its_end),
		cmocka_unit_test(a_socket_that_hangs_is_given_up_and_others_answer),
		cmocka_unit_test(lies_and_absence_give_no_name),
		cmocka_unit_test(sockets_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
