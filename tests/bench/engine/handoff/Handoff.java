import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.util.concurrent.EventExecutor;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Handoff throughput PRODUCERS TASKS | pingpong HOPS
 *
 * What handoff.c does, done by Netty's NioEventLoop.execute(). Tasks are allocated before and used again, as there; as
 * many unmeasured runs come first as the compiler needs to have done its work.
 */
public final class Handoff {
    private static final int IN_FLIGHT = 65536;
    private static final int PARTS = 4; // of a ring
    private static final int WARMUPS = 8;
    private static final int PASSES = 5;
    private static final long STOP_LIMIT_MS = 5000;

    private static final Semaphore runOver = new Semaphore(0);
    private static long ran; // the loop's, as the rest of the run
    private static long total;
    private static long endedAtNs;

    private Handoff() {}

    private static long cpuNs() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    /** False: that was the last one, and the next run may be on its way already. */
    private static boolean count() {
        ran++;
        if (ran < total)
            return true;
        if (ran > total) {
            System.err.println("a task ran twice");
            Runtime.getRuntime().halt(1);
        }
        endedAtNs = System.nanoTime();
        runOver.release();
        return false;
    }

    private static final class Plain implements Runnable {
        @Override
        public void run() {
            count();
        }
    }

    /** The last task of a part. */
    private static final class Closing implements Runnable {
        private final Semaphore freeParts;

        Closing(Semaphore freeParts) {
            this.freeParts = freeParts;
        }

        @Override
        public void run() {
            freeParts.release();
            count();
        }
    }

    private static final class Producer extends Thread {
        private final EventExecutor target;
        private final CyclicBarrier begin;
        private final int parts;
        private final Semaphore freeParts = new Semaphore(PARTS);
        private final Runnable[][] ring = new Runnable[PARTS][];
        long begunAtNs;

        Producer(EventExecutor target, CyclicBarrier begin, int producers, int parts) {
            this.target = target;
            this.begin = begin;
            this.parts = parts;
            for (int part = 0; part < PARTS; part++) {
                ring[part] = new Runnable[IN_FLIGHT / PARTS / producers];
                for (int i = 0; i < ring[part].length - 1; i++)
                    ring[part][i] = new Plain();
                ring[part][ring[part].length - 1] = new Closing(freeParts);
            }
        }

        @Override
        public void run() {
            try {
                begin.await();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            begunAtNs = System.nanoTime();
            for (int part = 0; part < parts; part++) {
                freeParts.acquireUninterruptibly();
                for (Runnable task : ring[part % PARTS])
                    target.execute(task);
            }
        }
    }

    private static long throughputOnce(EventExecutor loop, int producers, int parts) throws Exception {
        CyclicBarrier begin = new CyclicBarrier(producers + 1);
        Producer[] threads = new Producer[producers];
        long begunAtNs = Long.MAX_VALUE;

        ran = 0;
        total = (long) parts * (IN_FLIGHT / PARTS);
        for (int i = 0; i < producers; i++) {
            threads[i] = new Producer(loop, begin, producers, parts);
            threads[i].start();
        }
        begin.await();
        runOver.acquire();
        for (Producer thread : threads) {
            thread.join();
            begunAtNs = Math.min(begunAtNs, thread.begunAtNs);
        }
        return endedAtNs - begunAtNs;
    }

    private static final class Ball implements Runnable {
        private final EventExecutor[] loops;

        Ball(EventExecutor... loops) {
            this.loops = loops;
        }

        @Override
        public void run() {
            if (count())
                loops[(int) (ran % 2)].execute(this);
        }
    }

    private static long pingpongOnce(EventExecutor there, EventExecutor back, int hops) throws Exception {
        Ball ball = new Ball(there, back);
        long begunAtNs = System.nanoTime();

        ran = 0;
        total = hops;
        there.execute(ball);
        runOver.acquire();
        return endedAtNs - begunAtNs;
    }

    private interface Once {
        long run() throws Exception;
    }

    private static void measure(Once once) throws Exception {
        for (int i = 0; i < WARMUPS; i++)
            once.run();
        long[] tookNs = new long[PASSES];
        long cpuNs = cpuNs();
        for (int i = 0; i < PASSES; i++)
            tookNs[i] = once.run();
        cpuNs = (cpuNs() - cpuNs) / PASSES;
        Arrays.sort(tookNs);
        System.out.printf(Locale.ROOT,
            "{\"tasks\": %d, \"ns_per_task\": %.2f, \"cpu_ns_per_task\": %.2f}%n", total,
            (double) tookNs[PASSES / 2] / total, (double) cpuNs / total);
    }

    private static void work(NioEventLoopGroup group, String[] args) throws Exception {
        if (args.length == 3 && args[0].equals("throughput")) {
            int producers = Integer.parseInt(args[1]);
            int parts = Integer.parseInt(args[2]) / (IN_FLIGHT / PARTS);
            EventExecutor loop = group.next();
            measure(() -> throughputOnce(loop, producers, parts));
        } else if (args.length == 2 && args[0].equals("pingpong")) {
            int hops = Integer.parseInt(args[1]);
            EventExecutor there = group.next();
            EventExecutor back = group.next();
            measure(() -> pingpongOnce(there, back, hops));
        } else {
            throw new IllegalArgumentException("usage: Handoff throughput PRODUCERS TASKS | pingpong HOPS");
        }
    }

    public static void main(String[] args) throws Exception {
        NioEventLoopGroup group = new NioEventLoopGroup(2);

        try {
            work(group, args);
        } finally {
            group.shutdownGracefully(0, STOP_LIMIT_MS, TimeUnit.MILLISECONDS).sync();
        }
    }
}
