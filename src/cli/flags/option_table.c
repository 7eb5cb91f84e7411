/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/option_table.h"

#include <limits.h>

#include "agent/agent.h"
#include "cli/defaults.h"
#include "server/query/render/render_export.h"

#define TEXT_OF_IT(text) #text
#define TEXT_OF(macro) TEXT_OF_IT(macro)

#define OPTION(id, ...) [OPT_##id] = { __VA_ARGS__ },
const struct option_spec option_table[OPTION_IDS_COUNT] = {
#include "cli/flags/options.def"
};
