/* SPDX-License-Identifier: Apache-2.0 */
/* firn debuginfo - sends files with symbols to a server, and lists what it has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/export/debuginfo_client.h"
#include "base/printable.h"
#include "cli/output_file.h"
#include "cli/flags/client_flags.h"
#include "cli/source_archive.h"
#include "cli/verb.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/read/split_pack.h"

#define LIST_BYTES_MAX ((size_t)1 << 30)
#define CALL_TIMEOUT_NS (30 * CLOCK_NS_PER_S)
#define ATTEMPTS_MAX 6
#define PAUSE_NS (500 * CLOCK_NS_PER_MS)
#define BUSY_WAIT_NS (120 * CLOCK_NS_PER_S) /* for somebody else's upload of the same file */
#define PROGRESS_NS (200 * CLOCK_NS_PER_MS)

struct debuginfo_verb_options {
	struct verb_common common;
	struct client_flags client;
	struct option_list sources;
	bool force;
	bool json;
};

#define AT(member) offsetof(struct debuginfo_verb_options, member)

static const struct option upload_options[] = {
	CLIENT_FLAGS_OPTIONS(struct debuginfo_verb_options),
	OPTION_AT(FORCE, AT(force)),
	OPTION_AT(SOURCE, AT(sources)),
	VERB_COMMON_OPTIONS,
};

static const struct option list_options[] = {
	CLIENT_FLAGS_OPTIONS(struct debuginfo_verb_options),
	OPTION_AT(JSON, AT(json)),
	VERB_COMMON_OPTIONS,
};

static const struct option fetch_options[] = {
	CLIENT_FLAGS_OPTIONS(struct debuginfo_verb_options),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb fetch_spec = {
	.name = "debuginfo fetch",
	.operands = "yes|no",
	.summary =
		"let `firn up` ask the distribution's debuginfod servers for missing names, or not",
	.details =
		"`firn up` offers the servers of this host's distribution (/etc/debuginfod,\n"
		"/etc/os-release) and asks them for nothing before somebody has consented. They\n"
		"learn the build ids of the programs that names are missing of. The answer is\n"
		"remembered; the other one may be given at any time. The web page asks, too.\n\n"
		"  firn debuginfo fetch yes",
	.options = fetch_options,
	.options_count = VERB_COUNT_OF(fetch_options),
};

static const struct option_verb upload_spec = {
	.name = "debuginfo upload",
	.operands = "FILE...",
	.summary = "send programs and debug files to a server, so that frames have names",
	.details =
		"FILE is an ELF program, library or separate debug file. Its build id links it\n"
		"to profiles, also to those stored before. Split DWARF is sent with it:\n"
		"FILE.dwp beside FILE, or the .dwo files that it names. Files that the server\n"
		"already has are not sent again.\n"
		"\n"
		"--source sends source files to be shown beside profiles: the text files of DIR\n"
		"under their absolute paths, or a tar file (plain, gz, zst, xz), for the build\n"
		"id of each FILE.\n"
		"\n"
		"  objcopy --only-keep-debug app app.debug && strip app\n"
		"  firn debuginfo upload --server http://firn:7070 --source src app.debug\n"
		"\n"
		"Exits 0 when the server has all files.",
	.options = upload_options,
	.options_count = VERB_COUNT_OF(upload_options),
};

static const struct option_verb list_spec = {
	.name = "debuginfo list",
	.operands = "",
	.summary = "list the debug files that a server has",
	.details = "Lists build ids, files and the quality of their symbols, then uploads in\n"
		   "progress, requests to debuginfod servers, and build ids that queries needed\n"
		   "but did not find, with the reason.\n"
		   "\n"
		   "The quality is the best source of names in a file: debug_info (DWARF),\n"
		   "some_debug_info (DWARF for a small part of the code), symtab, gopclntab,\n"
		   "gnu_debugdata, dynsym or nothing. To add what is missing, use `firn debuginfo\n"
		   "upload FILE`.",
	.options = list_options,
	.options_count = VERB_COUNT_OF(list_options),
};

static bool may_retry(int rc)
{
	return rc == -ERR_UNAVAILABLE || rc == -ERR_BUSY || rc == -ERR_DEADLINE || rc == -ERR_IO;
}

/* What was cut off begins anew; somebody else's upload of the same file is waited for. */
static int send_file(struct net_client *client, const struct debuginfo_client_file *file,
		     char ret_build_id[ELF_BUILD_ID_TEXT_BYTES], bool *ret_present, struct err *err)
{
	int64_t give_up_at_ns = clock_monotonic_ns() + BUSY_WAIT_NS;
	int64_t pause_ns = PAUSE_NS;

	for (int attempt = 1;;) {
		struct timespec pause = { pause_ns / CLOCK_NS_PER_S, pause_ns % CLOCK_NS_PER_S };
		int rc = debuginfo_client_send(client, file, ret_build_id, ret_present, err);

		if (!may_retry(rc) || clock_monotonic_ns() > give_up_at_ns)
			return rc;
		if (rc != -ERR_BUSY && attempt++ == ATTEMPTS_MAX)
			return rc;
		nanosleep(&pause, NULL);
		if (rc != -ERR_BUSY)
			pause_ns *= 2;
	}
}

struct progress {
	const char *path;
	int64_t told_at_ns;
};

static bool tell_progress(void *context, uint64_t sent, uint64_t total)
{
	struct progress *progress = context;
	int64_t now_ns = clock_monotonic_ns();

	if (!isatty(STDERR_FILENO) || (sent < total && now_ns - progress->told_at_ns < PROGRESS_NS))
		return true;
	progress->told_at_ns = now_ns;
	fputc('\r', stderr);
	printable_print(stderr, "%s", progress->path);
	fprintf(stderr, ": %llu of %llu MB%s", (unsigned long long)(sent >> 20),
		(unsigned long long)(total >> 20), sent == total ? "\n" : "");
	return true;
}

/* A file to be sent as the options say; its path is the progress's. */
static struct debuginfo_client_file file_to_send(const struct debuginfo_verb_options *values,
						 struct progress *progress)
{
	return (struct debuginfo_client_file){ .path = progress->path,
					       .is_forced = values->force,
					       .hash_first = true,
					       .progress = tell_progress,
					       .progress_context = progress };
}

static int open_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;

	if (fd < 0)
		return err_set_errno(err, errno, "open");
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return err_set(err, ERR_INVALID, "not a regular file");
	}
	return fd;
}

/* The sources of the program whose build id it is. */
static int upload_sources(const struct debuginfo_verb_options *values, struct net_client *client,
			  int archive_fd, const char *build_id, struct err *err)
{
	const char *path = values->sources.items[0];
	struct progress progress = { .path = path };
	struct debuginfo_client_file file = file_to_send(values, &progress);
	char id[ELF_BUILD_ID_TEXT_BYTES];
	bool is_present = false;

	file.fd = archive_fd;
	file.belongs_to = build_id;
	if (send_file(client, &file, id, &is_present, err))
		return err_wrap(err, "%s", path);
	printable_print(stdout, "%s: sources of build id %s: %s\n", path, build_id,
			is_present ? "the server has some already (--force replaces them)"
				   : "sent");
	fflush(stdout);
	return 0;
}

/* "app.dwo" for ".dwo", but not ".dwo" itself. */
static bool has_extension(const char *path, const char *extension)
{
	return strlen(path) > strlen(extension) &&
	       slice_ends_with(slice_of(path), slice_of(extension));
}

/* "app.dwp" of "app" or "app.debug", as it lies beside them; -1 when it does not. */
static int open_package(const char *path, struct strbuf *ret_path)
{
	int len = (int)strlen(path), fd;

	strbuf_addf(ret_path, "%s.dwp", path);
	fd = open_file(ret_path->data, NULL);
	if (fd < 0 && has_extension(path, ".debug")) {
		strbuf_clear(ret_path);
		strbuf_addf(ret_path, "%.*s.dwp", len - (int)strlen(".debug"), path);
		fd = open_file(ret_path->data, NULL);
	}
	return fd;
}

/* The .dwo files that the program names as a package; -1 when it names none, or none is here. */
static int make_package(int fd, const char *path, struct err *err)
{
	struct split_pack_report report = { 0 };
	int package = spill_file(P_tmpdir, err), rc;

	if (package < 0)
		return package;
	rc = split_pack_write(fd, path, package, &report, err);
	if (!rc && report.missing)
		printable_print(
			stderr,
			"%s: of %zu compilations with split DWARF %zu lack their .dwo file\n", path,
			report.named, report.missing);
	if (!rc && report.named > report.missing)
		return package;
	close(package);
	return rc ? rc : -ERR_NOT_FOUND;
}

/* DWARF that was left outside of the program. */
static int upload_split(const struct debuginfo_verb_options *values, struct net_client *client,
			int program_fd, const char *path, const char *build_id, struct err *err)
{
	struct strbuf package_path = { 0 };
	struct progress progress = { 0 };
	struct debuginfo_client_file file = file_to_send(values, &progress);
	char id[ELF_BUILD_ID_TEXT_BYTES];
	bool is_present = false;
	int rc;

	file.belongs_to = build_id;
	file.is_package = true;
	file.fd = open_package(path, &package_path);
	if (file.fd < 0)
		file.fd = make_package(program_fd, path, err);
	progress.path = file.path = package_path.data;
	rc = file.fd < 0 ? file.fd : send_file(client, &file, id, &is_present, err);
	if (file.fd >= 0)
		close(file.fd);
	if (!rc)
		printable_print(stdout, "%s: split DWARF of build id %s: %s\n", path, build_id,
				is_present ? "the server has some already (--force replaces it)"
					   : "sent");
	fflush(stdout);
	strbuf_free(&package_path);
	if (rc == -ERR_NOT_FOUND)
		return 0;
	return rc ? err_wrap(err, "%s: split DWARF", path) : 0;
}

static int upload_file(const struct debuginfo_verb_options *values, struct net_client *client,
		       int archive_fd, const char *path, struct err *err)
{
	struct progress progress = { .path = path };
	struct debuginfo_client_file file = file_to_send(values, &progress);
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	bool is_present = false;
	int rc;

	if (has_extension(path, ".dwo") || has_extension(path, ".dwp"))
		return err_set(err, ERR_INVALID,
			       "%s: split DWARF goes with its program: name that, with this file "
			       "where it was built or beside it",
			       path);
	file.fd = open_file(path, err);
	if (file.fd < 0)
		return err_wrap(err, "%s", path);
	rc = send_file(client, &file, build_id, &is_present, err);
	if (rc) {
		close(file.fd);
		return err_wrap(err, "%s", path);
	}
	printable_print(stdout, "%s: build id %s: %s\n", path, build_id,
			is_present ? "the server has it already" : "sent");
	fflush(stdout);
	rc = upload_split(values, client, file.fd, path, build_id, err);
	close(file.fd);
	if (rc)
		return rc;
	return archive_fd < 0 ? 0 : upload_sources(values, client, archive_fd, build_id, err);
}

/* -1 when none is wanted. */
static int open_archive(const struct debuginfo_verb_options *values, int *ret_fd, struct err *err)
{
	size_t files = 0;
	int fd;

	*ret_fd = -1;
	if (!values->sources.count)
		return 0;
	fd = source_archive_open(values->sources.items, values->sources.count, &files, err);
	if (fd < 0)
		return fd;
	if (files)
		printable_print(stdout, "%s: %zu source files\n", values->sources.items[0], files);
	*ret_fd = fd;
	return 0;
}

static int run_upload(int argc, char **argv)
{
	struct debuginfo_verb_options values = { 0 };
	struct option_operands operands;
	struct net_client *client;
	struct err err;
	int archive_fd;
	int code = verb_parse(&verb_debuginfo_upload, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (!operands.count) {
		err_set(&err, ERR_INVALID, "expected ELF files, for example app.debug");
		return verb_error(&verb_debuginfo_upload, &err);
	}
	if (client_flags_open(&values.client, &client, &err))
		return verb_error(&verb_debuginfo_upload, &err);
	if (open_archive(&values, &archive_fd, &err)) {
		net_client_free(client);
		return verb_error(&verb_debuginfo_upload, &err);
	}
	code = VERB_OK;
	for (size_t i = 0; i < operands.count; i++)
		if (upload_file(&values, client, archive_fd, operands.items[i], &err))
			code = verb_error(&verb_debuginfo_upload, &err);
	net_client_free(client);
	if (archive_fd >= 0)
		close(archive_fd);
	return code;
}

static int run_list(int argc, char **argv)
{
	struct debuginfo_verb_options values = { 0 };
	struct net_call list = { .method = "GET",
				 .headers = "accept: text/plain\r\n",
				 .timeout_ns = CALL_TIMEOUT_NS,
				 .body_bytes_max = LIST_BYTES_MAX };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct net_client *client;
	struct err err;
	int code = verb_parse(&verb_debuginfo_list, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (client_flags_open(&values.client, &client, &err))
		return verb_error(&verb_debuginfo_list, &err);
	list.path = values.json ? "/api/v1/debuginfo" : "/api/v1/debuginfo?format=text";
	code = net_client_call(client, &list, &reply, &err);
	net_client_free(client);
	if (!code && reply.status != 200)
		code = err_set(&err, ERR_UNAVAILABLE, "the server answers HTTP %d", reply.status);
	if (!code && values.json)
		strbuf_add_byte(&reply.body, '\n');
	if (!code)
		code = output_file_print("-", strbuf_slice(&reply.body), &err);
	strbuf_free(&reply.body);
	return code ? verb_error(&verb_debuginfo_list, &err) : VERB_OK;
}

static int run_fetch(int argc, char **argv)
{
	struct debuginfo_verb_options values = { 0 };
	struct net_call call = { .method = "POST",
				 .timeout_ns = CALL_TIMEOUT_NS,
				 .body_bytes_max = LIST_BYTES_MAX };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct net_client *client;
	struct err err;
	int code = verb_parse(&verb_debuginfo_fetch, argc, argv, &values, &operands);
	bool consents;

	if (code >= 0)
		return code;
	consents = operands.count == 1 && !strcmp(operands.items[0], "yes");
	if (operands.count != 1 || (!consents && strcmp(operands.items[0], "no") != 0)) {
		err_set(&err, ERR_INVALID, "expected yes or no");
		return verb_error(&verb_debuginfo_fetch, &err);
	}
	if (client_flags_open(&values.client, &client, &err))
		return verb_error(&verb_debuginfo_fetch, &err);
	call.path = consents ? "/api/v1/debuginfo/consent?answer=yes"
			     : "/api/v1/debuginfo/consent?answer=no";
	code = net_client_call(client, &call, &reply, &err);
	net_client_free(client);
	if (!code && reply.status != 200)
		code = err_set(&err, ERR_UNAVAILABLE, "the server answers HTTP %d: %.*s",
			       reply.status, (int)(reply.body.len < 300 ? reply.body.len : 300),
			       strbuf_text(&reply.body));
	strbuf_free(&reply.body);
	return code ? verb_error(&verb_debuginfo_fetch, &err) : VERB_OK;
}

const struct verb verb_debuginfo_fetch = { &fetch_spec, run_fetch, LOG_WARN };
const struct verb verb_debuginfo_upload = { &upload_spec, run_upload, LOG_WARN };
const struct verb verb_debuginfo_list = { &list_spec, run_list, LOG_WARN };
