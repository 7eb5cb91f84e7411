/* SPDX-License-Identifier: Apache-2.0 */
#include "store_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "server/persist/disk/vfs.h"

char *store_dir_new(void)
{
	const char *parent = getenv("TMPDIR");
	struct strbuf path = { 0 };

	strbuf_addf(&path, "%s/firn-store-XXXXXX", parent ? parent : "/tmp");
	assert_non_null(mkdtemp(path.data));
	return path.data;
}

static void remove_name(void *context, const char *name)
{
	struct strbuf path = { 0 };

	strbuf_addf(&path, "%s/%s", (const char *)context, name);
	unlink(path.data);
	strbuf_free(&path);
}

void store_dir_remove(char *path)
{
	vfs_posix.list_dir(&vfs_posix, path, remove_name, path);
	rmdir(path);
	free(path);
}
