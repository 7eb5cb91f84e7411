/* SPDX-License-Identifier: Apache-2.0 */
/* firn view - the web page on a profile file; nothing is kept. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/profile_file.h"
#include "server/persist/store.h"
#include "server/server.h"

struct view_verb_options {
	struct verb_common common;
	const char *http_address, *sample_type;
	bool no_browser;
};

#define AT(member) offsetof(struct view_verb_options, member)

static const struct option options[] = {
	OPTION_AT(VIEW_HTTP_ADDRESS, AT(http_address)),
	OPTION_AT(VIEW_SAMPLE_TYPE, AT(sample_type)),
	OPTION_AT(NO_BROWSER, AT(no_browser)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "view",
	.operands = "FILE",
	.summary = "open a profile file in the web page; nothing is stored",
	.details = "Reads what `firn convert` reads, serves the page to this host only until\n"
		   "Ctrl-C, and opens a browser if there is one.\n"
		   "\n"
		   "  firn view cpu.pb.gz\n"
		   "  perf script > perf.txt; firn view perf.txt",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/* A folder in memory where there is one; the profile is in it while the page is looked at. */
static int make_folder(char path[static 64], struct err *err)
{
	static const char *const parents[] = { "/dev/shm", "/tmp" };

	for (size_t i = 0; i < VERB_COUNT_OF(parents); i++) {
		snprintf(path, 64, "%s/firn-view-XXXXXX", parents[i]);
		if (mkdtemp(path))
			return 0;
	}
	return err_set_errno(err, errno, "make a folder in /tmp");
}

static void remove_folder(const char *path)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int put(const char *folder, const struct profile_file *file, struct err *err)
{
	const struct store_options open = { .path = folder, .no_background = true };
	struct append_result result;
	struct store *store;
	int rc = store_open(&open, &store, err);

	if (rc)
		return rc;
	rc = store_append(store, &file->segment.view, &result, err);
	if (!rc && !result.reports_stored)
		rc = err_set(err, ERR_INVALID, "%s", result.refused);
	store_close(store);
	return rc;
}

/* The page with the file's type and range. */
static void make_url(const struct profile_file *file, const char *address, unsigned port,
		     struct strbuf *url)
{
	char text[32];

	strbuf_addf(url, "http://%.*s:%u/", (int)(strrchr(address, ':') - address), address, port);
	ask_add_parameter(url, "query", strbuf_text(&file->type));
	snprintf(text, sizeof(text), "%lld", (long long)(file->params.from_ns / CLOCK_NS_PER_MS));
	ask_add_parameter(url, "from", text);
	snprintf(text, sizeof(text), "%lld", (long long)(file->params.to_ns / CLOCK_NS_PER_MS + 1));
	ask_add_parameter(url, "to", text);
}

static void open_browser(const char *url)
{
	pid_t pid;

	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		return;
	pid = fork();
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp("xdg-open", "xdg-open", url, (char *)NULL);
		_exit(127);
	}
}

static int serve(const struct view_verb_options *values, const char *folder,
		 const struct profile_file *file, struct err *err)
{
	struct server_options start = { .storage_path = folder,
					.http_address = values->http_address,
					.local_files = true };
	struct strbuf url = { 0 };
	struct server *server;
	int number, rc = server_start(&start, &server, err);

	if (rc)
		return rc;
	make_url(file, values->http_address, server_port(server), &url);
	printf("%s\nCtrl-C ends it.\n", strbuf_text(&url));
	fflush(stdout);
	if (!values->no_browser)
		open_browser(strbuf_text(&url));
	do {
		number = verb_wait_signal(-1);
	} while (number != SIGINT && number != SIGTERM && number != SIGHUP);
	server_stop(server);
	strbuf_free(&url);
	return 0;
}

static int view(const struct view_verb_options *values, const char *path, struct err *err)
{
	struct profile_file file = { 0 };
	char folder[64];
	int rc = profile_file_open(&file, path, values->sample_type, NULL, err);

	if (!rc)
		rc = make_folder(folder, err);
	if (!rc) {
		rc = put(folder, &file, err);
		if (!rc)
			rc = serve(values, folder, &file, err);
		remove_folder(folder);
	}
	profile_file_close(&file);
	return rc;
}

static int run(int argc, char **argv)
{
	struct view_verb_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_view, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (operands.count != 1) {
		err_set(&err, ERR_INVALID, "expected one file, for example cpu.pb.gz");
		return verb_error(&verb_view, &err);
	}
	verb_block_signals();
	return view(&values, operands.items[0], &err) ? verb_error(&verb_view, &err) : VERB_OK;
}

const struct verb verb_view = { &spec, run, LOG_WARN };
