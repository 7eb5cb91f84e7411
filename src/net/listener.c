/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listener.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 512
#define PORT_UNPRIVILEGED 1024u
#define TCP_STATE_LISTEN 0x0au /* include/net/tcp_states.h */
#define PROC_NAME_BYTES 64

/*
 * The inode of the socket that listens on `port`, from a table like /proc/net/tcp
 * (Documentation/networking/proc_net_tcp.rst); 0 when there is none.
 */
static uint64_t find_socket(const char *table, unsigned port)
{
	FILE *file = fopen(table, "re");
	uint64_t found = 0;
	char line[512];

	if (!file)
		return 0;
	while (!found && fgets(line, sizeof(line), file)) {
		unsigned local_port, state;
		uint64_t inode;

		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %" SCNu64,
			   &local_port, &state, &inode) == 3 &&
		    state == TCP_STATE_LISTEN && local_port == port)
			found = inode;
	}
	fclose(file);
	return found;
}

/* True if one of the process's descriptors is the socket. */
static bool holds_socket(const char *pid, const char *socket)
{
	char path[PROC_NAME_BYTES + 32];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		char target[PROC_NAME_BYTES];
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (len > 0) {
			target[len] = '\0';
			found = !strcmp(target, socket);
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* "process 123 (nginx)"; false when it cannot be found or seen. */
static bool name_holder(uint64_t inode, char *ret, size_t bytes)
{
	char socket[PROC_NAME_BYTES], path[PROC_NAME_BYTES], comm[PROC_NAME_BYTES] = "?";
	struct dirent *entry;
	bool found = false;
	DIR *proc = opendir("/proc");

	snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", inode);
	while (proc && !found && (entry = readdir(proc))) {
		FILE *file;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !holds_socket(entry->d_name, socket))
			continue;
		found = true;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(comm, sizeof(comm), file))
			comm[strcspn(comm, "\n")] = '\0';
		if (file)
			fclose(file);
		snprintf(ret, bytes, "process %.16s (%s)", entry->d_name, comm);
	}
	if (proc)
		closedir(proc);
	return found;
}

static int taken_error(const char *text, unsigned port, struct err *err)
{
	uint64_t inode = find_socket("/proc/net/tcp", port);
	char holder[2 * PROC_NAME_BYTES];

	if (!inode)
		inode = find_socket("/proc/net/tcp6", port);
	if (inode && name_holder(inode, holder, sizeof(holder)))
		return err_set(err, ERR_BUSY, "listen on \"%s\": address already in use by %s",
			       text, holder);
	return err_set(err, ERR_BUSY,
		       "listen on \"%s\": address already in use (by a process of another user "
		       "or container: run as root to see which, or choose another port)",
		       text);
}

static int bind_error(const char *text, unsigned port, int error_number, struct err *err)
{
	switch (error_number) {
	case EADDRINUSE:
		return taken_error(text, port, err);
	case EADDRNOTAVAIL:
		return err_set(err, ERR_INVALID,
			       "listen on \"%s\": this host has no such address (127.0.0.1 is "
			       "always there; 0.0.0.0 means all)",
			       text);
	case EACCES:
		if (port < PORT_UNPRIVILEGED)
			return err_set(err, ERR_DENIED,
				       "listen on \"%s\": ports below %u need root or "
				       "CAP_NET_BIND_SERVICE; choose a higher one",
				       text, PORT_UNPRIVILEGED);
		break;
	default:
		break;
	}
	return err_set_errno(err, error_number, "listen on \"%s\"", text);
}

/* Tries one socket address. Returns 0 or an error number. */
static int try_listen(const union address_socket *socket_address, int *ret_fd)
{
	const int on = 1;
	int fd = socket(socket_address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int error_number;

	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, &socket_address->any, address_socket_bytes(socket_address)) &&
	    !listen(fd, BACKLOG)) {
		*ret_fd = fd;
		return 0;
	}
	error_number = errno;
	close(fd);
	return error_number;
}

int listener_open(const char *text, int *ret_fd, struct err *err)
{
	union address_socket sockets[ADDRESS_CHOICES_MAX];
	struct address address;
	size_t count;
	int code;

	code = address_parse(slice_of(text), &address, err);
	if (code)
		return err_wrap(err, "listen");
	code = address_resolve(&address, sockets, &count, err);
	if (code)
		return err_wrap(err, "listen on \"%s\"", text);
	code = try_listen(&sockets[0], ret_fd);
	if (code == EAFNOSUPPORT && !address.host[0]) {
		/* A kernel without IPv6: every IPv4 interface, then. */
		snprintf(address.host, sizeof(address.host), "0.0.0.0");
		if (!address_resolve(&address, sockets, &count, NULL))
			code = try_listen(&sockets[0], ret_fd);
	}
	return code ? bind_error(text, address.port, code, err) : 0;
}

unsigned listener_port(int fd)
{
	union address_socket socket_address = { 0 };
	socklen_t bytes = sizeof(socket_address);

	if (getsockname(fd, &socket_address.any, &bytes))
		return 0;
	return address_socket_port(&socket_address);
}
