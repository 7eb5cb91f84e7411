/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_file - a file that appears whole or not at all: written under a temporary name beside
 * it, synced and renamed. "-" is standard output.
 */
#ifndef FIRN_CLI_OUTPUT_FILE_H
#define FIRN_CLI_OUTPUT_FILE_H

#include "base/err.h"
#include "base/slice.h"

int output_file_write(const char *path, struct slice bytes, struct err *err);

/* The same of text that others have a part in: printable (base/printable.h). */
int output_file_print(const char *path, struct slice text, struct err *err);

#endif
