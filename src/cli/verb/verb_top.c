/* SPDX-License-Identifier: Apache-2.0 */
/* firn top - what runs now, by function, in the terminal; no server needed. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/printable.h"
#include "codec/wire/utf8.h"
#include "cli/defaults.h"
#include "cli/output_file.h"
#include "cli/pids.h"
#include "cli/verb.h"
#include "server/query/tree/functions.h"
#include "server/query/query.h"
#include "server/resolve/resolver.h"

#define TOP_INTERVAL_MIN_NS (200 * CLOCK_NS_PER_MS)
#define NAMES_PATIENCE_NS (500 * CLOCK_NS_PER_MS)
#define LOOK_EVERY_MS 100
#define SEARCH_BYTES_MAX 64
#define HEAD_LINES 3
#define ROWS_PLAIN 30 /* where there is no terminal */
#define COLUMNS_PLAIN 1000
#define ROWS_UNKNOWN 24
#define COLUMNS_UNKNOWN 80
#define TYPE "on_cpu:samples:count:cpu:nanoseconds:delta"

struct top_verb_options {
	struct verb_common common;
	const char *pids;
	int64_t interval_ns;
	unsigned frequency_hz;
	bool all;
};

#define AT(member) offsetof(struct top_verb_options, member)

static const struct option options[] = {
	OPTION_AT(TOP_ALL, AT(all)),
	OPTION_AT(TOP_PID, AT(pids)),
	OPTION_AT(INTERVAL, AT(interval_ns)),
	OPTION_AT(FREQUENCY, AT(frequency_hz)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "top",
	.operands = "",
	.summary = "show what runs now, by function, in the terminal",
	.details = "Keys: f sorts by the function itself, c by the function with its callees; /\n"
		   "searches for a name; space pauses; q quits. If standard output is not a "
		   "terminal,\n"
		   "one table is printed.\n"
		   "\n"
		   "  sudo firn top\n"
		   "  sudo firn top -p \"$(pidof nginx | tr ' ' ,)\"\n"
		   "  sudo firn top -d 10s | head -20",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

/* What the agent delivered last, until it is shown. */
struct live {
	struct lock lock;
	struct lock_condition came;
	struct tables tables;
	bool fresh;
	struct resolver *resolver;
};

/* What is on the screen. */
struct screen {
	struct live *live;
	const struct top_verb_options *values;
	struct tree *tree;
	struct functions functions;
	uint32_t *order;
	bool by_cum, held, searching, quit, tty;
	char search[SEARCH_BYTES_MAX + 1];
	struct termios before;
};

static void take(void *context, const struct tables_view *batch)
{
	struct live *live = context;
	struct tables_copy copy;

	lock_take(&live->lock);
	tables_reset(&live->tables);
	tables_copy_begin(&copy, &live->tables, batch);
	for (uint32_t i = 0; i < batch->reports_count; i++)
		if (!tables_copy_report(&copy, i))
			break;
	tables_copy_end(&copy);
	live->fresh = true;
	lock_signal(&live->came);
	lock_give(&live->lock);
}

static bool lend(void *context, const struct agent_binary *binary)
{
	struct live *live = context;

	resolver_offer(live->resolver, binary->build_id, binary->path, binary->fd);
	return true;
}

static int sum_up(struct live *live, int64_t names_until_ns, struct tree **ret, struct err *err)
{
	struct tables_view view = tables_view_of(&live->tables);
	struct segment segment;
	struct query_source source = { &segment, 1, live->resolver, NULL };
	struct query_params params = { .from_ns = INT64_MIN,
				       .to_ns = INT64_MAX,
				       .demangle = DEMANGLE_SIMPLE,
				       .nodes_only = true };
	struct selector selector;
	int rc = selector_parse(slice_of(TYPE), &selector, err);

	if (rc)
		return rc;
	params.selector = &selector;
	params.limits.names_until_ns = names_until_ns;
	segment_of_tables(&segment, &view);
	rc = query_tree(&source, &params, ret, err);
	selector_free(&selector);
	return rc;
}

static int64_t key_of(const struct screen *screen, uint32_t row)
{
	const struct functions_value *value = &screen->functions.rows[row].value;

	return screen->by_cum ? value->cum : value->flat;
}

static int row_order(const void *left, const void *right, void *context)
{
	const struct screen *screen = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int64_t x = key_of(screen, a), y = key_of(screen, b);

	if (x != y)
		return x > y ? -1 : 1;
	return slice_compare(screen->functions.rows[a].name, screen->functions.rows[b].name);
}

static void sort_rows(struct screen *screen)
{
	if (screen->functions.rows_count)
		qsort_r(screen->order, screen->functions.rows_count, sizeof(*screen->order),
			row_order, screen);
}

/* The newest table, if there is a newer one. */
static int refresh(struct screen *screen, struct err *err)
{
	struct tree *tree = NULL;
	int rc = 0;

	lock_take(&screen->live->lock);
	if (screen->live->fresh && !screen->held) {
		/* A table that stays waits for its names; the next one of many will have them. */
		rc = sum_up(screen->live,
			    screen->tty ? clock_monotonic_ns() + NAMES_PATIENCE_NS : 0, &tree, err);
		screen->live->fresh = false;
	}
	lock_give(&screen->live->lock);
	if (rc || !tree)
		return rc;
	functions_free(&screen->functions);
	free(screen->order);
	tree_free(screen->tree);
	screen->tree = tree;
	functions_make(&screen->functions, tree);
	screen->order = mem_new_array(uint32_t, (size_t)screen->functions.rows_count + 1);
	for (uint32_t i = 0; i < screen->functions.rows_count; i++)
		screen->order[i] = i;
	sort_rows(screen);
	return 0;
}

static bool is_shown(const struct screen *screen, const struct functions_row *row)
{
	return (row->value.flat || row->value.cum) &&
	       (!screen->search[0] ||
		(row->name.len &&
		 memmem(row->name.data, row->name.len, screen->search, strlen(screen->search))));
}

/* A line of at most `columns` bytes, whole characters, nothing that a terminal would obey. */
static void add_line(const struct screen *screen, struct strbuf *out, const struct strbuf *line,
		     size_t columns)
{
	struct strbuf shown = { 0 };

	printable_add(&shown, strbuf_slice(line));
	strbuf_add_slice(out, utf8_cut(strbuf_slice(&shown), columns));
	strbuf_free(&shown);
	strbuf_add_text(out, screen->tty ? "\033[K\r\n" : "\n");
}

static void draw_head(const struct screen *screen, size_t columns, struct strbuf *out)
{
	const struct tree *tree = screen->tree;
	double seconds = (double)tree->duration_ns / CLOCK_NS_PER_S;
	struct strbuf line = { 0 };

	strbuf_addf(&line, "firn top: %" PRId64 " samples in %.1f s, %.2f CPUs busy%s", tree->total,
		    seconds,
		    seconds > 0 ? (double)tree->total / screen->values->frequency_hz / seconds : 0,
		    screen->held ? "; held" : "");
	add_line(screen, out, &line, columns);
	strbuf_clear(&line);
	if (screen->tty)
		strbuf_addf(&line, "%s%s%s", screen->searching || screen->search[0] ? "/" : "",
			    screen->search,
			    screen->searching	? "_"
			    : screen->search[0] ? "   (Esc: all)"
						: "f self  c total  / search  space hold  q quit");
	if (screen->tty)
		add_line(screen, out, &line, columns);
	strbuf_clear(&line);
	strbuf_addf(&line, "%7s%s %7s%s  function", "self%", screen->by_cum ? " " : "*", "total%",
		    screen->by_cum ? "*" : " ");
	add_line(screen, out, &line, columns);
	strbuf_free(&line);
}

static int draw(const struct screen *screen, struct err *err)
{
	struct winsize size = { .ws_row = ROWS_PLAIN + HEAD_LINES, .ws_col = COLUMNS_PLAIN };
	struct strbuf out = { 0 }, line = { 0 };
	uint32_t left;
	int rc;

	if (!screen->tree)
		return 0;
	if (screen->tty)
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	if (!size.ws_row || !size.ws_col) /* a terminal that does not know its size */
		size = (struct winsize){ .ws_row = ROWS_UNKNOWN, .ws_col = COLUMNS_UNKNOWN };
	left = size.ws_row > HEAD_LINES + 1 ? size.ws_row - HEAD_LINES - 1u : 0;
	if (screen->tty)
		strbuf_add_text(&out, "\033[H");
	draw_head(screen, size.ws_col, &out);
	for (uint32_t i = 0; i < screen->functions.rows_count && left; i++) {
		const struct functions_row *row = &screen->functions.rows[screen->order[i]];
		double total = (double)screen->tree->total / 100;

		if (!is_shown(screen, row))
			continue;
		strbuf_clear(&line);
		strbuf_addf(&line, "%6.2f%%  %6.2f%%   ", (double)row->value.flat / total,
			    (double)row->value.cum / total);
		strbuf_add_slice(&line, row->name);
		add_line(screen, &out, &line, size.ws_col);
		left--;
	}
	if (screen->tty)
		strbuf_add_text(&out, "\033[J");
	rc = output_file_write("-", strbuf_slice(&out), err);
	strbuf_free(&out);
	strbuf_free(&line);
	return rc;
}

static void take_search_key(struct screen *screen, char key)
{
	size_t len = strlen(screen->search);

	if (key == '\r' || key == '\n' || key == '\033')
		screen->searching = false;
	if (key == '\033')
		memset(screen->search, 0, sizeof(screen->search));
	else if ((key == 0x7f || key == '\b') && len)
		screen->search[len - 1] = 0;
	else if ((unsigned char)key >= ' ' && key != 0x7f && len < SEARCH_BYTES_MAX)
		screen->search[len] = key; /* zeros follow, always */
}

static void take_key(struct screen *screen, char key)
{
	if (screen->searching) {
		take_search_key(screen, key);
		return;
	}
	switch (key) {
	case 'q':
		screen->quit = true;
		break;
	case 'f':
	case 'c':
		screen->by_cum = key == 'c';
		sort_rows(screen);
		break;
	case ' ':
		screen->held = !screen->held;
		break;
	case '/':
		screen->searching = true;
		break;
	case '\033':
		memset(screen->search, 0, sizeof(screen->search));
		break;
	default:
		break;
	}
}

static void take_keys(struct screen *screen)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char keys[64];
	ssize_t count;

	if (poll(&input, 1, LOOK_EVERY_MS) <= 0)
		return;
	count = read(STDIN_FILENO, keys, sizeof(keys));
	if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
		screen->quit = true;
	for (ssize_t i = 0; i < count; i++)
		take_key(screen, keys[i]);
}

/* The terminal as it is needed, on a page of its own; and as it was. */
static int open_terminal(struct screen *screen, struct err *err)
{
	struct termios raw;

	tcgetattr(STDIN_FILENO, &screen->before);
	raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE; /* or it would stay like this */
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	return output_file_write("-",
				 SLICE_LITERAL("\033[?1049h\033[?25l\033[2J\033[Hfirn top: "
					       "the first samples are coming ..."),
				 err);
}

static int close_terminal(const struct screen *screen, struct err *err)
{
	int rc = output_file_write("-", SLICE_LITERAL("\033[?25h\033[?1049l"), err);

	tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
	return rc;
}

static bool is_told_to_end(void)
{
	int number = verb_wait_signal(0);

	return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

static int show_live(struct screen *screen, struct err *err)
{
	int rc = open_terminal(screen, err), closed;

	while (!rc && !screen->quit && !is_told_to_end()) {
		rc = refresh(screen, err);
		if (!rc)
			rc = draw(screen, err);
		take_keys(screen);
	}
	closed = close_terminal(screen, rc ? NULL : err);
	return rc ? rc : closed;
}

static int show_once(struct screen *screen, struct err *err)
{
	int rc;

	lock_take(&screen->live->lock);
	while (!screen->live->fresh && !is_told_to_end()) {
		lock_wait_until(&screen->live->came, &screen->live->lock,
				clock_monotonic_ns() + CLOCK_NS_PER_S);
	}
	lock_give(&screen->live->lock);
	rc = refresh(screen, err);
	return rc ? rc : draw(screen, err);
}

static int top(const struct top_verb_options *values, struct err *err)
{
	struct live live = { .lock = LOCK_INITIALIZER("top.live", LOCK_CLI),
			     .came = LOCK_CONDITION_INITIALIZER };
	struct screen screen = { .live = &live,
				 .values = values,
				 .tty = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) };
	struct resolver_options resolve = { .local_files = true };
	struct agent *agent = NULL;
	pid_t pids[PIDS_MAX];
	size_t count = 0;
	int rc = 0;

	if (values->pids)
		rc = pids_parse(values->pids, pids, &count, err);
	if (!rc)
		rc = resolver_new(&resolve, &live.resolver, err);
	tables_init(&live.tables);
	if (!rc) {
		struct agent_options start = {
			.frequency_hz = values->frequency_hz,
			.window_ns = values->interval_ns,
			.target = values->pids ? AGENT_TARGET_PIDS : AGENT_TARGET_HOST,
			.pids = pids,
			.pids_count = count,
			.deliver = take,
			.deliver_context = &live,
			.binary_seen = lend,
			.binary_seen_context = &live,
			.command = "firn top",
			.unwind_cache_path = geteuid() ? NULL : DEFAULT_UNWIND_CACHE_PATH,
		};

		rc = agent_start(&start, &agent, err);
	}
	if (!rc)
		rc = screen.tty ? show_live(&screen, err) : show_once(&screen, err);
	agent_stop(agent);
	functions_free(&screen.functions);
	free(screen.order);
	tree_free(screen.tree);
	resolver_free(live.resolver);
	tables_free(&live.tables);
	return rc;
}

static int run(int argc, char **argv)
{
	struct top_verb_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_top, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (values.all && values.pids) {
		err_set(&err, ERR_INVALID, "give -a or -p PID, not both");
		return verb_error(&verb_top, &err);
	}
	if (values.interval_ns < TOP_INTERVAL_MIN_NS) {
		err_set(&err, ERR_INVALID, "--interval: at least 200ms");
		return verb_error(&verb_top, &err);
	}
	verb_block_signals();
	verb_raise_file_limit();
	return top(&values, &err) ? verb_error(&verb_top, &err) : VERB_OK;
}

const struct verb verb_top = { &spec, run, LOG_ERROR };
