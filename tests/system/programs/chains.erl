%% SPDX-License-Identifier: Apache-2.0
%% Chains of calls that are known, with all the time in one function: tests/system/beam_test.
%%
%%   erl -noshell -s chains main SHAPE MILLISECONDS GATE
%%
%% MILLISECONDS of CPU time. It waits first until the file GATE is there.
-module(chains).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2, in_process/2, hot_leaf/1, 'größe'/1]).

main([Shape, Milliseconds, Gate]) ->
    wait(atom_to_list(Gate)),
    Deadline = cpu() + list_to_integer(atom_to_list(Milliseconds)),
    0 = run(Shape, Deadline),
    halt().

wait(Gate) ->
    case filelib:is_regular(Gate) of
        true -> ok;
        false -> timer:sleep(20), wait(Gate)
    end.

cpu() -> element(1, statistics(runtime)).

run(Shape, Deadline) ->
    Shape = case Shape of
                recursion -> recursion(Deadline);
                funs -> funs(Deadline);
                server -> server(Deadline);
                exceptions -> exceptions(Deadline);
                processes -> processes(Deadline);
                bifs -> bifs(Deadline);
                names -> names(Deadline);
                binaries -> binaries(Deadline)
            end,
    0.

recursion(Deadline) ->
    300 = dive(300, Deadline),
    recursion.

dive(0, Deadline) -> hot_leaf(Deadline);
dive(N, Deadline) -> 1 + dive(N - 1, Deadline).

funs(Deadline) ->
    [0] = lists:map(fun(X) -> X * hot_leaf(Deadline) end, [1]),
    funs.

init(State) -> {ok, State}.

handle_cast(_, State) -> {noreply, State}.

handle_call(Deadline, _, State) ->
    Reply = hot_leaf(Deadline),
    {reply, Reply, State}.

server(Deadline) ->
    {ok, Server} = gen_server:start(?MODULE, none, []),
    0 = gen_server:call(Server, Deadline, infinity),
    server.

exceptions(Deadline) ->
    try
        error(away)
    catch
        error:away ->
            0 = hot_leaf(Deadline),
            exceptions
    end.

processes(Deadline) ->
    Self = self(),
    Pids = [spawn_link(?MODULE, in_process, [Self, Deadline]) || _ <- [1, 2]],
    [receive {Pid, 0} -> ok end || Pid <- Pids],
    processes.

in_process(To, Deadline) -> To ! {self(), hot_leaf(Deadline)}.

%% All the time is in a function that is written in C.
bifs(Deadline) ->
    List = lists:seq(1, 20000),
    0 = hashes(List, Deadline),
    bifs.

hashes(List, Deadline) ->
    put(hash, erlang:phash2(List)),
    case cpu() > Deadline of
        true -> 0;
        false -> hashes(List, Deadline)
    end.

names(Deadline) ->
    {_, {_, 0}} = 'größe'(Deadline),
    names.

'größe'(Deadline) ->
    {Deadline, '測量'(Deadline)}.

'測量'(Deadline) -> {Deadline, hot_leaf(Deadline)}.

hot_leaf(Deadline) ->
    Sum = spin(200000, 0),
    case cpu() > Deadline of
        true -> Sum * 0;
        false -> hot_leaf(Deadline)
    end.

spin(0, Sum) -> Sum;               % HOT
spin(N, Sum) -> spin(N - 1, Sum + N band 7). % HOT

%% Building a binary calls several C functions in a row, and garbage is collected between.
binaries(Deadline) ->
    build(Deadline, 0, <<"a binary of the heap">>),
    binaries.

build(Deadline, N, Part) ->
    Whole = <<"name", N:32, Part/binary, 0:8, Part/binary>>,
    case N rem 2000 == 0 andalso cpu() >= Deadline of
        true -> Whole;
        false -> build(Deadline, N + byte_size(Whole) - 48, Part)
    end.
