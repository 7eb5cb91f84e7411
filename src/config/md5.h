/* SPDX-License-Identifier: Apache-2.0 */
/*
 * md5 - the digest of RFC 1321, for compatibility only (hashmod in relabelling). Never use it
 * against an attacker. Any thread.
 */
#ifndef FIRN_CONFIG_MD5_H
#define FIRN_CONFIG_MD5_H

#include <stddef.h>
#include <stdint.h>

#define MD5_BYTES 16

void md5(const void *data, size_t len, uint8_t ret[MD5_BYTES]);

#endif
