/* SPDX-License-Identifier: Apache-2.0 */
#include "net/peer_user.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TCP_STATE_ESTABLISHED 0x01u /* include/net/tcp_states.h */
#define ADDRESS_DIGITS 32	    /* of IPv6: words of the machine's own order, in hex */

struct peer {
	char digits[ADDRESS_DIGITS + 1];
	unsigned port;
	bool is_v6;
};

static void write_words(const uint32_t *words, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++)
		snprintf(out + 8 * i, 9, "%08" PRIX32, words[i]);
}

/* As the table writes it; false for what is no loopback address and port. */
static bool parse_peer(struct slice text, struct peer *ret)
{
	char host[INET6_ADDRSTRLEN + 3], *address = host, *colon;
	struct in6_addr v6;
	struct in_addr v4;

	if (text.len >= sizeof(host) + 6)
		return false;
	snprintf(host, sizeof(host), "%.*s", SLICE_FMT(text));
	colon = strrchr(host, ':');
	if (!colon || sscanf(colon + 1, "%5u", &ret->port) != 1)
		return false;
	*colon = '\0';
	if (host[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		address++;
	}
	ret->is_v6 = strchr(address, ':');
	if (!ret->is_v6 && inet_pton(AF_INET, address, &v4) == 1) {
		write_words(&v4.s_addr, 1, ret->digits);
		return (ntohl(v4.s_addr) >> 24) == 127;
	}
	if (!ret->is_v6 || inet_pton(AF_INET6, address, &v6) != 1)
		return false;
	write_words(v6.s6_addr32, 4, ret->digits);
	return IN6_IS_ADDR_LOOPBACK(&v6);
}

/* A socket that nobody holds any more has no inode, and says that it is root's. */
static bool is_peer(const char *line, const struct peer *peer, unsigned own_port, uid_t *ret)
{
	char digits[ADDRESS_DIGITS + 1];
	unsigned port, remote_port, state, uid;
	uint64_t inode;

	if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*s %*s %*s %u %*s %" SCNu64,
		   digits, &port, &remote_port, &state, &uid, &inode) != 6)
		return false;
	*ret = uid;
	return state == TCP_STATE_ESTABLISHED && inode && port == peer->port &&
	       remote_port == own_port && !strcmp(digits, peer->digits);
}

bool peer_user_find(struct slice text, unsigned own_port, uid_t *ret)
{
	struct peer peer;
	bool is_found = false;
	char line[512];
	uid_t uid = 0;
	FILE *file;

	if (!parse_peer(text, &peer))
		return false;
	file = fopen(peer.is_v6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	if (!file)
		return false;
	while (!is_found && fgets(line, sizeof(line), file))
		is_found = is_peer(line, &peer, own_port, &uid);
	fclose(file);
	if (is_found)
		*ret = uid;
	return is_found;
}
