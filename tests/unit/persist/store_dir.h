/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_dir - an empty directory for a store on the real disk, in TMPDIR or /tmp.
 */
#ifndef FIRN_TESTS_PERSIST_STORE_DIR_H
#define FIRN_TESTS_PERSIST_STORE_DIR_H

char *store_dir_new(void);

/* With all files in it; frees the path. */
void store_dir_remove(char *path);

#endif
