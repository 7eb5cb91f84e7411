/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has Perl in it, as web servers do: it loads chains.pl, and calls a sub of it from
 * a thread that is not the first, without a main program: tests/system/perl_test.
 *
 *   embeds_perl CHAINS SHAPE SECONDS GATE
 */
#include <EXTERN.h>
#include <perl.h>
#include <pthread.h>
#include <stdio.h>

static PerlInterpreter *my_perl;
static char **arguments;

EXTERN_C void boot_DynaLoader(pTHX_ CV *cv);

static void start(pTHX)
{
	newXS("DynaLoader::boot_DynaLoader", boot_DynaLoader, __FILE__);
}

static void *serve(void *unused)
{
	char *call[] = { arguments[2], arguments[3], NULL };

	PERL_SET_CONTEXT(my_perl);
	call_argv("main::run", G_DISCARD | G_EVAL, call);
	return unused;
}

int main(int argc, char **argv, char **environment)
{
	char *load[] = { argv[0], argv[1], NULL };
	pthread_t thread;
	FILE *gate;

	if (argc < 5)
		return 2;
	arguments = argv;
	PERL_SYS_INIT3(&argc, &argv, &environment);
	my_perl = perl_alloc();
	perl_construct(my_perl);
	if (perl_parse(my_perl, start, 2, load, NULL) || perl_run(my_perl))
		return 1;
	gate = fopen(argv[4], "r");
	if (!gate)
		return 1;
	fgetc(gate);
	fclose(gate);
	pthread_create(&thread, NULL, serve, NULL);
	pthread_join(thread, NULL);
	return 0;
}
