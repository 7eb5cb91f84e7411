/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/script_process.h"

static void add_bias(__u64 *address, uint64_t bias)
{
	if (*address)
		*address += bias;
}

struct script_process script_process_of(const struct script_process *file,
					const struct process *process, uint64_t bias,
					uint16_t keys_at)
{
	struct script_process ret = *file;

	ret.start_ns = process->identity.start_ns;
	ret.exec_id = process->identity.exec_id;
	ret.family = process->image_of_parent ? process->parent_pid : process->identity.pid;
	ret.keys_at = keys_at;
	if (ret.state_form != SCRIPT_STATE_STATIC)
		ret.state_at += bias;
	if (ret.key_form != SCRIPT_STATE_STATIC)
		add_bias(&ret.key_at, bias);
	add_bias(&ret.current_at, bias);
	add_bias(&ret.interpreters_at, bias);
	if (ret.kind == SCRIPT_RUBY)
		ret.ruby.code_start += bias;
	else if (ret.kind == SCRIPT_PHP)
		ret.php.code_start += bias;
	else if (ret.kind == SCRIPT_LUA)
		ret.lua.code_start += bias;
	else if (ret.kind == SCRIPT_PUC)
		ret.puc.code_start += bias;
	return ret;
}
