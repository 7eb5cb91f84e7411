/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As glibc's clone3, whose unwind information lacks the system call that makes the thread; and code
 * that is not quite that. Never run.
 */
	.text
	/* The mark, before what lacks information, is where the test finds it. */
	.macro begin name mark
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	mov	$\mark, %eax
	.cfi_endproc
	.endm

	/* What runs in the new thread, and what handles errors. */
	.macro part
	.cfi_startproc
	.endm
	.macro done name
	.cfi_endproc
	.size \name, . - \name
	.endm

	begin makes_thread 0x10001
	syscall
	test	%rax, %rax
	jl	1f
	je	2f
	ret
2:	part
	.cfi_undefined rip
	xor	%ebp, %ebp
	call	*%rdx
	.cfi_endproc
1:	part
	ret
	done makes_thread

	begin handles_errors_far_away 0x10002
	syscall
	test	%rax, %rax
	jl	errors
	je	2f
	ret
2:	part
	.cfi_undefined rip
	xor	%ebp, %ebp
	call	*%rdx
	done handles_errors_far_away

	/* As fork: the child has the callers of its parent. */
	begin makes_process 0x10003
	syscall
	test	%rax, %rax
	jl	1f
	je	2f
	ret
2:	part
	xor	%eax, %eax
1:	ret
	done makes_process

	/* Padding before a thread's start. */
	begin before_padding 0x10004
	.skip	10, 0xcc
	part
	.cfi_undefined rip
	xor	%ebp, %ebp
	hlt
	done before_padding

	.skip	256
	.type errors, @function
errors:
	part
	ret
	done errors

	.section .note.GNU-stack, "", @progbits
