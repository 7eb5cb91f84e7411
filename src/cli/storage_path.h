/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_path - where a server keeps profiles when nobody says: of root /var/lib/firn, else
 * $XDG_DATA_HOME/firn, which is ~/.local/share/firn when that is not set. Never the current
 * folder: it may belong to anyone.
 */
#ifndef FIRN_CLI_STORAGE_PATH_H
#define FIRN_CLI_STORAGE_PATH_H

#include "base/err.h"

#define STORAGE_PATH_BYTES 4096

/*
 * Writes the path and makes the folders above it, for their user alone; the store makes the last
 * one. ERR_INVALID when nothing says where this user's home is.
 */
int storage_path_default(char ret[STORAGE_PATH_BYTES], struct err *err);

#endif
