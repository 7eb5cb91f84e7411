/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_path - the default storage directory: /var/lib/firn for root, else $XDG_DATA_HOME/firn,
 * or ~/.local/share/firn if that is not set. Never the current folder, which may belong to anyone.
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
