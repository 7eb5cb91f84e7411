/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups by number: learnt once, never wrong, bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/procs/cgroup_names.h"

#define SERVICE "0::/system.slice/a.service\n"

static void names_are_found_by_number(void **state)
{
	struct cgroup_names names = { 0 };

	(void)state;
	assert_null(cgroup_names_find(&names, 7));
	cgroup_names_learn(&names, 7, SERVICE);
	cgroup_names_learn(&names, 8, "5:memory:/\n0::/user.slice\n");
	cgroup_names_learn(&names, 7, "0::/other\n");
	assert_string_equal(cgroup_names_find(&names, 7), SERVICE);
	assert_string_equal(cgroup_names_find(&names, 8), "5:memory:/\n0::/user.slice\n");
	assert_null(cgroup_names_find(&names, 9));
	cgroup_names_fini(&names);
}

/* Where all processes have the same number, it says nothing of any other's cgroups. */
static void root_of_an_unused_hierarchy_is_not_learnt(void **state)
{
	static const char *const texts[] = { "0::/\n", "", "4:memory:/docker/1\n0::/\n",
					     "4:memory:/docker/1\n", "0::" };
	struct cgroup_names names = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cgroup_names_learn(&names, 1, texts[i]);
	assert_null(cgroup_names_find(&names, 1));
	cgroup_names_learn(&names, 0, SERVICE);
	assert_null(cgroup_names_find(&names, 0));
	cgroup_names_fini(&names);
}

static void too_many_are_forgotten_and_learnt_anew(void **state)
{
	struct cgroup_names names = { 0 };

	(void)state;
	for (uint64_t id = 1; id <= 3 * CGROUP_NAMES_MAX + 5; id++) {
		cgroup_names_learn(&names, id, SERVICE);
		assert_string_equal(cgroup_names_find(&names, id), SERVICE);
		assert_in_range(names.count, 1, CGROUP_NAMES_MAX);
	}
	assert_null(cgroup_names_find(&names, 1));
	cgroup_names_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_by_number),
		cmocka_unit_test(root_of_an_unused_hierarchy_is_not_learnt),
		cmocka_unit_test(too_many_are_forgotten_and_learnt_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
