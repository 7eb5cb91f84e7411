/* SPDX-License-Identifier: Apache-2.0 */
/* texts - files of the repository that are served as they are; made by embed_text.py. */
#ifndef FIRN_SERVER_SERVE_TEXTS_H
#define FIRN_SERVER_SERVE_TEXTS_H

#include <stddef.h>

extern const unsigned char text_openapi[]; /* docs/openapi.json */
extern const size_t text_openapi_bytes;

#endif
