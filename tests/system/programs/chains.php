<?php
# SPDX-License-Identifier: Apache-2.0
# Chains of calls that are known, with all the time in one method: tests/system/php_test.
#
#   php chains.php SHAPE SECONDS [GATE]
#
# SECONDS of CPU time. With GATE, a FIFO, it waits first until that was opened for writing.

namespace Chains;

function cpu_seconds() {
    $used = \getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] +
        ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1000000;
}

class Leaf {
    function hotLeaf($deadline) {
        $sum = 0;
        while (cpu_seconds() < $deadline) {  # HOT
            $i = 0;
            while ($i < 40000) {        # HOT
                $sum += $i * $i % 7;    # HOT
                $i += 1;                # HOT
            }
        }
        return $sum;
    }
}

class Größe {
    static function measure($deadline) {
        return static::測量($deadline);
    }

    static function 測量($deadline) {
        return (new Leaf)->hotLeaf($deadline);
    }
}

trait Loud {
    function shout($deadline) {
        return (new Leaf)->hotLeaf($deadline);
    }
}

class Speaker {
    use Loud;

    function __call($name, $arguments) {
        return $this->shout(...$arguments);
    }
}

class Chains {
    function callbacks($deadline) {
        return \array_map(function ($x) use ($deadline) {
            $items = [2, 1];
            \usort($items, function ($a, $b) use ($deadline) {
                (new Leaf)->hotLeaf($deadline);
                return $a - $b;
            });
        }, [1]);
    }

    function replaces($deadline) {
        return \preg_replace_callback('/x/', function ($match) use ($deadline) {
            return \call_user_func([new Leaf, 'hotLeaf'], $deadline);
        }, 'x');
    }

    function recursion($deadline) {
        return $this->dive($deadline, 300);
    }

    function dive($deadline, $left) {
        return $left ? $this->dive($deadline, $left - 1) : (new Leaf)->hotLeaf($deadline);
    }

    function generators($deadline) {
        foreach ($this->outer($deadline) as $value)
            return $value;
    }

    function outer($deadline) {
        foreach ($this->inner($deadline) as $value)
            yield $value;
    }

    function inner($deadline) {
        yield (new Leaf)->hotLeaf($deadline);
    }

    function delegation($deadline) {
        foreach ($this->delegates($deadline) as $value)
            return $value;
    }

    function delegates($deadline) {
        yield from $this->between($deadline);
    }

    function between($deadline) {
        yield from $this->inner($deadline);
    }

    function fibers($deadline) {
        $fiber = new \Fiber(function () use ($deadline) { return $this->inFiber($deadline); });
        $fiber->start();
    }

    function inFiber($deadline) {
        \array_map(function ($x) use ($deadline) { \Fiber::suspend((new Leaf)->hotLeaf($deadline)); }, [1]);
    }

    function exceptions($deadline) {
        try {
            throw new \RuntimeException('x');
        } catch (\RuntimeException $exception) {
            return $this->caught($deadline);
        } finally {
            $deadline = 0;
        }
    }

    function caught($deadline) {
        try {
            return (new Leaf)->hotLeaf($deadline);
        } finally {
            $deadline = 0;
        }
    }

    function names($deadline) {
        return Größe::measure($deadline);
    }

    function magic($deadline) {
        return (new Speaker)->whatever($deadline);
    }

    function included($deadline) {
        return include __DIR__ . '/chains_included.php';
    }

    function evaluated($deadline) {
        return eval('return (new \Chains\Leaf)->hotLeaf($deadline);');
    }

    # Each closure lives for a moment.
    function closures($deadline) {
        while (cpu_seconds() < $deadline)
            \array_map(function ($x) { return $this->brief($x); }, \range(1, 40));
    }

    function brief($x) {
        for ($i = 0; $i < 4000; $i++)   # HOT
            $x += $i % 7;               # HOT
        return $x;
    }

    function compiled($deadline) {
        while (cpu_seconds() < $deadline)
            $this->fib(20);
    }

    function fib($n) {
        return $n < 2 ? $n : $this->fib($n - 1) + $this->fib($n - 2); # HOT
    }
}

if (isset($argv[3]))
    \file_get_contents($argv[3]);
\call_user_func([new Chains, $argv[1]], cpu_seconds() + (float)$argv[2]);
