%% SPDX-License-Identifier: Apache-2.0
%% A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.
-module(deep).
-export([main/1]).

spin(0, Total) -> Total;
spin(I, Total) -> spin(I - 1, Total + I rem 7).

dive(0) -> 1 + spin(100000, 0);
dive(Depth) -> 1 + dive(Depth - 1).

run(Depth) ->
	_ = dive(Depth),
	run(Depth).

main([Depth]) -> run(list_to_integer(atom_to_list(Depth))).
