/* SPDX-License-Identifier: Apache-2.0 */
/* defaults - values that options.def and the verbs both name. */
#ifndef FIRN_CLI_DEFAULTS_H
#define FIRN_CLI_DEFAULTS_H

#define DEFAULT_HTTP_ADDRESS "127.0.0.1:7070"
#define DEFAULT_AGENT_HTTP_ADDRESS "127.0.0.1:7071"
#define DEFAULT_SERVER_URL "http://127.0.0.1:7070"
#define DEFAULT_SAMPLE_LABELS "thread_name"
#define DEFAULT_UNWIND_CACHE_PATH "/var/cache/firn/unwind" /* as root; else none */

/* The environment variable with the token to send when no option names one. */
#define CLIENT_TOKEN_VARIABLE "FIRN_BEARER_TOKEN"

#endif
