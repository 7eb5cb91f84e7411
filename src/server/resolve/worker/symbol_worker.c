/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/symbol_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/strbuf.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/worker/subprocess.h"

#define VERB "symbol-worker" /* not among the verbs that help lists */
#define WORKERS_MAX 2
#define WAIT_FACTOR 10				  /* a busy host gives a worker a tenth of a CPU */
#define TABLE_FILE_BYTES_MAX ((uint64_t)16 << 30) /* of the table, or the scratch file */
#define LEAST_MEMORY_BYTES ((uint64_t)32 << 20)
#define MAPPED_MORE_BYTES ((uint64_t)1 << 30) /* over files and memory: code, stacks */

/* Descriptors of a worker. */
enum {
	FD_STATUS = SUBPROCESS_FD_FIRST,
	FD_OUT,
	FD_ASKED, /* addresses, by rising address */
	FD_SCRATCH,
	FD_INPUTS = FD_SCRATCH + SYMBOL_SCRATCH_FILES
};
#define FDS_COMMON (FD_INPUTS - FD_STATUS)
_Static_assert(FDS_COMMON + SYMBOL_INPUTS_MAX <= SUBPROCESS_FDS_MAX, "room for all descriptors");

/* Arguments behind the verb; then kind, name and directory of each input. */
enum {
	ARG_FILE_BYTES,
	ARG_SECTION_BYTES,
	ARG_TABLE_BYTES,
	ARG_ENTRIES,
	ARG_DURATION_NS,
	ARG_IS_FOR_ONCE,
	ARG_IS_ASKED, /* the table is of those in FD_ASKED alone */
	ARG_NOTE,
	ARGS_COMMON,
	ARGS_PER_INPUT = 3
};

/* A worker's last word. */
struct worker_status {
	uint32_t is_done; /* else it was cut off */
	uint32_t code;	  /* enum err_code; 0: the table is there */
	struct symbol_report report;
	char message[ERR_MESSAGE_BYTES];
};

static METRIC_COUNTER(damaged, "firn_resolve_dwarf_damaged_total", "",
		      "Units and line tables of DWARF that were left early because of damage.");
static METRIC_COUNTER(
	refused, "firn_resolve_dwarf_refused_total", "",
	"Files whose DWARF was not used: over a limit, or its alternate file missing.");
static METRIC_COUNTER(died, "firn_resolve_workers_died_total", "",
		      "Processes that died, or were killed, over the debug information of a file.");

static _Atomic bool is_available;

static struct {
	struct lock lock;
	struct lock_condition changed;
	unsigned running;
} workers = { LOCK_INITIALIZER("symbol_worker", LOCK_RESOLVE + 2), LOCK_CONDITION_INITIALIZER, 0 };

void symbol_worker_init(void)
{
	static struct metric *const metrics[] = { &damaged, &refused, &died };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

/* What the table is made of, in arrays that double, and what libdw keeps of the file. */
static uint64_t memory_limit(const struct symbol_limits *limits)
{
	return 2 * limits->table_bytes + LEAST_MEMORY_BYTES;
}

/* ---- the worker ---- */

static uint64_t input_bytes(size_t count)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < count; i++)
		if (!fstat(FD_INPUTS + (int)i, &st))
			bytes += (uint64_t)st.st_size;
	return bytes;
}

/* Only split units lie in files that it finds by itself. */
static enum syscall_filter_files files_of(const struct symbol_input *inputs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (inputs[i].directory)
			return SYSCALL_FILTER_READ_FILES;
	return SYSCALL_FILTER_NO_FILES;
}

static bool confine(const struct symbol_limits *limits, const struct symbol_input *inputs,
		    size_t inputs_count)
{
	const struct subprocess_limits confined = {
		.name = "firn-symbols",
		.cpu_seconds = (uint64_t)(limits->duration_ns / CLOCK_NS_PER_S) * 2 + 1,
		.file_bytes = TABLE_FILE_BYTES_MAX,
		.data_bytes = memory_limit(limits),
		.mapped_bytes = memory_limit(limits) + MAPPED_MORE_BYTES +
				2 * (input_bytes(inputs_count) + limits->section_bytes),
		.files = files_of(inputs, inputs_count),
	};

	return subprocess_confine(&confined);
}

/* False when they are not there to be read. */
static bool read_asked(struct symbol_asked *ret)
{
	struct stat st;
	uint64_t *items;

	if (fstat(FD_ASKED, &st))
		return false;
	items = mem_new_array(uint64_t, (size_t)st.st_size / sizeof(uint64_t) + 1);
	*ret = (struct symbol_asked){ items, (size_t)st.st_size / sizeof(uint64_t) };
	return pread(FD_ASKED, items, (size_t)st.st_size, 0) == st.st_size;
}

static uint64_t number_of(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* NULL for "". */
static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static int run_worker(char **args, size_t count)
{
	struct symbol_input inputs[SYMBOL_INPUTS_MAX];
	struct worker_status status = { .is_done = 1 };
	struct symbol_asked asked = { 0 };
	struct symbol_limits limits = {
		.file_bytes = number_of(args[ARG_FILE_BYTES]),
		.section_bytes = number_of(args[ARG_SECTION_BYTES]),
		.table_bytes = number_of(args[ARG_TABLE_BYTES]),
		.entries = number_of(args[ARG_ENTRIES]),
		.duration_ns = (int64_t)number_of(args[ARG_DURATION_NS]),
		.is_for_once = number_of(args[ARG_IS_FOR_ONCE]),
	};
	int scratch[SYMBOL_SCRATCH_FILES];
	struct err err = { 0 };

	if (number_of(args[ARG_IS_ASKED]) && read_asked(&asked))
		limits.asked = &asked;
	for (int i = 0; i < SYMBOL_SCRATCH_FILES; i++)
		scratch[i] = FD_SCRATCH + i;
	for (size_t i = 0; i < count; i++) {
		char **at = args + ARGS_COMMON + i * ARGS_PER_INPUT;

		inputs[i] = (struct symbol_input){
			.fd = FD_INPUTS + (int)i,
			.kind = (enum symbol_input_kind)number_of(at[0]),
			.name = at[1],
			.directory = text_or_null(at[2]),
		};
	}
	if (!confine(&limits, inputs, count)) {
		status.code = ERR_UNSUPPORTED;
		snprintf(status.message, sizeof(status.message),
			 "read symbols: the kernel has no filter of system calls "
			 "(CONFIG_SECCOMP_FILTER)");
	} else if (symbol_reader_write(inputs, count, &limits, text_or_null(args[ARG_NOTE]),
				       scratch, FD_OUT, &status.report, &err)) {
		status.code = err.code;
		memcpy(status.message, err.message, sizeof(status.message));
	}
	free((uint64_t *)asked.items);
	return write(FD_STATUS, &status, sizeof(status)) == sizeof(status) ? 0 : 1;
}

int symbol_worker_main(int argc, char **argv)
{
	size_t count;

	atomic_store(&is_available, true);
	if (argc < 2 || strcmp(argv[1], VERB))
		return -1;
	if (argc < 2 + ARGS_COMMON + ARGS_PER_INPUT)
		return 2;
	count = (size_t)(argc - 2 - ARGS_COMMON) / ARGS_PER_INPUT;
	return run_worker(argv + 2, count < SYMBOL_INPUTS_MAX ? count : SYMBOL_INPUTS_MAX);
}

/* ---- the one who waits for it ---- */

static bool is_cancelled(const _Atomic bool *cancelled)
{
	return cancelled && atomic_load(cancelled);
}

static void take_place(void)
{
	lock_take(&workers.lock);
	while (workers.running == WORKERS_MAX)
		lock_wait(&workers.changed, &workers.lock);
	workers.running++;
	lock_give(&workers.lock);
}

static void leave_place(void)
{
	lock_take(&workers.lock);
	workers.running--;
	lock_signal(&workers.changed);
	lock_give(&workers.lock);
}

static char *copy_text(const char *text)
{
	return mem_strndup(text ? text : "", text ? strlen(text) : 0);
}

/* The worker's arguments, NULL at the end; each is freed. */
static char **make_args(const struct symbol_input *inputs, size_t count,
			const struct symbol_limits *limits, const char *note)
{
	const uint64_t numbers[ARG_NOTE] = {
		[ARG_FILE_BYTES] = limits->file_bytes,
		[ARG_SECTION_BYTES] = limits->section_bytes,
		[ARG_TABLE_BYTES] = limits->table_bytes,
		[ARG_ENTRIES] = limits->entries,
		[ARG_DURATION_NS] = (uint64_t)limits->duration_ns,
		[ARG_IS_FOR_ONCE] = limits->is_for_once,
		[ARG_IS_ASKED] = limits->asked != NULL,
	};
	char **args = mem_new_array(char *, 3 + ARGS_COMMON + ARGS_PER_INPUT * count);
	char **at = args, text[32];

	*at++ = mem_strndup("firn", 4);
	*at++ = mem_strndup(VERB, strlen(VERB));
	for (size_t i = 0; i < ARG_NOTE; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, numbers[i]);
		*at++ = mem_strndup(text, strlen(text));
	}
	*at++ = copy_text(note);
	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%d", (int)inputs[i].kind);
		*at++ = mem_strndup(text, strlen(text));
		*at++ = copy_text(inputs[i].name);
		*at++ = copy_text(inputs[i].directory);
	}
	return args;
}

static void free_args(char **args)
{
	for (char **at = args; *at; at++)
		free(*at);
	free(args);
}

/* Reads the last word until its end; false when it takes too long, or is not wanted any more. */
static bool read_status(int fd, struct worker_status *ret, int64_t deadline_ns,
			const _Atomic bool *cancelled)
{
	size_t have = 0;

	while (clock_monotonic_ns() < deadline_ns && !is_cancelled(cancelled)) {
		struct pollfd event = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (poll(&event, 1, SUBPROCESS_POLL_MS) <= 0)
			continue;
		got = read(fd, (char *)ret + have, sizeof(*ret) - have);
		if (got > 0)
			have += (size_t)got;
		if (have == sizeof(*ret) || !got)
			return true;
		if (got < 0 && errno != EINTR)
			return true;
	}
	return false;
}

static int death_error(const char *name, int status, bool is_late,
		       const struct symbol_limits *limits, struct err *err)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	metric_add(&died, 1);
	if (is_late || number == SIGXCPU)
		return err_set(err, ERR_LIMIT, "read symbols of \"%s\": not done after %lld s%s",
			       name,
			       limits->duration_ns / CLOCK_NS_PER_S * (is_late ? WAIT_FACTOR : 2),
			       is_late ? "" : " of CPU time");
	if (number == SIGABRT)
		return err_set(err, ERR_LIMIT,
			       "read symbols of \"%s\": over the memory limit of %" PRIu64 " MiB",
			       name, memory_limit(limits) >> 20);
	if (number == SIGSYS)
		return err_set(err, ERR_INVALID,
			       "read symbols of \"%s\": the process that reads it made a system "
			       "call that it is not allowed (SIGSYS)",
			       name);
	if (number)
		return err_set(err, ERR_INVALID,
			       "read symbols of \"%s\": the process that reads it died (%s)", name,
			       sigdescr_np(number));
	return err_set(err, ERR_INVALID,
		       "read symbols of \"%s\": the process that reads it ended with code %d", name,
		       WEXITSTATUS(status));
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* New ones each time: a worker that died leaves them as they are. */
static int open_scratch(const char *directory, int *fds, struct err *err)
{
	for (size_t i = 0; i < SYMBOL_SCRATCH_FILES; i++) {
		fds[i] = spill_file(directory, err);
		if (fds[i] < 0) {
			close_all(fds, i);
			return fds[i];
		}
	}
	return 0;
}

static int open_asked(const struct symbol_asked *asked, const char *directory, struct err *err)
{
	size_t bytes = asked ? asked->count * sizeof(*asked->items) : 0;
	int fd = spill_file(directory, err);

	if (fd >= 0 && bytes && pwrite(fd, asked->items, bytes, 0) != (ssize_t)bytes) {
		close(fd);
		return err_set(err, ERR_NO_MEMORY, "write addresses to a temporary file");
	}
	return fd;
}

/* *ret_fd is where its last word is to be read. */
static int start_worker(const struct symbol_input *inputs, size_t count, char **args,
			const struct symbol_asked *asked, int out_fd, const char *scratch_directory,
			struct subprocess *ret, int *ret_fd, struct err *err)
{
	int fds[FDS_COMMON + SYMBOL_INPUTS_MAX], *scratch = fds + FD_SCRATCH - FD_STATUS, ends[2];
	int asked_fd = open_asked(asked, scratch_directory, err), error_number, code;

	if (asked_fd < 0)
		return asked_fd;
	code = open_scratch(scratch_directory, scratch, err);
	if (!code && pipe2(ends, O_CLOEXEC)) {
		code = err_set_errno(err, errno, "make a pipe");
		close_all(scratch, SYMBOL_SCRATCH_FILES);
	}
	if (code) {
		close(asked_fd);
		return code;
	}
	fds[0] = ends[1];
	fds[FD_OUT - FD_STATUS] = out_fd;
	fds[FD_ASKED - FD_STATUS] = asked_fd;
	for (size_t i = 0; i < count; i++)
		fds[FDS_COMMON + i] = inputs[i].fd;
	error_number = subprocess_start(fds, FDS_COMMON + (int)count, args, ret);
	close(ends[1]);
	close(asked_fd);
	close_all(scratch, SYMBOL_SCRATCH_FILES);
	*ret_fd = ends[0];
	if (!error_number)
		return 0;
	close(ends[0]);
	return err_set_errno(err, error_number, "start the process that reads symbols");
}

/* One worker from start to end; *ret_died says that it said nothing. */
static int run_one(const struct symbol_input *inputs, size_t count,
		   const struct symbol_limits *limits, const char *note,
		   const char *scratch_directory, const _Atomic bool *cancelled, int out_fd,
		   bool *ret_died, struct err *err)
{
	int64_t deadline_ns =
		clock_monotonic_ns() + WAIT_FACTOR * limits->duration_ns + CLOCK_NS_PER_S;
	char **args = make_args(inputs, count, limits, note);
	struct worker_status status = { 0 };
	struct subprocess process;
	int fd = -1, wait_status, code;
	bool is_late;

	*ret_died = false;
	code = start_worker(inputs, count, args, limits->asked, out_fd, scratch_directory, &process,
			    &fd, err);
	free_args(args);
	if (code)
		return code;
	is_late = !read_status(fd, &status, deadline_ns, cancelled);
	close(fd);
	wait_status = subprocess_reap(&process, is_late);
	if (is_late && is_cancelled(cancelled))
		return err_set(err, ERR_CANCELLED, "read symbols of \"%s\": cancelled",
			       inputs[0].name);
	status.message[sizeof(status.message) - 1] = 0;
	if (!status.is_done || status.code >= ERR_CODES) {
		*ret_died = true;
		return death_error(inputs[0].name, wait_status, is_late, limits, err);
	}
	metric_add(&damaged, (int64_t)status.report.damaged);
	metric_add(&refused, (int64_t)status.report.refused);
	return status.code ? err_set(err, (enum err_code)status.code, "%s", status.message) : 0;
}

int symbol_worker_build(const struct symbol_input *inputs, size_t count,
			const struct symbol_limits *limits, const char *scratch_directory,
			const _Atomic bool *cancelled, int out_fd, struct err *err)
{
	struct err cause = { 0 };
	bool has_died;
	int status;

	if (!atomic_load(&is_available))
		return err_set(err, ERR_UNSUPPORTED,
			       "read symbols: this program cannot run itself to do so");
	if (!count || count > SYMBOL_INPUTS_MAX)
		return err_set(err, ERR_INVALID, "read symbols: %zu files", count);
	take_place();
	status = run_one(inputs, count, limits, NULL, scratch_directory, cancelled, out_fd,
			 &has_died, &cause);
	if (has_died) {
		if (ftruncate(out_fd, 0))
			status = err_set_errno(&cause, errno, "empty a temporary file");
		else
			status = run_one(inputs, count, limits, cause.message, scratch_directory,
					 cancelled, out_fd, &has_died, &cause);
	}
	leave_place();
	if (status && err)
		*err = cause;
	return status;
}
