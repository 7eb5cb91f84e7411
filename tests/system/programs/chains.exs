# SPDX-License-Identifier: Apache-2.0
# A chain of calls that is known, in Elixir: tests/system/beam_test.
#
#   elixir chains.exs MILLISECONDS GATE
defmodule Chains.Leaf do
  def hot_leaf(deadline) do
    sum = spin(200000, 0)
    if cpu() > deadline, do: sum * 0, else: hot_leaf(deadline)
  end

  def cpu, do: elem(:erlang.statistics(:runtime), 0)

  defp spin(0, sum), do: sum
  defp spin(n, sum), do: spin(n - 1, sum + Bitwise.band(n, 7))
end

defmodule Chains do
  def wait(gate) do
    unless File.exists?(gate) do
      Process.sleep(20)
      wait(gate)
    end
  end

  def callbacks(deadline) do
    [0] = Enum.map([1], fn x -> x * Chains.Leaf.hot_leaf(deadline) end)
    :ok
  end
end

[milliseconds, gate] = System.argv()
Chains.wait(gate)
:ok = Chains.callbacks(Chains.Leaf.cpu() + String.to_integer(milliseconds))
