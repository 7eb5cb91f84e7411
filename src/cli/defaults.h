/* SPDX-License-Identifier: Apache-2.0 */
/* defaults - what the verbs assume when an option is not given. */
#ifndef FIRN_CLI_DEFAULTS_H
#define FIRN_CLI_DEFAULTS_H

#define DEFAULT_HTTP_ADDRESS "127.0.0.1:7070"
#define DEFAULT_AGENT_HTTP_ADDRESS "127.0.0.1:7071"
#define DEFAULT_SERVER_URL "http://127.0.0.1:7070"
#define DEFAULT_UNWIND_CACHE_PATH "/var/cache/firn/unwind" /* as root; else none */
#define DEFAULT_RETENTION_DAYS 15
#define DEFAULT_SAMPLE_TIMES_DAYS 1
#define DEFAULT_RETENTION_PERCENT 80
#define DEFAULT_RESERVE_PERCENT 5
#define DEFAULT_QUERY_MEMORY_PERCENT 10.0
#define DEFAULT_DEBUGINFO_RETENTION_DAYS 30
#define DEFAULT_DEBUGINFO_RETENTION_PERCENT 10

#endif
