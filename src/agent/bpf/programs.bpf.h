/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * programs - lists the code of all BPF programs, so that the agent can name it in stacks. Part of
 * sample.bpf.c.
 */
#ifndef FIRN_AGENT_BPF_PROGRAMS_BPF_H
#define FIRN_AGENT_BPF_PROGRAMS_BPF_H

struct program_code program_listed;

/* The functions of one program are written at once, into 32 KiB. */
#define PROGRAM_FUNCTIONS_MAX 200u

struct program_context {
	struct seq_file *seq;
	struct bpf_prog **functions;
};

static __always_inline void list_code(struct seq_file *seq, struct bpf_prog *program)
{
	struct bpf_prog_aux *aux = BPF_CORE_READ(program, aux);

	program_listed.start = BPF_CORE_READ(aux, ksym.start);
	program_listed.end = BPF_CORE_READ(aux, ksym.end);
	if (program_listed.start &&
	    bpf_core_read_str(program_listed.name, PROGRAM_NAME_BYTES, &aux->ksym.name) > 0)
		bpf_seq_write(seq, &program_listed, sizeof(program_listed));
}

/* bpf_loop callback. */
static long list_function(__u32 index, void *data)
{
	const struct program_context *context = data;
	struct bpf_prog *function = NULL;

	bpf_probe_read_kernel(&function, sizeof(function), context->functions + index + 1);
	list_code(context->seq, function);
	return !function;
}

/*
 * Run over all BPF programs when code is looked up that may be of one: writes where their code is,
 * and what the kernel's symbols call it.
 */
SEC("iter/bpf_prog")
int list_programs(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *program = ctx->prog;
	struct program_context context;
	__u32 count;

	if (!program)
		return 0;
	context.seq = ctx->meta->seq;
	list_code(context.seq, program);
	context.functions = BPF_CORE_READ(program, aux, func);
	count = BPF_CORE_READ(program, aux, func_cnt);
	if (!context.functions || count < 2)
		return 0;
	if (count > PROGRAM_FUNCTIONS_MAX)
		count = PROGRAM_FUNCTIONS_MAX;
	bpf_loop(count - 1, list_function, &context, 0);
	return 0;
}

#endif
