/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that have of a runtime what the agent knows it by, and where it looks for the rest: seeds of
 * runtime_file_fuzz. corpus/README.md says how they are made.
 */
#define FUNCTION(name)                                                                             \
	.globl name;                                                                               \
	.type name, @function;                                                                     \
	name:                                                                                      \
	.cfi_startproc;

#define END(name)                                                                                  \
	.cfi_endproc;                                                                              \
	.size name, . - name;

#define VARIABLE(name, bytes)                                                                      \
	.globl name;                                                                               \
	.type name, @object;                                                                       \
	.size name, bytes;                                                                         \
	name:

/* Of a thread; the function returns its value. */
#define THREAD_VARIABLE(reader)                                                                    \
	.section .tbss, "awT", @nobits;                                                            \
	.p2align 3;                                                                                \
	thread_state: .skip 8;                                                                     \
	.text;                                                                                     \
	FUNCTION(reader)                                                                           \
	movq thread_state@gottpoff(%rip), %rax;                                                    \
	movq %fs:(%rax), %rax;                                                                     \
	ret;                                                                                       \
	.skip 64;                                                                                  \
	END(reader)

#if defined(PYTHON_313) || defined(PYTHON_313T) || defined(PYTHON_314) || defined(PYTHON_315)

	.data
	.p2align 3
runtime:
VARIABLE(_PyRuntime, 8 + 8 * 128)
	.ascii "xdebugpy"
#if defined(PYTHON_313T) /* free-threaded: objects begin with 32 bytes */
	.quad 304, 0, 8, 16, 72			     /* a thread */
	.quad 80, 8, 0, 56, 72, 70		     /* a frame */
	.quad 128, 136, 144, 152, 84, 68, 0, 0, 216  /* a code object */
	.quad 32, 24, 432			     /* an object, and a type */
	.quad 56, 32, 48, 80, 48, 32, 56	     /* bytes, text */
#else
	.quad 200, 0, 8, 16, 72			    /* a thread */
	.quad 88, 8, 0, 56, 72, 70		    /* a frame */
	.quad 112, 120, 128, 136, 68, 20, 0, 0, 200 /* a code object */
	.quad 16, 8, 400			    /* an object, and a type */
	.quad 40, 16, 32, 72, 32, 16, 40	    /* bytes, text */
#endif
	.skip 8 * (128 - 30)
VARIABLE(Py_Version, 4)
#if defined(PYTHON_313) || defined(PYTHON_313T)
	.long 0x030d01f0
#elif defined(PYTHON_314)
	.long 0x030e0af0
#else
	.long 0x030f02f0
#endif
VARIABLE(PyCode_Type, 8)
	.quad 0
	THREAD_VARIABLE(_PyThreadState_GetCurrent)
#if defined(PYTHON_313T) /* the key is kept over a call */
FUNCTION(PyGILState_GetThisThreadState)
	leaq runtime + 8 * 64(%rip), %rbx
	movq %rbx, %rdi
	jmp *(%rdi)
	.skip 64
END(PyGILState_GetThisThreadState)
#elif defined(PYTHON_314) /* a program at a fixed address; the key is a word of its own */
FUNCTION(PyGILState_GetThisThreadState)
	movl $_PyRuntime + 8 * 64, %edi
	jmp *(%rdi)
	.skip 64
END(PyGILState_GetThisThreadState)
#elif defined(PYTHON_315)
	.section .tbss, "awT", @nobits
first_state: .skip 8
	.text
FUNCTION(PyGILState_GetThisThreadState)
	movq first_state@gottpoff(%rip), %rax
	movq %fs:(%rax), %rax
	ret
	.skip 64
END(PyGILState_GetThisThreadState)
#endif
FUNCTION(_PyEval_EvalFrameDefault)
	.skip 64
END(_PyEval_EvalFrameDefault)

#elif defined(PYTHON_36)

	.data
VARIABLE(_PyThreadState_Current, 8)
	.quad 0
VARIABLE(PyCode_Type, 8)
	.quad 0
key:	.long 0
	.text
FUNCTION(PyGILState_GetThisThreadState)
	movl key(%rip), %edi
	ret
	.skip 64
END(PyGILState_GetThisThreadState)
FUNCTION(_PyEval_EvalFrameDefault)
	.skip 64
END(_PyEval_EvalFrameDefault)

#elif defined(RUBY_31)

	.data
VARIABLE(ruby_version, 6)
	.asciz "3.1.2"
ids:	.skip 64
	THREAD_VARIABLE(rb_current_ec_noinline)
FUNCTION(rb_sym_all_symbols)
	movq ids + 8(%rip), %rdi
	movq ids + 8(%rip), %rax
	ret
	.skip 128
END(rb_sym_all_symbols)
FUNCTION(rb_iseq_eval_main)
	nop
	.byte 0xe9
	.long loop - . - 4
END(rb_iseq_eval_main)
FUNCTION(rb_iseq_eval)
	.byte 0xe9
	.long loop - . - 4
END(rb_iseq_eval)
loop:
	.cfi_startproc
	.skip 64
	.cfi_endproc
FUNCTION(behind_the_loop)
	.cfi_def_cfa_offset 16
	.cfi_def_cfa_offset 24
	.cfi_def_cfa_offset 32
	.cfi_def_cfa_offset 40
	.cfi_def_cfa_offset 48
	ret
END(behind_the_loop)

#elif defined(PHP_82)

	.data
	.asciz "API20220829,NTS"
	.asciz "Zend Engine v4.2.36, Copyright"
	.bss
VARIABLE(executor_globals, 1024)
globals:
	.skip 1024
	.text
FUNCTION(zend_vm_kind)
	movl $4, %eax
	ret
	.skip 8
END(zend_vm_kind)
FUNCTION(zend_get_executed_scope)
	movq globals + 488(%rip), %rax
	ret
	.skip 48
END(zend_get_executed_scope)
/* A frame whose size is said to be 0: no compiler writes that. */
FUNCTION(execute_ex)
	pushq %rbp
	movq %rsp, %rbp
	pushq %rbx
	subq $0, %rsp
	.skip 64
END(execute_ex)

#elif defined(DOTNET_8)

	.data
VARIABLE(g_dacTable, 8)
	.quad 0
	.asciz "@(#)Version 8.0.3026.36720"

#elif defined(MONO_6)

	.data
	.p2align 3
root:	.quad 0
list:	.quad 0
count:	.short 0
	.p2align 3
version: .asciz "6.8.0.105 "
	.skip 16
	.text
#define GETTER(name, at)                                                                           \
	FUNCTION(name)                                                                             \
	movq at(%rdi), %rax;                                                                       \
	ret;                                                                                       \
	.skip 96;                                                                                  \
	END(name)
GETTER(mono_jit_info_get_code_start, 16)
FUNCTION(mono_jit_info_get_code_size)
	movl 28(%rdi), %eax
	ret
	.skip 64
END(mono_jit_info_get_code_size)
FUNCTION(mono_jit_info_get_method)
	movzbl 35(%rdi), %eax
	testb $1, %al
	testb $8, %al
	movq (%rdi), %rax
	ret
	.skip 64
END(mono_jit_info_get_method)
GETTER(mono_method_get_class, 8)
GETTER(mono_method_get_name, 24)
GETTER(mono_class_get_nesting_type, 56)
GETTER(mono_class_get_name, 72)
GETTER(mono_class_get_namespace, 80)
FUNCTION(mono_get_root_domain)
	movq root(%rip), %rax
	ret
	.skip 64
END(mono_get_root_domain)
FUNCTION(mono_domain_get_by_id)
	movzwl count(%rip), %eax
	movq list(%rip), %rax
	ret
	.skip 160
END(mono_domain_get_by_id)
FUNCTION(mono_get_runtime_build_info)
	leaq version(%rip), %rsi
	ret
	.skip 64
END(mono_get_runtime_build_info)

#elif defined(BEAM_25)

	.data
VARIABLE(etp_otp_release, 3)
	.asciz "25"
	.p2align 3
VARIABLE(etp_beamasm, 4)
	.long 1
VARIABLE(the_active_code_index, 4)
	.long 0
VARIABLE(erts_atom_table, 8)
	.quad 0
VARIABLE(erts_frame_layout, 4)
	.long 0
VARIABLE(beam_normal_exit, 8)
	.quad 0
key:	.long 0
ranges:	.skip 96
	.text
FUNCTION(erts_lookup_function_info)
	.byte 0xe8
	.long lookup - . - 4
	leaq 0x58(%rax), %rdx
	ret
	.skip 96
END(erts_lookup_function_info)
lookup:
	leaq ranges(%rip), %rax
	ret
	.skip 48
FUNCTION(erts_get_scheduler_data)
	movl key(%rip), %edi
	ret
	.skip 48
END(erts_get_scheduler_data)

#elif defined(LUAJIT_21)

	.data
VARIABLE(luaJIT_setmode, 8)
	.quad 0
VARIABLE(luaJIT_version_2_1_0_beta3, 8)
	.quad 0
	.text
FUNCTION(lua_gettop)
	movq 40(%rdi), %rax
	subq 32(%rdi), %rax
	ret
	.skip 16
END(lua_gettop)
FUNCTION(lua_isyieldable)
	movq 80(%rdi), %rax
	ret
	.skip 16
END(lua_isyieldable)
FUNCTION(lua_atpanic)
	movq 16(%rdi), %rax
	movq 0x200(%rax), %rdx
	ret
	.skip 16
END(lua_atpanic)
	.cfi_startproc
	.cfi_def_cfa_offset 80
	.cfi_offset %rbp, -16
	movq 0x240(%r14), %rcx
	movq (%rcx, %rax, 8), %rax
	movq 64(%rax), %rax
	movq 0x10(%rsp), %rbp
	movq %rdx, 0x218(%r14)
	movl 0x220(%r14), %ecx
	movl $-1, 0x220(%r14)
	.skip 8192
	.cfi_endproc

#elif defined(LUA_54)

	.data
VARIABLE(lua_ident, 32)
	.asciz "$LuaVersion: Lua 5.4.4  Copyrig"
	.text
	.cfi_startproc
	movq 24(%rbx), %rcx
	movq 56(%rcx), %rdx
	.skip 4096
	.cfi_endproc

#elif defined(PERL_536)

	.data
VARIABLE(PL_revision, 1)
	.byte 5
VARIABLE(PL_version, 1)
	.byte 36
VARIABLE(PL_subversion, 1)
	.byte 0
	.p2align 3
VARIABLE(PL_thr_key, 4)
	.long 0
	.text
FUNCTION(Perl_caller_cx)
	movq 0x98(%rdi), %rax
	ret
	.skip 32
END(Perl_caller_cx)
FUNCTION(Perl_ckwarn)
	movq 0x180(%rdi), %rax
	ret
	.skip 32
END(Perl_ckwarn)
FUNCTION(Perl_runops_standard)
	.skip 64
END(Perl_runops_standard)
FUNCTION(perl_run)
	.skip 64
END(perl_run)
FUNCTION(Perl_pp_nextstate)
	ret
END(Perl_pp_nextstate)
FUNCTION(Perl_pp_entertry)
entry:	leaq entry(%rip), %rsi
	.byte 0xe8
	.long catch - . - 4
	ret
	.skip 192
END(Perl_pp_entertry)
catch:
	ret

#elif defined(V8_11)

	.data
	.p2align 2
#define NUMBER(name, value)                                                                        \
	VARIABLE(v8dbg_##name, 4)                                                                  \
	.long value;
NUMBER(off_fp_function, -16)
NUMBER(off_fp_bytecode_array, -32)
NUMBER(off_fp_bytecode_offset, -40)
NUMBER(SmiShiftSize, 31)
NUMBER(class_Map__instance_type__uint16_t, 12)
NUMBER(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, 0x110)
NUMBER(type_ScopeInfo__SCOPE_INFO_TYPE, 0x111)
NUMBER(type_Script__SCRIPT_TYPE, 0x112)
NUMBER(type_Code__CODE_TYPE, 0x113)
NUMBER(FirstNonstringType, 128)
NUMBER(StringRepresentationMask, 7)
NUMBER(StringEncodingMask, 8)
NUMBER(ConsStringTag, 1)
NUMBER(ExternalStringTag, 2)
NUMBER(SlicedStringTag, 3)
NUMBER(ThinStringTag, 5)
NUMBER(class_String__length__int32_t, 12)
NUMBER(class_SeqOneByteString__chars__char, 16)
NUMBER(class_ConsString__first__String, 16)
NUMBER(class_ConsString__second__String, 24)
NUMBER(class_SlicedString__parent__String, 16)
NUMBER(class_SlicedString__offset__SMI, 24)
NUMBER(class_ThinString__actual__String, 16)
NUMBER(class_ExternalString__resource__Object, 16)
NUMBER(class_SharedFunctionInfo__name_or_scope_info__Object, 16)
NUMBER(class_SharedFunctionInfo__script_or_debug_info__HeapObject, 32)
NUMBER(class_JSFunction__shared__SharedFunctionInfo, 24)
NUMBER(scopeinfo_idx_first_vars, 3)
NUMBER(class_Script__name__Object, 16)
NUMBER(frametype_IrregexpFrame, 21)
VARIABLE(_ZN2v88internal7Version6major_E, 4)
	.long 11
VARIABLE(_ZN2v88internal7Version6minor_E, 4)
	.long 3
VARIABLE(_ZN2v88internal7Version6build_E, 4)
	.long 244

#elif defined(BUN_14)

	.text
FUNCTION(node_module_register)
	ret
END(node_module_register)
	.section .rodata
	.ascii "bun-v1.4 bun-v1.4.5 (Linux) bun-v1.4.5"
	.section "__DATA,__jsc_opcodes", "aw", @progbits
	.quad 0, 0, 0, 0

#endif

	.section .note.GNU-stack, "", @progbits
