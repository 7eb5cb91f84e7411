/* SPDX-License-Identifier: Apache-2.0 */
/* firn record - profiles a command, some processes or the host into a file; no server needed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/metrics.h"
#include "cli/agent_report.h"
#include "cli/defaults.h"
#include "cli/pids.h"
#include "cli/profile_file.h"
#include "cli/verb.h"
#include "server/resolve/resolver.h"

#define EXIT_CANNOT_RUN 127		     /* as shells say */
#define TABLES_WAIT_NS (30 * CLOCK_NS_PER_S) /* for those being made; not after SIGTERM */
#define NAMES_GRACE_NS (3 * CLOCK_NS_PER_S)  /* for who sends SIGTERM: frames that wait say so */

struct record_verb_options {
	struct verb_common common;
	const char *sample_labels;
	const char *pids;
	const char *output;
	const char *format;
	int64_t duration_ns;
	unsigned frequency_hz;
	bool all;
};

#define AT(member) offsetof(struct record_verb_options, member)

static const struct option options[] = {
	OPTION_AT(FREQUENCY, AT(frequency_hz)),
	OPTION_AT(RECORD_ALL, AT(all)),
	OPTION_AT(RECORD_PID, AT(pids)),
	OPTION_AT(DURATION, AT(duration_ns)),
	OPTION_AT(SAMPLE_LABELS, AT(sample_labels)),
	OPTION_AT(RECORD_OUTPUT, AT(output)),
	OPTION_AT(RECORD_FORMAT, AT(format)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "record",
	.operands = "[-- CMD ARGS...]",
	.summary = "profile a command, a process or the host into a file",
	.details = "Writes pprof (.pb.gz), folded stacks (.folded) or speedscope\n"
		   "(.speedscope.json) with functions, files and lines, or a recording (.firn),\n"
		   "which keeps values over time and gets its names when it is read on the same\n"
		   "host.\n"
		   "\n"
		   "  sudo firn record -- make -j4                     profile.pb.gz\n"
		   "  sudo firn record -p 1234 -d 30s -o web.pb.gz\n"
		   "  sudo firn record -a -d 10s -o - --format folded | sort -k2 -n\n"
		   "  go tool pprof -http=: profile.pb.gz",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
	.stop_at_operand = true,
};

/* What the agent delivers is gathered here. */
struct recording {
	struct tables tables;
	struct resolver *resolver;
	uint64_t samples;
	bool full;
	int64_t leave_at_ns; /* names are waited for until then; 0 = always */
	bool has_left;	     /* some were not waited for */
};

static void gather(void *context, const struct tables_view *batch)
{
	struct recording *recording = context;
	struct tables_copy copy;

	tables_copy_begin(&copy, &recording->tables, batch);
	for (uint32_t i = 0; i < batch->reports_count; i++) {
		if (!tables_copy_report(&copy, i)) {
			recording->full = true;
			break;
		}
		recording->samples += (uint64_t)batch->totals[batch->reports[i].total_first];
	}
	tables_copy_end(&copy);
}

static bool lend(void *context, const struct agent_binary *binary)
{
	struct recording *recording = context;

	resolver_offer(recording->resolver, binary->build_id, binary->path, binary->fd);
	return true;
}

/* A command held before its exec until the profiler watches it. */
struct command {
	pid_t pid;
	/* Closing it unwritten means: do not run. Its other end closes by the exec, or tells errno.
	 */
	int go;
	char *path; /* of the program, where found */
};

static void run_command(int go, char **argv)
{
	sigset_t none;
	char byte;
	int why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(EXIT_CANNOT_RUN);
	prctl(PR_SET_PDEATHSIG, 0);
	execvp(argv[0], argv);
	why = errno;
	(void)!write(go, &why, sizeof(why));
	_exit(EXIT_CANNOT_RUN);
}

/* As execvp finds it; NULL = nowhere. */
static char *find_program(const char *name)
{
	const char *folders = getenv("PATH");
	struct slice rest = slice_of(folders ? folders : "/usr/bin:/bin");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return strdup(name);
	while (rest.len) {
		struct slice folder = slice_cut(rest, ':', &rest);

		snprintf(path, sizeof(path), "%.*s/%s", SLICE_FMT(folder), name);
		if (!access(path, X_OK))
			return strdup(path);
	}
	return NULL;
}

static int hold_command(const struct option_operands *operands, struct command *ret,
			struct err *err)
{
	char **argv = calloc(operands->count + 1, sizeof(*argv));
	int ends[2];

	if (!argv || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		free(argv);
		return err_set_errno(err, errno, "run \"%s\"", operands->items[0]);
	}
	memcpy(argv, operands->items, operands->count * sizeof(*argv));
	ret->path = find_program(argv[0]);
	ret->pid = fork();
	if (!ret->pid) {
		close(ends[1]);
		run_command(ends[0], argv);
	}
	free(argv);
	close(ends[0]);
	ret->go = ends[1];
	if (ret->pid < 0) {
		close(ret->go);
		ret->go = -1;
		return err_set_errno(err, errno, "run \"%s\"", operands->items[0]);
	}
	return 0;
}

/* 0, or the errno of the exec. */
static int let_go(struct command *command, bool run)
{
	int why = 0;

	if (command->go < 0)
		return 0;
	if (run && send(command->go, "g", 1, MSG_NOSIGNAL) == 1 &&
	    read(command->go, &why, sizeof(why)) != sizeof(why))
		why = 0;
	close(command->go);
	command->go = -1;
	return why;
}

/* True if the signal asks for the end: of a terminal that goes away only when nohup does not say
 * otherwise. */
static bool is_end(int number)
{
	struct sigaction action;

	if (number == SIGHUP)
		return sigaction(SIGHUP, NULL, &action) || action.sa_handler != SIG_IGN;
	return number == SIGINT || number == SIGTERM;
}

/* Until the command or the processes end, the time is over, or a signal comes: returns it, or 0. */
static int wait_end(const struct record_verb_options *values, const struct command *command,
		    const pid_t *pids, size_t pids_count, int *status)
{
	int64_t until_ns =
		values->duration_ns ? clock_monotonic_ns() + values->duration_ns : INT64_MAX;

	for (;;) {
		int64_t left_ns = until_ns - clock_monotonic_ns();
		int number = verb_wait_signal(left_ns > CLOCK_NS_PER_S / 2 ? CLOCK_NS_PER_S / 2
					      : left_ns > 0		   ? left_ns
									   : 0);
		bool alive = values->all;

		if (is_end(number) || clock_monotonic_ns() >= until_ns)
			return is_end(number) ? number : 0;
		if (command->pid > 0) {
			if (waitpid(command->pid, status, WNOHANG) == command->pid)
				return 0;
			continue;
		}
		for (size_t i = 0; i < pids_count; i++)
			alive |= !kill(pids[i], 0) || errno != ESRCH;
		if (!alive)
			return 0;
	}
}

/* Whoever wants an end gets it in a moment, or, who says so again, at once. */
static void heed_signal(struct recording *recording)
{
	int64_t now_ns = clock_monotonic_ns();

	if (!is_end(verb_wait_signal(0)))
		return;
	if (recording->leave_at_ns) {
		recording->leave_at_ns = now_ns;
		return;
	}
	recording->leave_at_ns = now_ns + NAMES_GRACE_NS;
	fprintf(stderr,
		"firn record: names are waited for 3 s more; another signal ends that at once\n");
}

/* For query_limits. */
static bool leave_names(void *context)
{
	struct recording *recording = context;
	bool leaves;

	heed_signal(recording);
	leaves = recording->leave_at_ns && clock_monotonic_ns() >= recording->leave_at_ns;
	recording->has_left |= leaves;
	return leaves;
}

static int write_profile(const struct record_verb_options *values,
			 const struct render_export *format, struct recording *recording,
			 struct err *err)
{
	static const char type[] = "on_cpu:samples:count:cpu:nanoseconds:delta";
	struct tables_view view = tables_view_of(&recording->tables);
	struct segment segment;
	struct query_source source = { &segment, 1, recording->resolver, NULL };
	struct query_params params = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct selector selector;
	int rc = selector_parse(slice_of(type), &selector, err);

	if (rc)
		return rc;
	params.selector = &selector;
	params.limits.leave_names = leave_names;
	params.limits.leave_context = recording;
	segment_of_tables(&segment, &view);
	rc = profile_write(&source, &params, format, values->output, err);
	selector_free(&selector);
	return rc;
}

/* By the agent's own count, for whatever reason. */
static uint64_t lost_samples(void)
{
	struct strbuf metrics = { 0 };
	struct agent_report report;
	uint64_t lost = 0;

	metrics_render(&metrics);
	agent_report_read(&report, strbuf_slice(&metrics));
	for (size_t i = 0; i < report.losses_count; i++)
		lost += report.losses[i].samples;
	agent_report_free(&report);
	strbuf_free(&metrics);
	return lost;
}

static void tell(const struct record_verb_options *values, const struct recording *recording,
		 const struct command *command, int status)
{
	uint64_t lost = lost_samples();

	if (command->pid > 0 && WIFEXITED(status) && WEXITSTATUS(status))
		fprintf(stderr, "firn record: the command exited with %d\n", WEXITSTATUS(status));
	if (command->pid > 0 && WIFSIGNALED(status))
		fprintf(stderr, "firn record: the command was killed by signal %d\n",
			WTERMSIG(status));
	if (recording->has_left)
		fprintf(stderr, "firn record: names were not waited for: some may be missing\n");
	if (recording->full)
		fprintf(stderr, "firn record: the recording was full; the rest is missing\n");
	if (lost)
		fprintf(stderr, "firn record: %llu samples were lost\n", (unsigned long long)lost);
	fprintf(stderr, "firn record: %llu samples%s%s\n", (unsigned long long)recording->samples,
		strcmp(values->output, "-") ? " in " : "",
		strcmp(values->output, "-") ? values->output : "");
}

static int record(const struct record_verb_options *values, const struct option_operands *operands,
		  const struct render_export *format, struct err *err)
{
	struct resolver_options resolve = { .local_files = true };
	struct recording recording = { 0 };
	struct command command = { .go = -1 };
	struct agent *agent = NULL;
	pid_t pids[PIDS_MAX];
	size_t count = 0;
	int exec_errno, status = 0, ended_by = 0, rc;
	unsigned sample_labels = 0;

	rc = sample_labels_parse(slice_of(values->sample_labels), &sample_labels, err);
	if (!rc && values->pids)
		rc = pids_parse(values->pids, pids, &count, err);
	if (!rc && operands->count) {
		rc = hold_command(operands, &command, err);
		pids[0] = command.pid;
		count = 1;
	}
	if (!rc)
		rc = resolver_new(&resolve, &recording.resolver, err);
	tables_init(&recording.tables);
	if (!rc) {
		struct agent_options start = {
			.frequency_hz = values->frequency_hz,
			.target = values->all ? AGENT_TARGET_HOST : AGENT_TARGET_PIDS,
			.pids = pids,
			.pids_count = count,
			.deliver = gather,
			.deliver_context = &recording,
			.binary_seen = lend,
			.binary_seen_context = &recording,
			.program = command.path,
			/* A recording shows how values spread over time: more, shorter reports. */
			.window_ns = format == &profile_recording ? CLOCK_NS_PER_S : 0,
			.sample_times = format == &profile_recording,
			.sample_labels = sample_labels,
			.command = "firn record",
			.unwind_cache_path = geteuid() ? NULL : DEFAULT_UNWIND_CACHE_PATH,
		};

		rc = agent_start(&start, &agent, err);
	}
	exec_errno = let_go(&command, !rc);
	if (exec_errno)
		rc = err_set_errno(err, exec_errno, "run \"%s\"", operands->items[0]);
	else if (!rc)
		ended_by = wait_end(values, &command, pids, count, &status);
	if (ended_by == SIGTERM) {
		recording.leave_at_ns = clock_monotonic_ns() + NAMES_GRACE_NS;
		agent_stop(agent);
	} else {
		agent_finish(agent, TABLES_WAIT_NS, verb_is_stopping);
	}
	if (!rc)
		rc = write_profile(values, format, &recording, err);
	if (!rc)
		tell(values, &recording, &command, status);
	resolver_free(recording.resolver);
	tables_free(&recording.tables);
	free(command.path);
	return rc;
}

static int run(int argc, char **argv)
{
	struct record_verb_options values = { 0 };
	struct option_operands operands;
	const struct render_export *format;
	struct err err;
	int code = verb_parse(&verb_record, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if ((values.all != 0) + (values.pids != NULL) + (operands.count > 0) != 1) {
		err_set(&err, ERR_INVALID, "give one of: -a, -p PID, or -- CMD ARGS");
		return verb_error(&verb_record, &err);
	}
	if (profile_format_of(values.format, values.output, &format, &err))
		return verb_error(&verb_record, &err);
	if (profile_refuse_terminal(format, values.output, &err))
		return verb_error(&verb_record, &err);
	verb_block_signals();
	verb_raise_file_limit();
	if (record(&values, &operands, format, &err))
		return verb_error(&verb_record, &err);
	return VERB_OK;
}

const struct verb verb_record = { &spec, run, LOG_WARN };
