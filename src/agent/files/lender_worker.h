/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lender_worker - the other side of the lender: the process that starts workers, and the workers.
 * They end with the one who forked them.
 */
#ifndef FIRN_AGENT_FILES_LENDER_WORKER_H
#define FIRN_AGENT_FILES_LENDER_WORKER_H

/* The starter's body, in a process of its own: obeys orders (lender_wire.h) until `fd` ends. */
_Noreturn void lender_starter_run(int fd);

#endif
