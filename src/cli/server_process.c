/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "cli/binary_channel.h"
#include "cli/storage_owner.h"
#include "cli/verb.h"
#include "server/resolve/worker/spawner.h"

#define STOP_GRACE_NS (10 * CLOCK_NS_PER_S) /* it has limits of its own; its data is on disk */
#define STOP_LOOK_MS 100

/* What the server says when it has begun. */
struct beginning {
	int code; /* 0, or -enum err_code with its message */
	unsigned port;
	bool has_tls;
	char message[ERR_MESSAGE_BYTES];
};

struct child {
	struct server *server;
	int lent;
};

static void take_binary(void *context, struct slice build_id, struct slice path, int fd)
{
	server_offer_binary(context, build_id, path, fd);
}

static void *take_binaries(void *argument)
{
	struct child *child = argument;

	while (binary_channel_take(child->lent, take_binary, child->server))
		continue;
	return NULL;
}

static void say(int fd, int code, const struct child *child, const struct err *err)
{
	struct beginning report = { .code = code };

	if (code) {
		snprintf(report.message, sizeof(report.message), "%s", err->message);
	} else {
		report.port = server_port(child->server);
		report.has_tls = server_has_tls(child->server);
	}
	(void)!write(fd, &report, sizeof(report)); /* whoever does not listen has ended */
	close(fd);
}

void server_process_reload(struct server *server)
{
	struct err err;

	if (server_reload(server, &err))
		log_error("server", "configuration is invalid; the old one stays in force",
			  "error=\"%s\"", err.message);
}

/* The terminal's Ctrl-C is for who started us: he stops the agent first. */
static void serve_until_asked(struct server *server)
{
	int number;

	while ((number = verb_wait_signal(-1)) != SIGTERM)
		if (number == SIGHUP)
			server_process_reload(server);
}

static _Noreturn void run_child(const struct server_options *options,
				const struct privilege_user *user, int lent, int report_fd,
				pid_t parent)
{
	struct child child = { .lent = lent };
	pthread_t taking;
	struct err err;
	int code;

	prctl(PR_SET_NAME, "firn-server");
	code = spawner_begin(false, &err);
	if (!code)
		code = privilege_enter(PRIVILEGE_SERVER, user, &err);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* after the change of user, which forgets it */
	if (getppid() != parent)
		_exit(VERB_ERROR);
	if (!code)
		code = server_start(options, &child.server, &err);
	if (!code && pthread_create(&taking, NULL, take_binaries, &child))
		code = err_set(&err, ERR_LIMIT, "start the thread that takes binaries");
	say(report_fd, code, &child, &err);
	if (code)
		_exit(VERB_ERROR);
	serve_until_asked(child.server);
	shutdown(lent, SHUT_RD);
	pthread_join(taking, NULL);
	server_stop(child.server);
	_exit(VERB_OK);
}

/* The user that the server will run as; *ret stays unchanged if it is our own. */
static int choose_user(const char *name, struct privilege_user *ret, bool *ret_is_other,
		       struct err *err)
{
	static const char *const usual[] = { "firn", "nobody" };

	*ret_is_other = false;
	if (geteuid()) {
		if (name)
			return err_set(err, ERR_DENIED, "--user \"%s\": only root can choose",
				       name);
		return 0;
	}
	if (name && !privilege_find_user(name, ret))
		return err_set(err, ERR_NOT_FOUND, "--user \"%s\": no such user", name);
	for (size_t i = 0; !name && i < VERB_COUNT_OF(usual) && !*ret_is_other; i++)
		*ret_is_other = privilege_find_user(usual[i], ret);
	if (name)
		*ret_is_other = ret->uid != 0;
	return 0;
}

/* It may read a long log: who is asked to stop meanwhile hands that on, and waits on. */
static void wait_for_report(int fd, pid_t pid)
{
	struct pollfd report = { .fd = fd, .events = POLLIN };
	bool was_told = false;

	while (poll(&report, 1, STOP_LOOK_MS) <= 0) {
		if (!was_told && verb_is_stopping())
			was_told = !kill(pid, SIGTERM);
	}
}

/* Waits for the report; an error when the process ends without one. */
static int take_report(int fd, struct server_process *ret, struct err *err)
{
	struct beginning report;
	ssize_t got;

	wait_for_report(fd, ret->pid);
	while ((got = read(fd, &report, sizeof(report))) < 0 && errno == EINTR)
		continue;
	if (got != (ssize_t)sizeof(report))
		return err_set(err, ERR_UNAVAILABLE, "the server's process died at its start");
	report.message[sizeof(report.message) - 1] = '\0';
	if (report.code)
		return err_set(err, (enum err_code) - report.code, "%s", report.message);
	ret->port = report.port;
	ret->has_tls = report.has_tls;
	return 0;
}

/* Names stay what they are when the server goes into its folder. */
static const char *absolute(const char *path)
{
	char folder[PATH_MAX], *text = NULL;

	if (!path || path[0] == '/' || !getcwd(folder, sizeof(folder)) ||
	    asprintf(&text, "%s/%s", folder, path) < 0)
		return path;
	return text; /* for as long as the process lives */
}

/* The user may not be let in from above (a folder in root's home): then he is let in here. */
static int enter_storage(struct server_options *options, const struct privilege_user *user,
			 struct err *err)
{
	const char **sources = mem_new_array(const char *, options->source_paths_count + 1);
	int fd, code = storage_owner_hand_over(options->storage_path, user, &fd, err);

	if (code) {
		free(sources);
		return code;
	}
	options->config_file = absolute(options->config_file);
	options->web_config_file = absolute(options->web_config_file);
	options->debuginfo_path = absolute(options->debuginfo_path);
	for (size_t i = 0; i < options->source_paths_count; i++)
		sources[i] = absolute(options->source_paths[i]);
	options->source_paths = sources;
	if (!storage_owner_reaches(options->storage_path, user)) {
		if (fchdir(fd))
			code = err_set_errno(err, errno, "enter \"%s\"", options->storage_path);
		options->storage_path = ".";
	}
	close(fd);
	return code;
}

int server_process_confine(struct server_options *options, const char *user_name, struct err *err)
{
	struct privilege_user user = { 0 };
	bool is_other = false;
	int code = 0;

	if (user_name)
		code = choose_user(user_name, &user, &is_other, err);
	if (!code && is_other)
		code = enter_storage(options, &user, err);
	if (!code)
		code = spawner_begin(!is_other, err);
	if (code)
		return code;
	return privilege_enter(is_other || geteuid() ? PRIVILEGE_SERVER : PRIVILEGE_SERVER_OF_ROOT,
			       is_other ? &user : NULL, err);
}

int server_process_start(const struct server_options *options, const char *user_name, int lent,
			 struct server_process *ret, struct err *err)
{
	struct server_options own = *options;
	struct privilege_user user;
	pid_t parent = getpid();
	bool is_other;
	int ends[2], code = choose_user(user_name, &user, &is_other, err);

	if (code)
		return code;
	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "make a pipe");
	ret->pid = fork();
	if (!ret->pid) {
		struct child nobody = { 0 };

		close(ends[0]);
		if (is_other && enter_storage(&own, &user, err)) {
			say(ends[1], -(int)err->code, &nobody, err);
			_exit(VERB_ERROR);
		}
		run_child(&own, is_other ? &user : NULL, lent, ends[1], parent);
	}
	close(ends[1]);
	close(lent);
	if (ret->pid < 0)
		code = err_set_errno(err, errno, "start the server's process");
	else
		code = take_report(ends[0], ret, err);
	close(ends[0]);
	if (code && ret->pid > 0)
		waitpid(ret->pid, NULL, 0);
	if (!code && is_other)
		log_info("up", "the server has no privileges", "uid=%u gid=%u pid=%d",
			 (unsigned)user.uid, (unsigned)user.gid, (int)ret->pid);
	return code;
}

void server_process_stop(struct server_process *process)
{
	int64_t until_ns = clock_monotonic_ns() + STOP_GRACE_NS;

	if (!process->pid)
		return;
	kill(process->pid, SIGTERM);
	while (!waitpid(process->pid, NULL, WNOHANG)) {
		if (clock_monotonic_ns() > until_ns)
			kill(process->pid, SIGKILL);
		verb_wait_signal(100 * CLOCK_NS_PER_MS);
	}
	process->pid = 0;
}
