# SPDX-License-Identifier: Apache-2.0
# Chains of calls that are known, with all the time in one method: tests/system/ruby_test.
#
#   ruby chains.rb SHAPE SECONDS [GATE]
#
# SECONDS of CPU time. With GATE, a FIFO, it waits first until that was opened for writing.

class Größe
  def self.measure(deadline)
    測量(deadline)
  end

  def self.測量(deadline)
    Leaf.new.hot_leaf(deadline)
  end
end

module Loud
  def shout(deadline)
    Leaf.new.hot_leaf(deadline)
  end
end

class Speaker
  include Loud

  def speak(deadline)
    shout(deadline)
  end
end

class Leaf
  def hot_leaf(deadline)
    sum = 0
    until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) > deadline # HOT
      i = 0
      while i < 20_000 # HOT
        sum += i * i   # HOT
        i += 1         # HOT
      end
    end
    sum
  end
end

class Chains
  def callbacks(deadline)
    [1].each do |x|
      { a: x }.each_pair { |_, _| [2, 1].sort_by { |_| Leaf.new.hot_leaf(deadline) } }
    end
  end

  def recursion(deadline)
    dive(deadline, 300)
  end

  def dive(deadline, left)
    left.zero? ? Leaf.new.hot_leaf(deadline) : dive(deadline, left - 1)
  end

  def fibers(deadline)
    outer = Fiber.new { inner_fiber(deadline) }
    outer.resume
  end

  def inner_fiber(deadline)
    Enumerator.new { |to| to << Leaf.new.hot_leaf(deadline) }.next
  end

  def threads(deadline)
    Array.new(2) { Thread.new { in_thread(deadline) } }.each(&:join)
  end

  def in_thread(deadline)
    Leaf.new.hot_leaf(deadline)
  end

  def exceptions(deadline)
    raise ArgumentError
  rescue ArgumentError
    begin
      Leaf.new.hot_leaf(deadline)
    ensure
      deadline = 0
    end
  end

  def names(deadline)
    Größe.measure(deadline)
  end

  def modules(deadline)
    Speaker.new.speak(deadline)
  end

  def messages(deadline)
    'x'.gsub(/x/) { public_send(:in_thread, deadline) }
  end

  def compiled(deadline)
    fib(20) until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) > deadline
  end

  def fib(n)
    n < 2 ? n : fib(n - 1) + fib(n - 2) # HOT
  end

  define_method(:defined) { |deadline| Leaf.new.hot_leaf(deadline) }
end

File.open(ARGV[2], &:read) if ARGV[2]
now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
Chains.new.public_send(ARGV[0], now + (Float(ARGV[1]) * 1_000_000_000).to_i)
