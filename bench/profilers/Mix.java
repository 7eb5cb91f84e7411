// SPDX-License-Identifier: Apache-2.0
// Work of ten kinds, each of a known share of the CPU time, for bench/profilers_bench.
//
//     java -XX:StartFlightRecording:... Mix SECONDS
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

public class Mix {
	static long sink;

	static void numbers() {
		int total = 0;
		for (int i = 0; i < 300000; i++)
			total += i * i % 7;
		sink += total;
	}

	static int longer(Integer one, Integer other) {
		return Integer.compare(one, other);
	}

	static void sorting() {
		List<Integer> list = new ArrayList<>();
		for (int i = 0; i < 6000; i++)
			list.add(i * 7919 % 10007);
		list.sort(Mix::longer);
		sink += list.get(0);
	}

	static void strings() {
		StringBuilder text = new StringBuilder();
		for (int i = 0; i < 20000; i++) {
			text.append((char) (97 + i % 26));
			if (text.length() > 60)
				text = new StringBuilder(text.toString().replace("ab", "ba").toUpperCase().substring(0, 30));
		}
		sink += text.length();
	}

	static void tables() {
		Map<Integer, Integer> found = new HashMap<>();
		for (int i = 0; i < 40000; i++)
			found.merge(i * 31 % 9973, 1, Integer::sum);
		sink += found.size();
	}

	static int fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	static void recursion() {
		sink += fib(23);
	}

	static void closures() {
		sink += IntStream.range(0, 30000).boxed().map(x -> x * 3).filter(x -> x % 2 == 0).mapToInt(x -> x + 1).sum();
	}

	static class Shape {
		final double side;

		Shape(double side) {
			this.side = side;
		}

		double area() {
			return Math.sqrt(side * side + 1);
		}
	}

	static class Disc extends Shape {
		Disc(double side) {
			super(side);
		}

		@Override
		double area() {
			return 3 * super.area() / side;
		}
	}

	static void objects() {
		Shape[] shapes = { new Shape(2), new Disc(3), new Shape(5) {
			@Override
			double area() {
				return 7 % side;
			}
		} };
		double total = 0;
		for (int i = 0; i < 100000; i++)
			total += shapes[i * 31 % 7 % 3].area();
		sink += (long) total;
	}

	static final Pattern PATTERN = Pattern.compile("(\\w+)-(\\d+)");

	static void patterns() {
		for (int i = 0; i < 1000; i++)
			sink += PATTERN.matcher("one-12 two-345 three-6").replaceAll(match -> match.group(2)).length();
	}

	static int fail(int i) {
		if (i % 2 == 1)
			throw new IllegalStateException("odd");
		return i;
	}

	static void errors() {
		for (int i = 0; i < 1000; i++) {
			try {
				sink += fail(i);
			} catch (IllegalStateException error) {
				sink += error.getMessage().length();
			}
		}
	}

	static void copies() {
		for (int i = 0; i < 600; i++) {
			int[] row = new int[2000];
			Arrays.fill(row, i);
			sink += Arrays.copyOf(row, 4000).length;
		}
	}

	static final String[] NAMES = { "numbers", "sorting", "strings", "tables", "recursion", "closures", "objects",
			"patterns", "errors", "copies" };
	static final int[] SHARES = { 22, 17, 13, 11, 9, 8, 7, 6, 4, 3 };
	static final Runnable[] KINDS = { Mix::numbers, Mix::sorting, Mix::strings, Mix::tables, Mix::recursion,
			Mix::closures, Mix::objects, Mix::patterns, Mix::errors, Mix::copies };

	static void run(int kind) {
		long until = System.nanoTime() + 10_000_000;
		do
			KINDS[kind].run();
		while (System.nanoTime() < until);
	}

	static long[] work(double seconds) {
		ThreadMXBean threads = ManagementFactory.getThreadMXBean();
		long[] used = new long[SHARES.length];
		long begun = threads.getCurrentThreadCpuTime(), last = begun;
		while (last - begun < seconds * 1e9) {
			int next = 0;
			for (int i = 1; i < used.length; i++)
				if (used[i] / SHARES[i] < used[next] / SHARES[next])
					next = i;
			run(next);
			long now = threads.getCurrentThreadCpuTime();
			used[next] += now - last;
			last = now;
		}
		return used;
	}

	public static void main(String[] args) {
		long[] used = work(Double.parseDouble(args[0]));
		for (int i = 0; i < used.length; i++)
			System.out.println(NAMES[i] + " " + used[i] / 1e9);
	}
}
