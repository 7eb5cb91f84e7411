/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has LuaJIT in it, as web servers do: two threads, neither of them the first, run
 * chains.lua in a state of their own each: tests/system/luajit_test.
 *
 *   embeds_lua CHAINS SHAPE SECONDS GATE
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>

static char **arguments;

static void *serve(void *unused)
{
	lua_State *state = luaL_newstate();

	luaL_openlibs(state);
	lua_newtable(state);
	for (int i = 0; i < 3; i++) {
		lua_pushstring(state, arguments[1 + i]);
		lua_rawseti(state, -2, i);
	}
	lua_setglobal(state, "arg");
	if (luaL_loadfile(state, arguments[1]) || lua_pcall(state, 0, 0, 0))
		fprintf(stderr, "%s\n", lua_tostring(state, -1));
	lua_close(state);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	FILE *gate;

	if (argc < 5)
		return 2;
	arguments = argv;
	gate = fopen(argv[4], "r");
	if (!gate)
		return 1;
	fgetc(gate);
	fclose(gate);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
