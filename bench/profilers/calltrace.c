// SPDX-License-Identifier: Apache-2.0
/*
 * A profiler inside of the Java VM, for bench/profilers_bench: at each SIGPROF of the process's CPU
 * time it asks the VM for the stack of the interrupted thread (AsyncGetCallTrace), and writes
 * folded stacks at the end. Samples in code outside of the VM's generated code are left out, and
 * counted. Where the VM cannot walk a stack, as in the first and last instructions of a method, the
 * stack is that of the work and the method alone.
 *
 *     java -agentpath:./libcalltrace.so=OUT,MICROSECONDS ...
 */
#include <jvmti.h>

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#define DEPTH 256
#define SAMPLES_MAX 100000
#define FRAMES_MAX (SAMPLES_MAX * 32)
#define RANGES_MAX 256
#define COMPILED_MAX 65536
#define WORK "Mix.work"

struct frame {
	jint line;
	jmethodID method;
};

struct trace {
	JNIEnv *env;
	jint count; /* or why there is none */
	struct frame *frames;
};

struct range {
	uintptr_t start, end;
	jmethodID method;
};

static void (*get_call_trace)(struct trace *trace, jint depth, void *context);
static JavaVM *vm;
static jvmtiEnv *jvmti;
static char path[4096];
static long period_us;
static struct range ranges[RANGES_MAX]; /* of files: code that the VM has not generated */
static size_t ranges_count;
static jmethodID methods[FRAMES_MAX]; /* of all samples: innermost first, NULL behind each */
static size_t methods_count, elsewhere;
static uintptr_t failed[SAMPLES_MAX]; /* where the VM did not know the stack */
static size_t failed_count;
static struct range compiled[COMPILED_MAX];
static size_t compiled_count;

static int note_file(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	for (int i = 0; i < info->dlpi_phnum && ranges_count < RANGES_MAX; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && part->p_flags & PF_X)
			ranges[ranges_count++] =
				(struct range){ start, start + part->p_memsz, NULL };
	}
	return 0;
}

static bool is_elsewhere(uintptr_t pc)
{
	for (size_t i = 0; i < ranges_count; i++)
		if (pc - ranges[i].start < ranges[i].end - ranges[i].start)
			return true;
	return false;
}

/* Signals of the process go to one thread at a time, as the program has one that works. */
static void take_sample(int number, siginfo_t *info, void *context)
{
	static struct frame frames[DEPTH];
	struct trace trace = { .frames = frames };
	uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)number;
	(void)info;
	if ((*vm)->GetEnv(vm, (void **)&trace.env, JNI_VERSION_1_6) != JNI_OK || is_elsewhere(pc)) {
		elsewhere++;
		return;
	}
	get_call_trace(&trace, DEPTH, context);
	if (trace.count <= 0 && failed_count < SAMPLES_MAX)
		failed[failed_count++] = pc;
	if (trace.count <= 0 || methods_count + (size_t)trace.count + 1 > FRAMES_MAX)
		return;
	for (jint i = 0; i < trace.count; i++)
		methods[methods_count++] = frames[i].method;
	methods[methods_count++] = NULL;
}

static void print_method(FILE *out, jmethodID method)
{
	char *name = NULL, *signature = NULL;
	jclass class;

	if ((*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL) ||
	    (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) ||
	    (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL)) {
		fputs("[unknown]", out);
		return;
	}
	for (char *at = signature + 1; *at && *at != ';'; at++)
		fputc(*at == '/' ? '.' : *at, out);
	fprintf(out, ".%s", name);
}

/* The last one that was compiled to there. Returns how many are in no method. */
static size_t print_failed(FILE *out)
{
	size_t unknown = 0;

	for (size_t i = 0; i < failed_count; i++) {
		size_t at = compiled_count;

		while (at && failed[i] - compiled[at - 1].start >=
				     compiled[at - 1].end - compiled[at - 1].start)
			at--;
		if (at) {
			fputs(WORK ";", out);
			print_method(out, compiled[at - 1].method);
			fputs(" 1\n", out);
		}
		unknown += !at;
	}
	return unknown;
}

static void end(jvmtiEnv *env, JNIEnv *jni)
{
	static const struct itimerval never;
	size_t next, unknown;
	FILE *out;

	(void)env;
	(void)jni;
	setitimer(ITIMER_PROF, &never, NULL);
	out = fopen(path, "w");
	if (!out)
		return;
	for (size_t at = 0; at < methods_count; at = next) {
		for (next = at; methods[next]; next++)
			;
		for (size_t i = next; i > at; i--) {
			print_method(out, methods[i - 1]);
			fputs(i - 1 > at ? ";" : " 1\n", out);
		}
		next++;
	}
	unknown = print_failed(out);
	fclose(out);
	fprintf(stderr,
		"calltrace: %zu in other code, %zu without a stack, %zu of them without a method\n",
		elsewhere, failed_count, unknown);
}

static void note_compiled(jvmtiEnv *env, jmethodID method, jint bytes, const void *code, jint count,
			  const jvmtiAddrLocationMap *map, const void *info)
{
	(void)env;
	(void)count;
	(void)map;
	(void)info;
	if (compiled_count < COMPILED_MAX)
		compiled[compiled_count++] =
			(struct range){ (uintptr_t)code, (uintptr_t)code + (uintptr_t)bytes,
					method };
}

/* A method has an identity once somebody has asked for it, which a signal's handler cannot. */
static void prepare(jvmtiEnv *env, JNIEnv *jni, jthread thread, jclass class)
{
	jmethodID *of_class;
	jint count;

	(void)jni;
	(void)thread;
	if (!(*env)->GetClassMethods(env, class, &count, &of_class))
		(*env)->Deallocate(env, (unsigned char *)of_class);
}

static void load(jvmtiEnv *env, JNIEnv *jni, jthread thread, jclass class)
{
	(void)env;
	(void)jni;
	(void)thread;
	(void)class; /* that the event is on makes AsyncGetCallTrace work */
}

static void begin(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	struct sigaction action = { .sa_sigaction = take_sample,
				    .sa_flags = SA_RESTART | SA_SIGINFO };
	struct itimerval period = { { 0, period_us }, { 0, period_us } };
	jclass *classes;
	jint count;

	if (!(*env)->GetLoadedClasses(env, &count, &classes)) {
		for (jint i = 0; i < count; i++)
			prepare(env, jni, thread, classes[i]);
		(*env)->Deallocate(env, (unsigned char *)classes);
	}
	dl_iterate_phdr(note_file, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &period, NULL);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
	static const jvmtiEvent events[] = { JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH,
					     JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_CLASS_PREPARE,
					     JVMTI_EVENT_COMPILED_METHOD_LOAD };
	jvmtiEventCallbacks calls = { .VMInit = begin,
				      .VMDeath = end,
				      .ClassLoad = load,
				      .ClassPrepare = prepare,
				      .CompiledMethodLoad = note_compiled };
	jvmtiCapabilities capabilities = { .can_generate_compiled_method_load_events = 1 };

	(void)reserved;
	vm = java_vm;
	get_call_trace =
		(void (*)(struct trace *, jint, void *))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (!options || sscanf(options, "%4095[^,],%ld", path, &period_us) != 2 ||
	    !get_call_trace || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_ERR;
	(*jvmti)->AddCapabilities(jvmti, &capabilities);
	(*jvmti)->SetEventCallbacks(jvmti, &calls, sizeof(calls));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
	return JNI_OK;
}
