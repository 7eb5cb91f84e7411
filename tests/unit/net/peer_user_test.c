/* SPDX-License-Identifier: Apache-2.0 */
/* Real connections over loopback: the kernel says whose they are, while they are. */
#include "net/peer_user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_UID 54321u

struct pair {
	int listener, client, server;
	unsigned port; /* that is listened on */
	char peer[64]; /* the client's end */
};

static int address_of(int family, unsigned port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
	if (family == AF_INET) {
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		v4->sin_port = htons((uint16_t)port);
		return sizeof(*v4);
	}
	v6->sin6_addr = in6addr_loopback;
	v6->sin6_port = htons((uint16_t)port);
	return sizeof(*v6);
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	return ntohs(own.ss_family == AF_INET ? ((struct sockaddr_in *)&own)->sin_port
					      : ((struct sockaddr_in6 *)&own)->sin6_port);
}

/* False where the host has no such family. */
static bool connect_pair(int family, struct pair *ret)
{
	struct sockaddr_storage address;
	socklen_t len = (socklen_t)address_of(family, 0, &address);

	ret->listener = socket(family, SOCK_STREAM, 0);
	ret->client = socket(family, SOCK_STREAM, 0);
	if (ret->listener < 0 || bind(ret->listener, (struct sockaddr *)&address, len))
		return false;
	assert_int_equal(listen(ret->listener, 1), 0);
	ret->port = port_of(ret->listener);
	len = (socklen_t)address_of(family, ret->port, &address);
	assert_int_equal(connect(ret->client, (struct sockaddr *)&address, len), 0);
	ret->server = accept(ret->listener, NULL, NULL);
	assert_true(ret->server >= 0);
	snprintf(ret->peer, sizeof(ret->peer), family == AF_INET ? "127.0.0.1:%u" : "[::1]:%u",
		 port_of(ret->client));
	return true;
}

static void close_pair(const struct pair *pair)
{
	close(pair->listener);
	close(pair->client);
	close(pair->server);
}

static void a_peer_is_known_while_it_is_connected(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };

	(void)state;
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		struct pair pair = { -1, -1, -1, 0, "" };
		uid_t uid = OTHER_UID;

		if (!connect_pair(families[i], &pair))
			continue;
		assert_true(peer_user_find(slice_of(pair.peer), pair.port, &uid));
		assert_int_equal(uid, geteuid());
		assert_false(peer_user_find(slice_of(pair.peer), pair.port + 1, &uid));
		/* What has no owner any more says that it is root's. */
		assert_int_equal(shutdown(pair.client, SHUT_WR), 0);
		assert_false(peer_user_find(slice_of(pair.peer), pair.port, &uid));
		close_pair(&pair);
	}
}

static void a_peer_of_another_user_is_his(void **state)
{
	struct pair pair = { -1, -1, -1, 0, "" };
	uid_t uid = 0;
	pid_t child;
	int status;

	(void)state;
	if (geteuid())
		skip();
	child = fork();
	if (!child) { /* a socket is of who made it */
		if (setresuid(OTHER_UID, OTHER_UID, OTHER_UID) || !connect_pair(AF_INET, &pair))
			_exit(2);
		_exit(peer_user_find(slice_of(pair.peer), pair.port, &uid) && uid == OTHER_UID ? 0
											       : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void what_is_no_loopback_address_is_nobodys(void **state)
{
	static const char *const texts[] = {
		"",
		":",
		"127.0.0.1",
		"10.0.0.1:80",
		"[fe80::1]:80",
		"[::1]",
		"[::1:80",
		"unix:80",
		"127.0.0.1:x",
		"]:1",
		"[]:1",
		"[0000:0000:0000:0000:0000:0000:0000:0001:0000:0000]:1"
	};
	uid_t uid = OTHER_UID;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(peer_user_find(slice_of(texts[i]), 80, &uid));
	assert_int_equal(uid, OTHER_UID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_is_known_while_it_is_connected),
		cmocka_unit_test(a_peer_of_another_user_is_his),
		cmocka_unit_test(what_is_no_loopback_address_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
