/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unknown_path - the handler of POST and PUT to unknown paths: a 404 that names the nearest path.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_UNKNOWN_PATH_H
#define FIRN_SERVER_SERVE_INTAKE_UNKNOWN_PATH_H

void unknown_path_register_metrics(void);

#endif
