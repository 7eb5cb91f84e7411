/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - error values with context.
 *
 * A fallible function returns 0 or a negative code and, when it fails, fills the caller's
 * `struct err`, which has a fixed size so that reporting a failure cannot itself fail.
 * A message names the operation, the operand in quotes and the cause:
 *     open segment "0012.wal": checksum mismatch at offset 4096
 * A function logs or returns, never both. Passing a NULL `struct err *` is allowed.
 */
#ifndef FIRN_BASE_ERR_H
#define FIRN_BASE_ERR_H

#define ERR_MESSAGE_BYTES 512

/* Stands before a function that can fail, so that no caller forgets to ask whether it did. */
#define MUST_USE __attribute__((warn_unused_result))

/* Kinds of failure. net/http/response.c maps them to HTTP and gRPC statuses. */
enum err_code {
	ERR_NONE = 0,
	ERR_INVALID,	 /* the caller's bytes or arguments are wrong; retrying cannot help */
	ERR_NOT_FOUND,	 /* nothing matches */
	ERR_EXISTS,	 /* it is there already */
	ERR_LIMIT,	 /* over a stated limit */
	ERR_IO,		 /* the operating system failed an operation */
	ERR_CORRUPT,	 /* stored bytes fail their checks */
	ERR_NO_SPACE,	 /* the disk is full, or over its watermark */
	ERR_READ_ONLY,	 /* the store refuses writes (poisoned or opened so) */
	ERR_BUSY,	 /* held by someone else; a later try may succeed */
	ERR_DENIED,	 /* no privilege */
	ERR_UNAVAILABLE, /* the peer cannot be reached, or is shutting down */
	ERR_CANCELLED,	 /* the caller went away */
	ERR_DEADLINE,	 /* out of time */
	ERR_NO_MEMORY,	 /* over a memory budget */
	ERR_UNSUPPORTED, /* valid, but not something this build or host can do */
	ERR_RATE,	 /* over a rate, or a number at once; a later try may succeed */
	ERR_QUOTA,	 /* over a limit of this user; the same again does not help */
	ERR_CODES
};

struct err {
	enum err_code code;
	char message[ERR_MESSAGE_BYTES]; /* never ends in a newline; cut at the buffer's end */
};

/* Fills `err` (when not NULL) and returns -code: callers write `return err_set(...)`. */
int err_set(struct err *err, enum err_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Like err_set, with ": strerror(error_number)"; ENOSPC, EACCES and EPERM choose their code. */
int err_set_errno(struct err *err, int error_number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Puts "context: " before the message of an error that is set; returns -err->code. With a NULL
 * `err` the code is lost and -ERR_INVALID comes back: who needs the code passes an err.
 */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A stable lower-case name of the code, for logs and JSON. */
const char *err_code_name(enum err_code code);

#endif
