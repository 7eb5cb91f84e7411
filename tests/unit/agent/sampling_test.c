/* SPDX-License-Identifier: Apache-2.0 */
/* The whole agent on real processes (spin.c). Needs root; argument: the spin program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/mem.h"
#include "base/metrics.h"

#define FREQUENCY_HZ 997
#define WINDOW_NS (500 * CLOCK_NS_PER_MS)
#define FUNCTIONS_MAX 256
#define STACKS_MAX 8192
#define FRAMES_MAX 700
#define COST_STRETCH_S 3
#define COST_ATTEMPTS 6
#define COST_OTHERS_MAX 0.5 /* CPUs that others keep busy in a stretch that is judged */
#define COST_FORKS_MAX 5    /* processes and threads that begin in it, per second */
#define COST_MAX                                                                                   \
	(BUILT_WITH_ASAN                                                                           \
		 ? 1                                                                               \
		 : 0.02) /* of a core; the sanitizer makes all of it slower: nothing to learn */

static const char *spin_path;
static char *spin_name; /* as mapping_file shows it */

/* Functions of the spin program, from nm(1). */
struct function {
	uint64_t address, size;
	char name[64];
};
static struct function functions[FUNCTIONS_MAX];
static size_t functions_count;

/* One delivered row: names from the root, joined by ';'. Frames without name are their mapping. */
struct delivered {
	char *stack;
	char comm[32], thread_name[32], executable[256];
	int64_t samples;
};

struct collector {
	struct delivered rows[STACKS_MAX];
	size_t count;
	int64_t samples;
	char build_id[200];
	struct rusage usage;
	double stolen_s; /* by other machines, meanwhile */
};

static void read_functions(void)
{
	char command[512], type;
	FILE *nm;

	snprintf(command, sizeof(command), "nm -S --defined-only '%s'", spin_path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (functions_count < FUNCTIONS_MAX) {
		struct function *function = &functions[functions_count];
		char line[512];

		if (!fgets(line, sizeof(line), nm))
			break;
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %63s", &function->address,
			   &function->size, &type, function->name) == 4 &&
		    (type == 't' || type == 'T'))
			functions_count++;
	}
	pclose(nm);
	assert_true(functions_count > 5);
}

static const char *function_at(uint64_t address)
{
	for (size_t i = 0; i < functions_count; i++)
		if (address >= functions[i].address &&
		    address < functions[i].address + functions[i].size)
			return functions[i].name;
	return "?";
}

static void add_frame_name(struct strbuf *out, const struct tables_view *view, uint32_t id)
{
	const struct frame *frame = &view->frames[id];
	struct slice mapping = tables_text(view, frame->mapping_file);

	if (frame->function)
		strbuf_add_slice(out, tables_text(view, frame->function));
	else if (slice_is(mapping, spin_name))
		strbuf_add_text(out, function_at(frame->address));
	else
		strbuf_add_slice(out, mapping);
}

static char *stack_text(const struct tables_view *view, uint32_t node)
{
	uint32_t frames[FRAMES_MAX];
	struct strbuf out = { 0 };
	size_t count = 0;

	for (; node && count < FRAMES_MAX; node = view->nodes[node].parent)
		frames[count++] = view->nodes[node].frame;
	while (count-- > 0) {
		add_frame_name(&out, view, frames[count]);
		if (count)
			strbuf_add_byte(&out, ';');
	}
	strbuf_add_byte(&out, '\0');
	return out.data;
}

static void copy_label(char *to, size_t bytes, const struct tables_view *view, uint32_t label_set,
		       const char *name)
{
	snprintf(to, bytes, "%.*s", SLICE_FMT(tables_label_value(view, label_set, slice_of(name))));
}

static void collect(void *context, const struct tables_view *view)
{
	struct collector *collector = context;

	for (uint32_t r = 0; r < view->reports_count; r++) {
		const struct report *report = &view->reports[r];
		uint32_t labels = view->series[report->series].label_set;

		for (uint32_t i = 0; i < report->row_count; i++) {
			struct delivered *row = &collector->rows[collector->count];

			if (collector->count >= STACKS_MAX)
				break;
			collector->count++;
			row->stack = stack_text(view, view->rows[report->row_first + i].stack);
			row->samples = view->values[report->value_first + i];
			copy_label(row->comm, sizeof(row->comm), view, labels, "comm");
			copy_label(row->thread_name, sizeof(row->thread_name), view, labels,
				   "thread_name");
			copy_label(row->executable, sizeof(row->executable), view, labels,
				   "executable");
			collector->samples += row->samples;
		}
	}
}

static bool binary_seen(void *context, const struct agent_binary *binary)
{
	struct collector *collector = context;
	char magic[4];

	assert_int_equal(pread(binary->fd, magic, 4, 0), 4);
	assert_memory_equal(magic, "\177ELF", 4);
	assert_true(binary->pid > 0);
	if (slice_is(binary->path, spin_name))
		snprintf(collector->build_id, sizeof(collector->build_id), "%.*s",
			 SLICE_FMT(binary->build_id));
	return true;
}

/* A child that runs spin once *ret_go is written to. */
static pid_t prepare_spin(const char *what, const char *first, const char *second, int *ret_go)
{
	int go[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execl(spin_path, spin_path, what, first, second, (char *)NULL);
		_exit(127);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

/* Time that the CPUs ran for other machines: the clock goes on then, and nobody's CPU time does. */
static double stolen_seconds(void)
{
	FILE *file = fopen("/proc/stat", "r");
	unsigned long long stolen = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen), 1);
	fclose(file);
	return (double)stolen / (double)sysconf(_SC_CLK_TCK);
}

static void run_spin(struct collector *collector, bool thread_labels, const char *what,
		     const char *first, const char *second)
{
	struct agent_options options = {
		.frequency_hz = FREQUENCY_HZ,
		.window_ns = WINDOW_NS,
		.node = "test-node",
		.thread_labels = thread_labels,
		.target = AGENT_TARGET_PIDS,
		.pids_count = 1,
		.deliver = collect,
		.deliver_context = collector,
		.binary_seen = binary_seen,
		.binary_seen_context = collector,
		.program = spin_path,
	};
	struct agent *agent;
	struct err err = { 0 };
	int go, status;
	pid_t pid = prepare_spin(what, first, second, &go);
	double stolen = stolen_seconds();

	options.pids = &pid;
	if (agent_start(&options, &agent, &err))
		fail_msg("%s", err.message);
	assert_int_equal(write(go, "g", 1), 1);
	close(go);
	assert_int_equal(wait4(pid, &status, 0, &collector->usage), pid);
	assert_int_equal(status, 0);
	collector->stolen_s = stolen_seconds() - stolen;
	agent_stop(agent);
}

static void collector_free(struct collector *collector)
{
	for (size_t i = 0; i < collector->count; i++)
		free(collector->rows[i].stack);
	free(collector);
}

static int64_t samples_with(const struct collector *collector, const char *part)
{
	int64_t samples = 0;

	for (size_t i = 0; i < collector->count; i++)
		if (strstr(collector->rows[i].stack, part))
			samples += collector->rows[i].samples;
	return samples;
}

static void leave_out(struct collector *collector, const char *part)
{
	for (size_t i = 0; i < collector->count; i++)
		if (strstr(collector->rows[i].stack, part)) {
			collector->samples -= collector->rows[i].samples;
			collector->rows[i].samples = 0;
		}
}

static void print_stacks(const struct collector *collector)
{
	for (size_t i = 0; i < collector->count; i++)
		printf("# %s %s %.200s %" PRId64 "\n", collector->rows[i].comm,
		       collector->rows[i].thread_name, collector->rows[i].stack,
		       collector->rows[i].samples);
}

static double usage_seconds(const struct rusage *usage)
{
	return (double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec +
	       ((double)usage->ru_utime.tv_usec + (double)usage->ru_stime.tv_usec) / 1e6;
}

static double share_of(const struct collector *collector, const char *part)
{
	return (double)samples_with(collector, part) / (double)collector->samples;
}

static void assert_share(const struct collector *collector, const char *part, double low,
			 double high)
{
	double share = share_of(collector, part);

	if (!(share >= low && share <= high)) { /* it may be no number */
		print_stacks(collector);
		fail_msg("\"%s\" has %.1f %% of %" PRId64 " samples, not %.0f to %.0f %%", part,
			 100 * share, collector->samples, 100 * low, 100 * high);
	}
}

/* cpu-clock ticks per CPU second. */
static void assert_match(int64_t samples, double cpu_s, double stolen_s, double tolerance)
{
	double expected = cpu_s * FREQUENCY_HZ, more = stolen_s * FREQUENCY_HZ;

	printf("# %" PRId64 " samples, %.1f expected by CPU time, up to %.1f more by stolen time\n",
	       samples, expected, more);
	assert_true((double)samples > (1 - tolerance) * expected - 10);
	assert_true((double)samples < (1 + tolerance) * expected + more + 10);
}

static void assert_samples_match_cpu_time(const struct collector *collector, double tolerance)
{
	assert_match(collector->samples, usage_seconds(&collector->usage), collector->stolen_s,
		     tolerance);
}

static void chain_of_frame_pointers_is_walked(void **state)
{
	struct collector *collector = mem_new(struct collector);

	(void)state;
	run_spin(collector, false, "chain", "2000", NULL);
	assert_samples_match_cpu_time(collector, 0.05);
	assert_share(collector, "main;spin_a;spin_b;spin_c", 0.95, 1);
	assert_true(strlen(collector->build_id) >= 32);
	for (size_t i = 0; i < collector->count; i++) {
		if (!strstr(collector->rows[i].stack, "spin_c"))
			continue;
		assert_string_equal(collector->rows[i].comm, "spin");
		assert_string_equal(collector->rows[i].thread_name, "");
		assert_string_equal(collector->rows[i].executable, spin_name);
	}
	collector_free(collector);
}

static void time_is_split_between_functions(void **state)
{
	struct collector *collector = mem_new(struct collector);

	(void)state;
	run_spin(collector, false, "split", "3000", NULL);
	assert_share(collector, "main;spin_split;spin_small", 0.20, 0.30);
	assert_share(collector, "main;spin_split;spin_large", 0.70, 0.80);
	collector_free(collector);
}

static void short_lived_children_keep_their_stacks(void **state)
{
	struct collector *collector = mem_new(struct collector);

	(void)state;
	run_spin(collector, false, "forks", "60", "20");
	assert_samples_match_cpu_time(collector, 0.2); /* each child's clock starts anew */
	/* The rest is fork and exit, which take what they take on each host. */
	assert_match(samples_with(collector, "main;spin_forks;spin_c"), 60 * 0.02,
		     collector->stolen_s, 0.1);
	collector_free(collector);
}

static void threads_are_sampled_and_named(void **state)
{
	struct collector *collector = mem_new(struct collector);
	bool named[4] = { false };

	(void)state;
	run_spin(collector, true, "threads", "4", "500");
	assert_samples_match_cpu_time(collector, 0.05);
	assert_share(collector, "spin_thread;spin_c", 0.95, 1);
	for (size_t i = 0; i < collector->count; i++)
		for (int n = 0; n < 4; n++) {
			char name[32];

			snprintf(name, sizeof(name), "spinner-%d", n);
			named[n] |= !strcmp(collector->rows[i].thread_name, name);
		}
	for (int n = 0; n < 4; n++)
		assert_true(named[n]);
	collector_free(collector);
}

/*
 * Nearly all samples have the part, but for those that say that the program's table is to come:
 * where other work holds the machine up, it comes after the first of them.
 */
static struct collector *run_with_share(const char *what, const char *first, const char *second,
					const char *part)
{
	struct collector *collector = mem_new(struct collector);

	run_spin(collector, false, what, first, second);
	leave_out(collector, "[truncated: unwind table not loaded yet]");
	assert_share(collector, part, 0.9, 1);
	return collector;
}

static void deep_stacks_are_cut_and_say_so(void **state)
{
	struct collector *collector;

	(void)state;
	collector = run_with_share("deep", "500", "500", "main;spin_deep;spin_deep");
	collector_free(collector);
	collector = run_with_share("deep", "600", "500", "[truncated: too deep];spin_deep");
	assert_share(collector, "main;spin_deep", 0, 0.05);
	collector_free(collector);
}

static void generated_code_is_one_frame(void **state)
{
	(void)state;
	collector_free(run_with_share("anonymous", "500", NULL, "main;spin_anonymous;[anon]"));
}

static double metric_value(const char *line_start)
{
	struct strbuf out = { 0 };
	const char *at;
	double value;

	metrics_render(&out);
	at = strstr(strbuf_text(&out), line_start);
	assert_non_null(at);
	value = strtod(at + strlen(line_start), NULL);
	strbuf_free(&out);
	return value;
}

static void every_sample_drained_is_delivered(void **state)
{
	double drained = metric_value("\nfirn_agent_drained_samples_total ");
	double delivered = metric_value("\nfirn_agent_delivered_samples_total ");
	double taken = metric_value("\nfirn_agent_samples_total ");
	double lost = metric_value("\nfirn_agent_lost_samples_total{reason=\"ring_full\"} ");

	(void)state;
	assert_true(drained > 1000);
	assert_true(drained == delivered);
	assert_true(taken == drained + lost);
	printf("# BPF: %.0f ns per sample, %.0f bytes\n",
	       1e9 * metric_value("\nfirn_agent_bpf_seconds_total ") / taken,
	       metric_value("\nfirn_agent_ring_bytes_total ") / taken);
}

static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

struct stretch {
	double cost;   /* CPU time of this process, the agent's threads, per second */
	double others; /* CPUs that were busy besides the one that is kept so: samples tell */
	double forks;  /* processes and threads of the host that began, per second */
};

static double forks_so_far(void)
{
	char line[4096];
	double forks = -1;
	FILE *file = fopen("/proc/stat", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "processes ", 10))
			forks = strtod(line + 10, NULL);
	fclose(file);
	assert_true(forks >= 0);
	return forks;
}

static struct stretch measure_stretch(void)
{
	const struct timespec length = { .tv_sec = COST_STRETCH_S };
	double drained = metric_value("\nfirn_agent_drained_samples_total "), seconds;
	double forks = forks_so_far();
	int64_t began_ns = clock_monotonic_ns();
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
	getrusage(RUSAGE_SELF, &after);
	seconds = (double)(clock_monotonic_ns() - began_ns) / (double)CLOCK_NS_PER_S;
	drained = metric_value("\nfirn_agent_drained_samples_total ") - drained;
	return (struct stretch){
		.cost = (usage_seconds(&after) - usage_seconds(&before)) / seconds,
		.others = drained / seconds / AGENT_FREQUENCY_DEFAULT_HZ - 1,
		.forks = (forks_so_far() - forks) / seconds,
	};
}

/*
 * The cost of the first stretch in which it is low enough, else the least of those in which others
 * do little: their programs are the agent's work too. Negative when there was neither.
 */
static double measure_cost(void)
{
	double least = -1;

	for (int i = 0; i < COST_ATTEMPTS; i++) {
		struct stretch stretch = measure_stretch();

		printf("# agent: %.3f %% of a core, others: %.1f CPUs, %.1f forks/s\n",
		       100 * stretch.cost, stretch.others, stretch.forks);
		if (stretch.cost < COST_MAX)
			return stretch.cost;
		if (stretch.others <= COST_OTHERS_MAX && stretch.forks <= COST_FORKS_MAX &&
		    (least < 0 || stretch.cost < least))
			least = stretch.cost;
	}
	return least;
}

/*
 * The agent on the whole host with one busy core: what it costs itself, after a first window in
 * which it gets to know the host. On a host that is busy all the time that is told, not judged.
 */
static void sampling_the_host_costs_little(void **state)
{
	struct collector *collector = mem_new(struct collector);
	struct agent_options options = { .target = AGENT_TARGET_HOST,
					 .deliver = collect,
					 .deliver_context = collector };
	struct rusage usage, busy;
	struct agent *agent;
	struct err err = { 0 };
	int go, status;
	pid_t pid = prepare_spin("chain", "30000", NULL, &go);
	double cost, expected;

	(void)state;
	if (agent_start(&options, &agent, &err))
		fail_msg("%s", err.message);
	assert_int_equal(write(go, "g", 1), 1);
	close(go);
	assert_true(agent_wait_window(agent, 30 * CLOCK_NS_PER_S));
	cost = measure_cost();
	agent_stop(agent); /* with samples that wait on their CPUs to be sent */
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* busy all the time */
	kill(pid, SIGKILL);
	assert_int_equal(wait4(pid, &status, 0, &busy), pid);
	expected = usage_seconds(&busy) * AGENT_FREQUENCY_DEFAULT_HZ; /* others had CPUs too */
	getrusage(RUSAGE_SELF, &usage);
	printf("# agent: %ld kB resident, at most %ld kB\n", resident_kb(), usage.ru_maxrss);
	assert_true((double)samples_with(collector, "main;spin_a;spin_b;spin_c") >
		    expected / 2 - 5);
	if (cost < 0)
		printf("# agent: the host is too busy to judge its cost\n");
	assert_true(cost < COST_MAX);
	collector_free(collector);
}

/* Whether the process has exec'd and has used the CPU since. */
static bool is_spinning(pid_t pid)
{
	char path[64], text[512] = "";
	unsigned long ticks = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		fail_msg("read \"%s\"", path);
	fclose(file);
	return strstr(text, "(spin)") &&
	       sscanf(strstr(text, "(spin)"),
		      "(spin) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &ticks) == 1 &&
	       ticks > 10;
}

/* How many samples of the host, or of one process, are cut with this word in the reason. */
static void check_first_samples(enum agent_target target, const char *reason)
{
	struct collector *collector = mem_new(struct collector);
	struct agent_options options = { .frequency_hz = 997,
					 .window_ns = WINDOW_NS,
					 .target = target,
					 .pids_count = target == AGENT_TARGET_PIDS,
					 .deliver = collect,
					 .deliver_context = collector };
	int64_t samples = 0, cut = 0;
	struct agent *agent;
	struct err err = { 0 };
	int go, status;
	pid_t pid = prepare_spin("chain", "60000", NULL, &go);

	options.pids = &pid;
	assert_int_equal(write(go, "g", 1), 1);
	close(go);
	while (!is_spinning(pid))
		usleep(1000);
	if (agent_start(&options, &agent, &err))
		fail_msg("%s", err.message);
	assert_true(agent_wait_window(agent, 60 * CLOCK_NS_PER_S));
	agent_stop(agent);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (size_t i = 0; i < collector->count; i++) {
		if (!strstr(collector->rows[i].stack, "spin_c"))
			continue;
		samples += collector->rows[i].samples;
		if (strstr(collector->rows[i].stack, reason))
			cut += collector->rows[i].samples;
	}
	assert_true(samples > 0);
	assert_int_equal(cut, 0);
	collector_free(collector);
}

static void what_runs_already_is_whole_from_the_first_sample(void **state)
{
	(void)state;
	/* A busy host may have more tables to build than a start waits for. */
	check_first_samples(AGENT_TARGET_HOST, "mappings were changing");
	check_first_samples(AGENT_TARGET_PIDS, "[truncated");
}

static void wrong_requests_are_refused(void **state)
{
	struct agent_options options = { .frequency_hz = 5000, .target = AGENT_TARGET_HOST };
	pid_t nobody = 1 << 22; /* over the limit of pids */
	struct agent *agent = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(agent_start(&options, &agent, &err), -ERR_INVALID);
	options = (struct agent_options){ .target = AGENT_TARGET_PIDS };
	assert_int_equal(agent_start(&options, &agent, &err), -ERR_INVALID);
	options.pids = &nobody;
	options.pids_count = 1;
	assert_int_equal(agent_start(&options, &agent, &err), -ERR_NOT_FOUND);
	assert_null(agent);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_of_frame_pointers_is_walked),
		cmocka_unit_test(time_is_split_between_functions),
		cmocka_unit_test(short_lived_children_keep_their_stacks),
		cmocka_unit_test(threads_are_sampled_and_named),
		cmocka_unit_test(deep_stacks_are_cut_and_say_so),
		cmocka_unit_test(generated_code_is_one_frame),
		cmocka_unit_test(sampling_the_host_costs_little),
		cmocka_unit_test(every_sample_drained_is_delivered),
		cmocka_unit_test(what_runs_already_is_whole_from_the_first_sample),
		cmocka_unit_test(wrong_requests_are_refused),
	};

	if (argc < 2 || geteuid() != 0) {
		printf("1..0 # skip: sampling needs root\n");
		return 77;
	}
	spin_path = argv[1];
	spin_name = realpath(spin_path, NULL);
	read_functions();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
