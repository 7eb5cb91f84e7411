// SPDX-License-Identifier: Apache-2.0
// Chains of calls that are known, one after another, each for some CPU time in its leaf. Runs in any .NET program:
// DOTNET_STARTUP_HOOKS names this assembly. CHAINS_GATE: a pipe, read to its end first; CHAINS_CPU_S: time for each.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public class StartupHook
{
	public static void Initialize()
	{
		string gate = Environment.GetEnvironmentVariable("CHAINS_GATE");
		if (gate != null)
			File.ReadAllText(gate);
		Shapes.Chains.All(double.Parse(Environment.GetEnvironmentVariable("CHAINS_CPU_S") ?? "0.5",
			System.Globalization.CultureInfo.InvariantCulture));
		Environment.Exit(0);
	}
}

namespace Shapes
{
	public abstract class Shape<T>
	{
		public abstract long Area(T side, Func<long> more);

		public virtual long Many<U>(U other, Func<long> more)
		{
			return more() + 1;
		}
	}

	public class Round<T> : Shape<T>
	{
		[MethodImpl(MethodImplOptions.NoInlining)]
		public override long Area(T side, Func<long> more)
		{
			return Many<long>(2, more) + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		public override long Many<U>(U other, Func<long> more)
		{
			return more() + 2;
		}
	}

	public static class Chains
	{
		delegate int Comparer(IntPtr a, IntPtr b);

		[DllImport("libc.so.6", EntryPoint = "qsort")]
		static extern void NativeSort(IntPtr data, IntPtr count, IntPtr width, Comparer comparer);

		static long sum;

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long HotLeaf(int rounds)
		{
			long value = 1;
			for (int i = 0; i < rounds; i++)
				value = value * 31 + i;
			return value;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Middle()
		{
			return HotLeaf(100000) + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Dive(int depth)
		{
			return depth == 0 ? Middle() : Dive(depth - 1) + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Recursion()
		{
			return Dive(300) + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Virtual()
		{
			Shape<string> shape = new Round<string>();
			return shape.Area("a", () => Middle() + 1) + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static int Compare(int a, int b)
		{
			sum += Middle();
			return a - b;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Sorting()
		{
			var numbers = new List<int> { 3, 1, 2, 5, 4 };
			numbers.Sort(Compare);
			return numbers[0] + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static int CompareNative(IntPtr a, IntPtr b)
		{
			sum += Middle();
			return Marshal.ReadInt32(a) - Marshal.ReadInt32(b);
		}

		static readonly Comparer nativeComparer = CompareNative;

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Callbacks()
		{
			IntPtr data = Marshal.AllocHGlobal(16);
			for (int i = 0; i < 4; i++)
				Marshal.WriteInt32(data, 4 * i, 4 - i);
			NativeSort(data, (IntPtr)4, (IntPtr)4, nativeComparer);
			Marshal.FreeHGlobal(data);
			return 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Thrower(int depth)
		{
			try
			{
				if (depth == 0)
					throw new InvalidOperationException("thrown");
				return Thrower(depth - 1) + 1;
			}
			catch (InvalidOperationException)
			{
				if (depth > 2)
					throw;
			}
			return depth == 1 ? Middle() + 1 : 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Caught()
		{
			long value = 0;
			for (int i = 0; i < 20; i++)
				value += Catching(i);
			return value;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Catching(int round)
		{
			try
			{
				if (round % 20 == 0)
					throw new InvalidOperationException("thrown");
				return Middle() + 1;
			}
			catch (InvalidOperationException)
			{
				return 1;
			}
			finally
			{
				sum += Middle();
			}
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static void Body()
		{
			sum += Middle() + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Threads()
		{
			var threads = new List<Thread>();
			for (int i = 0; i < 2; i++)
				threads.Add(new Thread(Body));
			foreach (Thread thread in threads)
				thread.Start();
			foreach (Thread thread in threads)
				thread.Join();
			return 1;
		}

		static Func<long> made;

		[MethodImpl(MethodImplOptions.NoInlining)]
		static long Dynamic()
		{
			if (made == null)
			{
				var method = new DynamicMethod("MadeHere", typeof(long), new Type[0], typeof(Chains).Module, true);
				ILGenerator code = method.GetILGenerator();
				code.Emit(OpCodes.Call, typeof(Chains).GetMethod("Middle",
					BindingFlags.NonPublic | BindingFlags.Static));
				code.Emit(OpCodes.Ldc_I8, 1L);
				code.Emit(OpCodes.Add);
				code.Emit(OpCodes.Ret);
				made = (Func<long>)method.CreateDelegate(typeof(Func<long>));
			}
			return made() + 1;
		}

		[MethodImpl(MethodImplOptions.NoInlining)]
		static void For(double cpuSeconds, Func<long> shape)
		{
			Process self = Process.GetCurrentProcess();
			double end = self.TotalProcessorTime.TotalSeconds + cpuSeconds;
			do
			{
				for (int i = 0; i < 10; i++)
					sum += shape();
				self.Refresh();
			} while (self.TotalProcessorTime.TotalSeconds < end);
		}

		public static void All(double cpuSeconds)
		{
			For(cpuSeconds, Recursion);
			For(cpuSeconds, Virtual);
			For(cpuSeconds, Sorting);
			For(cpuSeconds, Callbacks);
			For(cpuSeconds, () => Thrower(3));
			For(cpuSeconds, Caught);
			For(cpuSeconds, Threads);
			For(cpuSeconds, Dynamic);
			Console.WriteLine(sum);
		}
	}
}
