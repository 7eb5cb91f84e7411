/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/host_handles.h"

#include <sys/resource.h>

#include "agent/attach/tracepoints.h"

int host_handles_open(struct host_handles *ret, struct err *err)
{
	int code;

	*ret = (struct host_handles){ .kernel = KERNEL_SYMBOL_FILES_NONE };
	code = lender_new(&ret->lender, err);
	if (!code)
		code = root_files_new(&ret->root_files, err);
	if (code)
		return code;
	/* Older kernels count the memory of BPF maps against this limit. */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	tracepoints_prepare();
	kernel_symbols_open(&ret->kernel);
	return 0;
}

void host_handles_close(struct host_handles *handles)
{
	lender_free(handles->lender);
	root_files_unref(handles->root_files);
	kernel_symbols_close(&handles->kernel);
	*handles = (struct host_handles){ .kernel = KERNEL_SYMBOL_FILES_NONE };
}
