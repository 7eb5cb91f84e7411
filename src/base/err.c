/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[ERR_CODES] = {
	[ERR_NONE] = "ok",
	[ERR_INVALID] = "invalid",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_EXISTS] = "exists",
	[ERR_LIMIT] = "limit",
	[ERR_IO] = "io",
	[ERR_CORRUPT] = "corrupt",
	[ERR_NO_SPACE] = "no_space",
	[ERR_READ_ONLY] = "read_only",
	[ERR_BUSY] = "busy",
	[ERR_DENIED] = "denied",
	[ERR_UNAVAILABLE] = "unavailable",
	[ERR_CANCELLED] = "cancelled",
	[ERR_DEADLINE] = "deadline",
	[ERR_NO_MEMORY] = "no_memory",
	[ERR_RATE] = "rate",
	[ERR_QUOTA] = "quota",
	[ERR_UNSUPPORTED] = "unsupported",
};

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
	if (err) {
		va_list args;

		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
	}
	return -(int)code;
}

static enum err_code code_of_errno(int error_number)
{
	switch (error_number) {
	case ENOSPC:
	case EDQUOT:
		return ERR_NO_SPACE;
	case EACCES:
	case EPERM:
		return ERR_DENIED;
	case EROFS:
		return ERR_READ_ONLY;
	case ENOENT:
		return ERR_NOT_FOUND;
	case EEXIST:
		return ERR_EXISTS;
	case ENOMEM:
		return ERR_NO_MEMORY;
	default:
		return ERR_IO;
	}
}

int err_set_errno(struct err *err, int error_number, const char *format, ...)
{
	enum err_code code = code_of_errno(error_number);

	if (err) {
		va_list args;
		size_t used;

		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
		used = strlen(err->message);
		snprintf(err->message + used, sizeof(err->message) - used, ": %s",
			 strerrordesc_np(error_number) ? strerrordesc_np(error_number)
						       : "unknown error");
	}
	return -(int)code;
}

int err_wrap(struct err *err, const char *format, ...)
{
	char context[ERR_MESSAGE_BYTES];
	char cause[ERR_MESSAGE_BYTES];
	va_list args;
	size_t used;

	if (!err)
		return -(int)ERR_INVALID;
	assert(err->code != ERR_NONE);
	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);
	memcpy(cause, err->message, sizeof(cause));
	snprintf(err->message, sizeof(err->message), "%s", context);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof(err->message) - used, ": %s", cause);
	return -(int)err->code;
}

const char *err_code_name(enum err_code code)
{
	return code < ERR_CODES ? code_names[code] : "unknown";
}
