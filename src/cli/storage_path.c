/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OF_ROOT "/var/lib/firn"

/* A folder from a variable; relative paths do not count, as the XDG specification demands. */
static const char *folder_of(const char *variable)
{
	const char *path = getenv(variable);

	return path && path[0] == '/' ? path : NULL;
}

static int make_above(char *path, struct err *err)
{
	int rc = 0;

	for (char *at = path + 1; !rc && (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			rc = err_set_errno(err, errno, "make the folder \"%s\"", path);
		*at = '/';
	}
	return rc;
}

int storage_path_default(char ret[STORAGE_PATH_BYTES], struct err *err)
{
	const char *data = folder_of("XDG_DATA_HOME"), *home = folder_of("HOME");
	int len;

	if (!geteuid())
		len = snprintf(ret, STORAGE_PATH_BYTES, OF_ROOT);
	else if (data)
		len = snprintf(ret, STORAGE_PATH_BYTES, "%s/firn", data);
	else if (home)
		len = snprintf(ret, STORAGE_PATH_BYTES, "%s/.local/share/firn", home);
	else
		return err_set(err, ERR_INVALID,
			       "neither HOME nor XDG_DATA_HOME is set: give --storage-path");
	if (len >= STORAGE_PATH_BYTES)
		return err_set(err, ERR_INVALID, "\"%s\" is too long: give --storage-path",
			       data ? data : home);
	return make_above(ret, err);
}
