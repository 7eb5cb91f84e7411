/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - one line per event on stderr: time, level, module, message, key=value pairs.
 *
 *     log_warn("wal", "segment is short", "file=%s missing_bytes=%zu", name, missing);
 *
 * `pairs` is a printf format of space-separated key=value pairs (values with blanks in double
 * quotes by the caller; quotes inside are escaped here) or NULL. Thread-safe. Library folders
 * (base, codec, model) never log: they return errors.
 */
#ifndef FIRN_BASE_LOG_H
#define FIRN_BASE_LOG_H

#include <stdbool.h>

#include "base/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVELS };
enum log_format { LOG_LOGFMT, LOG_JSON };

void log_set(enum log_level level, enum log_format format);
MUST_USE bool log_parse_level(const char *name, enum log_level *ret);
MUST_USE bool log_parse_format(const char *name, enum log_format *ret);

void log_event(enum log_level level, const char *module, const char *message, const char *pairs,
	       ...) __attribute__((format(printf, 4, 5)));

#define log_debug(module, message, ...) log_event(LOG_DEBUG, module, message, __VA_ARGS__)
#define log_info(module, message, ...) log_event(LOG_INFO, module, message, __VA_ARGS__)
#define log_warn(module, message, ...) log_event(LOG_WARN, module, message, __VA_ARGS__)
#define log_error(module, message, ...) log_event(LOG_ERROR, module, message, __VA_ARGS__)

#endif
