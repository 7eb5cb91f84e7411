// SPDX-License-Identifier: Apache-2.0
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Known chains of calls, one after the other, for java_test: {@code Chains SECONDS [GATE]}.
 *
 * Each spends its time in hotLeaf, on the lines with a mark; the seconds are of CPU time, for each.
 */
public class Chains {
    static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    static volatile long sink;
    static long end;
    static long length;

    interface Shape {
        void run() throws Exception;
    }

    static long cpuTime() {
        return CLOCK.getCurrentThreadCpuTime();
    }

    static boolean isOver() {
        return cpuTime() >= end;
    }

    static long hotLeaf() {
        long total = 0;
        for (long i = 0; i < 20000; i++) { // HOT
            total += total * i ^ i; // HOT
        }
        sink = total;
        return total;
    }

    static long dive(int depth) {
        return depth == 0 ? hotLeaf() : dive(depth - 1) + 1;
    }

    static void recursion() {
        while (!isOver()) {
            dive(100);
        }
    }

    static int byKey(Integer a, Integer b) {
        hotLeaf();
        return Integer.compare(a, b);
    }

    static void callbacks() {
        while (!isOver()) {
            List<Integer> list = new ArrayList<>(Arrays.asList(3, 1, 2));
            list.sort(Chains::byKey);
        }
    }

    static void lambdas() {
        while (!isOver()) {
            sink += IntStream.range(0, 3).mapToLong(i -> hotLeaf()).sum();
        }
    }

    static long thrower(int depth) {
        if (depth == 0) {
            hotLeaf();
            throw new IllegalStateException("leaf");
        }
        return thrower(depth - 1) + 1;
    }

    static void exceptions() {
        while (!isOver()) {
            try {
                thrower(5);
            } catch (IllegalStateException e) {
                sink++;
            }
        }
    }

    /** Through reflection: native code, or generated classes. */
    public static void reflected() {
        hotLeaf();
    }

    static void reflection() throws Exception {
        while (!isOver()) {
            Chains.class.getMethod("reflected").invoke(null);
        }
    }

    /** Class initialisers are called by native code, from forName0. */
    static class Initialised {
        static {
            while (!isOver()) {
                hotLeaf();
            }
        }
    }

    static void initialiser() throws Exception {
        Class.forName("Chains$Initialised");
    }

    static void inThread() {
        while (cpuTime() < length) {
            hotLeaf();
        }
    }

    static void threads() throws Exception {
        Thread[] started = {new Thread(Chains::inThread), new Thread(Chains::inThread)};
        for (Thread thread : started) {
            thread.start();
        }
        for (Thread thread : started) {
            thread.join();
        }
    }

    abstract static class Figure {
        abstract long area();
    }

    static class Round extends Figure {
        long area() {
            return hotLeaf();
        }
    }

    static class Square extends Figure {
        long area() {
            return 1 + hotLeaf();
        }
    }

    static class Flat extends Figure {
        long area() {
            return 2 + hotLeaf();
        }
    }

    static long measure(Figure figure) {
        return figure.area();
    }

    /** By a table of virtual methods. */
    static void dispatch() {
        Figure[] figures = {new Round(), new Square(), new Flat()};
        while (!isOver()) {
            for (Figure figure : figures) {
                sink += measure(figure);
            }
        }
    }

    static class Größe {
        void 测量() {
            while (!isOver()) {
                hotLeaf();
            }
        }
    }

    static void names() {
        new Größe().测量();
    }

    static final String[] WORDS = IntStream.range(0, 64).mapToObj(i -> "word" + i * 7919 % 64).toArray(String[]::new);

    /** The compiler's code for it pushes a word for a while. */
    static int compares() {
        int total = 0;
        for (int i = 0; i < 2000; i++) {
            total += WORDS[i & 63].compareTo(WORDS[i * 13 & 63]);
        }
        return total;
    }

    static void comparing() {
        while (!isOver()) {
            sink += compares();
        }
    }

    /** A stub of the runtime's, with room on the stack that holds what was there before. */
    static double sines() {
        double total = 0;
        for (int i = 0; i < 2000; i++) {
            total += Math.sin(i * 0.37);
        }
        return total;
    }

    static void sining() {
        while (!isOver()) {
            sink += (long) sines();
        }
    }

    static void run(Shape shape) throws Exception {
        end = cpuTime() + length;
        shape.run();
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            try (RandomAccessFile gate = new RandomAccessFile(args[1], "r")) {
                gate.read();
            }
        }
        length = (long) (Double.parseDouble(args[0]) * 1e9);
        run(Chains::recursion);
        run(Chains::callbacks);
        run(Chains::lambdas);
        run(Chains::exceptions);
        run(Chains::reflection);
        run(Chains::initialiser);
        run(Chains::threads);
        run(Chains::dispatch);
        run(Chains::names);
        run(Chains::comparing);
        run(Chains::sining);
    }
}
