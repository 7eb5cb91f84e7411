// SPDX-License-Identifier: Apache-2.0
// A chain of DEPTH calls without end, with a millisecond of work in the innermost, for bench/runtimes_bench.
public class Deep {
	static int spin() {
		int total = 0;
		for (int i = 0; i < 500000; i++)
			total += i % 7;
		return total;
	}

	static int dive(int depth) {
		return depth == 0 ? spin() : 1 + dive(depth - 1);
	}

	public static void main(String[] args) {
		int depth = Integer.parseInt(args[0]), sum = 0;
		while (sum != -1)
			sum = dive(depth);
	}
}
