/* SPDX-License-Identifier: Apache-2.0 */
/* reflection - what gRPC's reflection knows of the services. Pure functions. */
#ifndef FIRN_SERVER_SERVE_RPC_REFLECTION_H
#define FIRN_SERVER_SERVE_RPC_REFLECTION_H

#include "base/slice.h"

/* True if the server has a service of that name: "package.Service". */
bool reflection_has_service(struct slice name);

#endif
