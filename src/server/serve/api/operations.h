/* SPDX-License-Identifier: Apache-2.0 */
/* operations - JSON that the status page and `firn store stat --json` share. */
#ifndef FIRN_SERVER_SERVE_API_OPERATIONS_H
#define FIRN_SERVER_SERVE_API_OPERATIONS_H

#include "codec/wire/json.h"
#include "server/persist/store_admin.h"

/* Writes the object of docs/api.md's status and of `store stat --json`; deletes may be NULL. */
void operations_put_stat(struct json *json, const struct store_stat *stat,
			 const struct store_deletes *deletes);

/* An array: orders to delete, newest first. */
void operations_put_deletes(struct json *json, const struct store_deletes *deletes);

#endif
