/* SPDX-License-Identifier: Apache-2.0 */
/* As hand-written assembly does it: unwind information from behind endbr64 on. */
int padded(void);
int behind(void);
__asm__(".text\n"
	".p2align 4\n"
	".globl padded\n"
	".type padded, @function\n"
	"padded: endbr64\n"
	".cfi_startproc\n"
	"movl $1, %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size padded, .-padded\n"
	".globl behind\n"
	".type behind, @function\n"
	"behind: endbr64\n"
	".cfi_startproc\n"
	"movl $2, %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size behind, .-behind\n");
int main(void)
{
	return padded() + behind() - 3;
}
