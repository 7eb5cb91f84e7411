/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the JVM's methods: those of the class file's form become readable, others are left. */
#include "server/resolve/display/java_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void methods_become_readable(void **state)
{
	static const struct {
		const char *raw, *full, *simple; /* NULL: left alone */
	} cases[] = {
		{ "Lcom/shop/Cart;::add(Ljava/lang/String;[[IJ)Z",
		  "com.shop.Cart.add(String, int[][], long)", "com.shop.Cart.add" },
		{ "Ljava/util/HashMap;::getNode", "java.util.HashMap.getNode",
		  "java.util.HashMap.getNode" },
		{ "java/lang/Thread.run()V", "java.lang.Thread.run()", "java.lang.Thread.run" },
		{ "java/util/Map$Entry.comparingByKey", "java.util.Map$Entry.comparingByKey",
		  "java.util.Map$Entry.comparingByKey" },
		{ "Main.main([Ljava/lang/String;)V", "Main.main(String[])", "Main.main" },
		{ "java/lang/Object.<init>()V", "java.lang.Object.<init>()",
		  "java.lang.Object.<init>" },
		{ "scala/collection/mutable/ListBuffer.$plus$eq(Ljava/lang/Object;)V",
		  "scala.collection.mutable.ListBuffer.+=(Object)",
		  "scala.collection.mutable.ListBuffer.+=" },
		{ "scala/Predef$.println", "scala.Predef.println", "scala.Predef.println" },
		{ "io/ktor/Server$start$1.invokeSuspend", "io.ktor.Server$start$1.invokeSuspend",
		  "io.ktor.Server$start$1.invokeSuspend" },
		{ "net/http.(*conn).serve", NULL, NULL },
		{ "encoding/json.Marshal[go.shape.int]", NULL, NULL },
		{ "com.shop.Cart.add", NULL, NULL },
		{ "std::vector<int>::push_back(int)", NULL, NULL },
		{ "operator new(unsigned long)", NULL, NULL },
		{ "/usr/lib/libc.so", NULL, NULL },
		{ "a/b.c(Q)V", NULL, NULL },
		{ "a/b.c(Ljava/lang/String)V", NULL, NULL },
		{ "La/B;", NULL, NULL },
		{ "()V", NULL, NULL },
		{ "", NULL, NULL },
	};
	struct strbuf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int simple = 0; simple < 2; simple++) {
			const char *want = simple ? cases[i].simple : cases[i].full;
			bool done;

			strbuf_clear(&out);
			done = java_name_read(slice_of(cases[i].raw), !simple, &out);
			if (done != (want != NULL) ||
			    !slice_is(strbuf_slice(&out), want ? want : ""))
				fail_msg("%s gives \"%s\"", cases[i].raw, strbuf_text(&out));
		}
	strbuf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_become_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
