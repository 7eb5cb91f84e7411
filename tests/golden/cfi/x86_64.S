/* SPDX-License-Identifier: Apache-2.0 */
/* What is written by hand in C libraries and crypto libraries. Never run. */
	.text
	.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro done name
	.cfi_endproc
	.size \name, . - \name
	.endm

	/* As glibc's __restore_rt: all from the signal's context. */
	function signal_return
	.cfi_signal_frame
	.cfi_escape 0x0f, 0x04, 0x77, 0xa0, 0x01, 0x06 /* CFA: *(rsp+160) */
	.cfi_escape 0x10, 0x10, 0x03, 0x77, 0xa8, 0x01 /* rip: at rsp+168 */
	.cfi_escape 0x10, 0x06, 0x03, 0x77, 0xf8, 0x00 /* rbp: at rsp+120 */
	.cfi_escape 0x10, 0x07, 0x03, 0x77, 0xa0, 0x01 /* rsp: at rsp+160 */
	mov	$15, %eax
	syscall
	done signal_return

	function thread_start
	.cfi_undefined rip
	xor	%ebp, %ebp
	hlt
	done thread_start

	/* As glibc's vfork: the return address waits in a register. */
	function keeps_return_address
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rdi
	syscall
	push	%rdi
	.cfi_adjust_cfa_offset 8
	ret
	done keeps_return_address

	/* As glibc's longjmp: another stack. */
	function changes_stack
	nop
	.cfi_def_cfa rdi, 0
	.cfi_register rsp, r8
	.cfi_register rbp, r9
	.cfi_register rip, rdx
	mov	%r8, %rsp
	jmp	*%rdx
	done changes_stack

	/* As OpenSSL: the caller's stack pointer is saved in the frame. */
	function saved_stack_pointer
	mov	%rsp, %rax
	.cfi_def_cfa_register rax
	sub	$256, %rsp
	and	$-64, %rsp
	mov	%rax, 152(%rsp)
	.cfi_escape 0x0f, 0x06, 0x77, 0x98, 0x01, 0x06, 0x23, 0x08 /* CFA: *(rsp+152)+8 */
	nop
	/* *(rsp+8+8*r9)+8 */
	.cfi_escape 0x0f, 0x0a, 0x77, 0x08, 0x79, 0x00, 0x38, 0x1e, 0x22, 0x06, 0x23, 0x08
	nop
	mov	152(%rsp), %rsi
	.cfi_def_cfa rsi, 8
	ret
	done saved_stack_pointer

	function odd_frame_pointers
	.cfi_val_offset rbp, -32
	nop
	.cfi_escape 0x16, 0x06, 0x02, 0x77, 0x10 /* rbp is rsp+16 */
	nop
	.cfi_escape 0x10, 0x06, 0x02, 0x23, 0x10 /* rbp is at CFA+16 */
	nop
	.cfi_register rbp, r11
	nop
	.cfi_undefined rbp
	nop
	.cfi_same_value rbp
	nop
	.cfi_remember_state
	.cfi_offset rbp, -24
	nop
	.cfi_restore rbp
	nop
	.cfi_restore_state
	ret
	done odd_frame_pointers

	/* What no rule can say. */
	function unsupported
	.cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x06, 0x06 /* CFA: ***(rsp+8) */
	nop
	.cfi_def_cfa rsp, 8
	.cfi_escape 0x10, 0x06, 0x04, 0x77, 0x08, 0x06, 0x06 /* rbp: at **(rsp+8) */
	nop
	.cfi_restore rbp
	ret
	done unsupported

	.section .note.GNU-stack, "", @progbits
