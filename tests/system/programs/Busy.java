// SPDX-License-Identifier: Apache-2.0
/** Computes until it is killed. */
public class Busy {
	static double heavyLoop(int n) {
		double sum = 0;

		for (int i = 1; i < n; i++)
			sum += Math.sqrt(i) / i;
		return sum;
	}

	static double serveRequest(int n) {
		return heavyLoop(n) + heavyLoop(n / 2);
	}

	public static void main(String[] arguments) {
		double sum = 0;

		while (sum >= 0)
			sum += serveRequest(100000);
	}
}
