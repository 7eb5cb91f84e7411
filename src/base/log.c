/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/printable.h"

#define DETAIL_BYTES 2048 /* what is longer is cut */

static const char *const level_names[LOG_LEVELS] = { "debug", "info", "warn", "error" };

static _Atomic enum log_level level_min = LOG_INFO;
static _Atomic enum log_format line_format = LOG_LOGFMT;
static struct lock write_lock = LOCK_INITIALIZER("log", LOCK_LOG);

void log_set(enum log_level level, enum log_format format)
{
	level_min = level;
	line_format = format;
}

bool log_parse_level(const char *name, enum log_level *ret)
{
	for (int i = 0; i < LOG_LEVELS; i++) {
		if (!strcmp(name, level_names[i])) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

bool log_parse_format(const char *name, enum log_format *ret)
{
	if (!strcmp(name, "logfmt"))
		*ret = LOG_LOGFMT;
	else if (!strcmp(name, "json"))
		*ret = LOG_JSON;
	else
		return false;
	return true;
}

/* True if a quotation mark ends a value: the line ends there, or the next key=value begins. */
static bool ends_value(const char *quote)
{
	const char *key = quote + 2;

	if (!quote[1])
		return true;
	return quote[1] == ' ' && key[strspn(key, "abcdefghijklmnopqrstuvwxyz_")] == '=';
}

/* key=value pairs; quotation marks inside of a quoted value (a message's operand) are escaped. */
static void add_pairs(struct strbuf *line, const char *pairs)
{
	for (const char *at = pairs; *at; at++) {
		bool begins = at > pairs && at[-1] == '=';

		if (*at == '"' && !begins && !ends_value(at))
			strbuf_add_byte(line, '\\');
		strbuf_add_byte(line, *at);
	}
}

static void add_quoted(struct strbuf *line, const char *text)
{
	strbuf_add_byte(line, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			strbuf_add_byte(line, '\\');
		strbuf_add_byte(line, *text);
	}
	strbuf_add_byte(line, '"');
}

static void add_time(struct strbuf *line)
{
	int64_t now = clock_real_ns();
	time_t seconds = (time_t)(now / CLOCK_NS_PER_S);
	struct tm utc;
	char text[32];

	gmtime_r(&seconds, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	strbuf_addf(line, "%s.%03dZ", text, (int)(now / CLOCK_NS_PER_MS % 1000));
}

void log_event(enum log_level level, const char *module, const char *message, const char *pairs,
	       ...)
{
	bool json = line_format == LOG_JSON;
	struct strbuf line = { 0 }, shown = { 0 };
	char detail[DETAIL_BYTES] = "";

	if (level < level_min)
		return;
	if (pairs) {
		va_list args;

		va_start(args, pairs);
		vsnprintf(detail, sizeof(detail), pairs, args);
		va_end(args);
	}
	strbuf_add_text(&line, json ? "{\"ts\":\"" : "ts=");
	add_time(&line);
	if (json) {
		strbuf_addf(&line, "\",\"level\":\"%s\",\"module\":\"%s\"", level_names[level],
			    module);
		strbuf_add_text(&line, ",\"msg\":");
		add_quoted(&line, message);
		strbuf_add_text(&line, ",\"detail\":");
		add_quoted(&line, detail);
		strbuf_add_byte(&line, '}');
	} else {
		strbuf_addf(&line, " level=%s module=%s msg=", level_names[level], module);
		add_quoted(&line, message);
		if (detail[0]) {
			strbuf_add_byte(&line, ' ');
			add_pairs(&line, detail);
		}
	}
	/* Text from outside can neither end our line, nor break the JSON, nor command terminals. */
	printable_add(&shown, strbuf_slice(&line));
	strbuf_add_byte(&shown, '\n');
	lock_take(&write_lock);
	fwrite(shown.data, 1, shown.len, stderr);
	fflush(stderr);
	lock_give(&write_lock);
	strbuf_free(&line);
	strbuf_free(&shown);
}
