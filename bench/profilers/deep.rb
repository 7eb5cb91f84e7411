# SPDX-License-Identifier: Apache-2.0
# A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.

def spin
  total = 0
  i = 0
  while i < 20_000
    total += i % 7
    i += 1
  end
  total
end

def dive(depth)
  depth.zero? ? spin : 1 + dive(depth - 1)
end

loop { dive(ARGV[0].to_i) }
