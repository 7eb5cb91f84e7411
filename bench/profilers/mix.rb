# SPDX-License-Identifier: Apache-2.0
# Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
#
#     ruby -r stackprof mix.rb SECONDS PROFILE     PROFILE: JSON, of stackprof
require "json"
require "stackprof"

def numbers
  total = 0
  i = 0
  while i < 30_000
    total += i * i % 7
    i += 1
  end
  total
end

def longer(one, other)
  one <=> other
end

def sorting
  Array.new(1500) { |i| i * 7919 % 1009 }.sort { |one, other| longer(one, other) }
end

def strings
  text = +""
  6000.times do |i|
    text << (97 + i % 26)
    text = text.gsub("ab", "ba").upcase.downcase[0, 30] if text.size > 60
  end
  text
end

def tables
  found = {}
  9000.times { |i| found[i * 31 % 997] = found.fetch(i % 997, 0) + 1 }
  found
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def recursion
  fib(18)
end

def closures
  adders = Array.new(10) { |i| ->(x) { x + i } }
  (0...5000).map { |x| adders[x % 10].call(x) }.select(&:even?).sum
end

class Shape
  def initialize(side)
    @side = side
  end

  def area
    @side * @side
  end
end

class Disc < Shape
  def area
    3 * super
  end
end

def objects
  shapes = [Shape.new(2), Disc.new(3)]
  total = 0
  6000.times { |i| total += shapes[i % 2].area }
  total
end

def patterns
  total = 0
  900.times { total += "one-12 two-345 three-6".gsub(/(\w+)-(\d+)/) { Regexp.last_match(2) }.size }
  total
end

def fail_at(i)
  raise ArgumentError, "odd" if i.odd?

  i
end

def errors
  total = 0
  2000.times do |i|
    total += fail_at(i)
  rescue ArgumentError
    total += 1
  end
  total
end

def copies
  total = 0
  600.times { |i| total += (Array.new(400, i).reverse + [i]).size }
  total
end

SHARES = { numbers: 22, sorting: 17, strings: 13, tables: 11, recursion: 9, closures: 8, objects: 7, patterns: 6,
           errors: 4, copies: 3 }.freeze

def clock
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

def work(seconds)
  used = SHARES.transform_values { 0.0 }
  begun = last = clock
  while last - begun < seconds
    kind = SHARES.keys.min_by { |one| used[one] / SHARES[one] }
    send(kind)
    now = clock
    used[kind] += now - last
    last = now
  end
  used
end

used = nil
profile = StackProf.run(mode: :cpu, interval: 2000, raw: true, ignore_gc: true) { used = work(ARGV[0].to_f) }
File.write(ARGV[1], JSON.generate(raw: profile[:raw], names: profile[:frames].transform_values { |one| one[:name] }))
used.each { |kind, seconds| puts "#{kind} #{seconds}" }
