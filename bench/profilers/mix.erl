%% SPDX-License-Identifier: Apache-2.0
%% Work of ten kinds, each of a known share of the time, for bench/profilers_bench.
%%
%%   erl -noshell -s mix main SECONDS
-module(mix).
-export([main/1]).

numbers(0, Total) -> Total;
numbers(I, Total) -> numbers(I - 1, Total + I * I rem 7).

longer(One, Other) -> One =< Other.

sorting() ->
	length(lists:sort(fun longer/2, [I * 7919 rem 10007 || I <- lists:seq(1, 4000)])).

strings(0, Text) -> byte_size(Text);
strings(I, Text) when byte_size(Text) > 60 ->
	strings(I - 1, binary:part(string:uppercase(binary:replace(Text, <<"ab">>, <<"ba">>)), 0, 30));
strings(I, Text) -> strings(I - 1, <<Text/binary, (97 + I rem 26)>>).

tables(0, Found) -> map_size(Found);
tables(I, Found) -> tables(I - 1, Found#{I * 31 rem 997 => maps:get(I rem 997, Found, 0) + 1}).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

recursion() ->
	Result = fib(20),
	Result + 1.

closures() ->
	Adders = list_to_tuple([fun(X) -> X + I end || I <- lists:seq(1, 10)]),
	lists:sum(lists:map(fun(X) -> (element(X rem 10 + 1, Adders))(X) end, lists:seq(1, 300))).

area({square, Side}) -> Side * Side;
area({disc, Side}) ->
	Area = area({square, Side}),
	3 * Area.

objects(0, Total) -> Total;
objects(I, Total) ->
	Kind = case I rem 2 of 0 -> square; 1 -> disc end,
	Area = area({Kind, I}),
	objects(I - 1, Total + Area).

patterns() ->
	[re:replace("one-12 two-345 three-6", "(\\w+)-(\\d+)", "\\2", [global, {return, binary}]) || _ <- lists:seq(1, 60)],
	ok.

fail(I) when I rem 2 =:= 1 -> error(odd);
fail(I) -> I.

errors(0, Total) -> Total;
errors(I, Total) ->
	Result = try fail(I) catch error:odd -> 1 end,
	errors(I - 1, Total + Result).

copies() ->
	lists:sum([length(lists:reverse(lists:seq(1, 400)) ++ [I]) || I <- lists:seq(1, 300)]).

kinds() ->
	[{numbers, 22, fun() -> numbers(100000, 0) end}, {sorting, 17, fun sorting/0},
	 {strings, 13, fun() -> strings(8000, <<>>) end}, {tables, 11, fun() -> tables(10000, #{}) end},
	 {recursion, 9, fun recursion/0}, {closures, 8, fun closures/0},
	 {objects, 7, fun() -> objects(60000, 0) end}, {patterns, 6, fun patterns/0},
	 {errors, 4, fun() -> errors(4000, 0) end}, {copies, 3, fun copies/0}].

work(End, Used) ->
	[{_, Kind, Run} | _] = lists:sort([{maps:get(Kind, Used) / Share, Kind, Run} || {Kind, Share, Run} <- kinds()]),
	Begun = erlang:monotonic_time(microsecond),
	Run(),
	Now = erlang:monotonic_time(microsecond),
	Next = Used#{Kind := maps:get(Kind, Used) + Now - Begun},
	case Now > End of
		true -> Next;
		false -> work(End, Next)
	end.

run(Seconds) ->
	Used = maps:from_list([{Kind, 0} || {Kind, _, _} <- kinds()]),
	work(erlang:monotonic_time(microsecond) + Seconds * 1000000, Used).

main([Seconds]) ->
	Used = run(list_to_integer(atom_to_list(Seconds))),
	maps:foreach(fun(Kind, N) -> io:format("~s ~p~n", [Kind, N / 1000000]) end, Used),
	halt().
