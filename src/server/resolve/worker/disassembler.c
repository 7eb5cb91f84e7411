/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/disassembler.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "server/resolve/worker/subprocess.h"

#define VERB "code-worker" /* not among the verbs that help lists */
#define CPU_SECONDS 5
#define DEADLINE_NS (20 * CLOCK_NS_PER_S)
#define DATA_BYTES ((uint64_t)256 << 20)
#define MAPPED_BYTES ((uint64_t)2 << 30)
#define TEXT_BYTES_MAX ((size_t)32 << 20) /* of all instructions */
#define READ_BYTES ((size_t)64 << 10)
#define WORKERS_MAX 2
#define NUMBER_BYTES 32

enum { FD_OUT = SUBPROCESS_FD_FIRST, FD_CODE, FDS };
enum { ARG_VERB = 1, ARG_MACHINE, ARG_ADDRESS, ARGS };

static _Atomic bool is_available;

static struct {
	struct lock lock;
	struct lock_condition changed;
	unsigned running;
} workers = { LOCK_INITIALIZER("disassembler", LOCK_RESOLVE + 2), LOCK_CONDITION_INITIALIZER, 0 };

/*
 * The engines of other processors: defined here, they stay out of the binary. One of them has
 * 65,536 of its relocations, which every start of firn would pay for.
 */
struct cs_struct; /* capstone's own, opaque here */
#define LEFT_OUT(engine)                                                                           \
	cs_err engine##_global_init(struct cs_struct *handle);                                     \
	cs_err engine##_option(struct cs_struct *handle, cs_opt_type type, size_t value);          \
	cs_err engine##_global_init(struct cs_struct *handle)                                      \
	{                                                                                          \
		(void)handle;                                                                      \
		return CS_ERR_ARCH;                                                                \
	}                                                                                          \
	cs_err engine##_option(struct cs_struct *handle, cs_opt_type type, size_t value)           \
	{                                                                                          \
		(void)handle, (void)type, (void)value;                                             \
		return CS_ERR_ARCH;                                                                \
	}

LEFT_OUT(ARM)
LEFT_OUT(EVM)
LEFT_OUT(M680X)
LEFT_OUT(M68K)
LEFT_OUT(Mips)
LEFT_OUT(PPC)
LEFT_OUT(Sparc)
LEFT_OUT(SystemZ)
LEFT_OUT(TMS320C64x)
LEFT_OUT(XCore)

const char *disassembler_architecture(uint16_t machine)
{
	return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "aarch64" : NULL;
}

/* ---- the worker: lines "LENGTH TEXT" for one instruction after the other ---- */

static bool open_engine(uint16_t machine, csh *ret)
{
	bool is_x86 = machine == EM_X86_64;

	return cs_open(is_x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, is_x86 ? CS_MODE_64 : CS_MODE_ARM,
		       ret) == CS_ERR_OK;
}

static void put_bytes(FILE *out, const uint8_t *code, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, "1 .byte 0x%02x\n", code[i]);
}

static void put_all(csh engine, cs_insn *instruction, size_t unit, uint64_t address,
		    struct slice bytes, FILE *out)
{
	const uint8_t *code = (const uint8_t *)bytes.data;
	size_t len = bytes.len;

	while (len) {
		if (cs_disasm_iter(engine, &code, &len, &address, instruction)) {
			fprintf(out, "%u %s%s%s\n", instruction->size, instruction->mnemonic,
				instruction->op_str[0] ? " " : "", instruction->op_str);
			continue;
		}
		if (unit > len)
			unit = len;
		put_bytes(out, code, unit);
		code += unit;
		len -= unit;
		address += unit;
	}
}

int disassembler_write(uint16_t machine, uint64_t address, struct slice code, FILE *out)
{
	size_t unit = machine == EM_X86_64 ? 1 : 4; /* that is passed over */
	cs_insn *instruction;
	csh engine;

	if (!open_engine(machine, &engine))
		return -1;
	instruction = cs_malloc(engine);
	if (instruction) {
		put_all(engine, instruction, unit, address, code, out);
		cs_free(instruction, 1);
	}
	cs_close(&engine);
	return instruction && !fflush(out) ? 0 : -1;
}

static int run_worker(uint16_t machine, uint64_t address)
{
	const struct subprocess_limits limits = {
		.name = "firn-code",
		.cpu_seconds = CPU_SECONDS,
		.data_bytes = DATA_BYTES,
		.mapped_bytes = MAPPED_BYTES,
	};
	uint8_t *code = mem_calloc(DISASSEMBLER_CODE_BYTES_MAX, 1);
	FILE *out = fdopen(FD_OUT, "w");
	ssize_t len = -1;

	if (subprocess_confine(&limits))
		len = pread(FD_CODE, code, DISASSEMBLER_CODE_BYTES_MAX, 0);
	if (len < 0 || !out)
		return 1;
	return disassembler_write(machine, address, slice_from(code, (size_t)len), out) ? 1 : 0;
}

int disassembler_main(int argc, char **argv)
{
	atomic_store(&is_available, true);
	if (argc < 2 || strcmp(argv[1], VERB))
		return -1;
	if (argc != ARGS)
		return 2;
	return run_worker((uint16_t)strtoull(argv[ARG_MACHINE], NULL, 10),
			  strtoull(argv[ARG_ADDRESS], NULL, 10));
}

/* ---- the one who waits for it ---- */

static int code_file(struct slice code, struct err *err)
{
	int fd = memfd_create("firn-code", MFD_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, errno, "make a file in memory");
	if (pwrite(fd, code.data, code.len, 0) == (ssize_t)code.len)
		return fd;
	close(fd);
	return err_set_errno(err, errno, "write a file in memory");
}

static int start(uint16_t machine, uint64_t address, int out, int code, struct subprocess *ret,
		 struct err *err)
{
	char verb[] = VERB, name[] = "firn", machine_text[NUMBER_BYTES], address_text[NUMBER_BYTES];
	char *args[ARGS + 1] = { name, verb, machine_text, address_text, NULL };
	const int fds[] = { out, code };
	int number;

	snprintf(machine_text, sizeof(machine_text), "%u", machine);
	snprintf(address_text, sizeof(address_text), "%" PRIu64, address);
	number = subprocess_start(fds, FDS - SUBPROCESS_FD_FIRST, args, ret);
	return number ? err_set_errno(err, number, "start the process that disassembles") : 0;
}

/* False when it takes too long or says too much. */
static bool read_texts(int fd, struct strbuf *out)
{
	int64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;

	while (clock_monotonic_ns() < deadline_ns && out->len <= TEXT_BYTES_MAX) {
		struct pollfd event = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (poll(&event, 1, SUBPROCESS_POLL_MS) <= 0)
			continue;
		got = read(fd, strbuf_reserve(out, READ_BYTES), READ_BYTES);
		if (got > 0)
			out->len += (size_t)got;
		else if (!got || errno != EINTR)
			return true;
	}
	return false;
}

static int run_process(uint16_t machine, uint64_t address, struct slice code, struct strbuf *out,
		       struct err *err)
{
	int ends[2], rc, status, fd = code_file(code, err);
	bool is_late;
	struct subprocess process;

	if (fd < 0)
		return fd;
	if (pipe2(ends, O_CLOEXEC)) {
		close(fd);
		return err_set_errno(err, errno, "make a pipe");
	}
	rc = start(machine, address, ends[1], fd, &process, err);
	close(ends[1]);
	close(fd);
	if (rc) {
		close(ends[0]);
		return rc;
	}
	is_late = !read_texts(ends[0], out);
	close(ends[0]);
	status = subprocess_reap(&process, is_late);
	if (!is_late && WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return err_set(err, ERR_INVALID, "disassemble: the process that does it %s",
		       is_late ? "took too long"
		       : WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
			       ? "made a system call that it is not allowed (SIGSYS)"
			       : "died");
}

int disassembler_parse(struct slice texts, uint64_t address, size_t code_bytes, struct arena *arena,
		       struct instruction **ret, size_t *ret_count, struct err *err)
{
	struct instruction *list = arena_new_array(arena, struct instruction, code_bytes + 1);
	uint64_t end = address + code_bytes;
	size_t count = 0;

	while (list && texts.len) {
		struct slice line = slice_cut(texts, '\n', &texts), text;
		uint64_t bytes;

		if (!slice_parse_u64(slice_cut(line, ' ', &text), &bytes) || !bytes ||
		    bytes > end - address || !slice_is_utf8(text))
			return err_set(err, ERR_INVALID, "disassemble: a line makes no sense");
		list[count++] =
			(struct instruction){ address, (uint32_t)bytes, arena_copy(arena, text) };
		address += bytes;
	}
	if (!list || arena->over_budget)
		return err_set(err, ERR_NO_MEMORY, "disassemble: over the memory limit");
	*ret = list;
	*ret_count = count;
	return 0;
}

int disassembler_run(uint16_t machine, uint64_t address, struct slice code, struct arena *arena,
		     struct instruction **ret, size_t *ret_count, struct err *err)
{
	struct strbuf texts = { 0 };
	int rc;

	if (!disassembler_architecture(machine))
		return err_set(err, ERR_UNSUPPORTED, "disassemble: machine %u is not known",
			       machine);
	if (code.len > DISASSEMBLER_CODE_BYTES_MAX || address + code.len < address)
		return err_set(err, ERR_LIMIT, "disassemble: %zu bytes of code", code.len);
	if (!atomic_load(&is_available))
		return err_set(err, ERR_UNSUPPORTED, "disassemble: this program cannot run itself");
	lock_take(&workers.lock);
	while (workers.running == WORKERS_MAX)
		lock_wait(&workers.changed, &workers.lock);
	workers.running++;
	lock_give(&workers.lock);
	rc = run_process(machine, address, code, &texts, err);
	lock_take(&workers.lock);
	workers.running--;
	lock_signal(&workers.changed);
	lock_give(&workers.lock);
	if (!rc)
		rc = disassembler_parse(strbuf_slice(&texts), address, code.len, arena, ret,
					ret_count, err);
	strbuf_free(&texts);
	return rc;
}
