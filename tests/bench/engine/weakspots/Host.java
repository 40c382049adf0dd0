import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.concurrent.EventExecutor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/** Host PORT IO_RATIO: what host.c does, built as Netty's own echo example is. */
public final class Host {
    private static final int BACKLOG = 4096;

    private Host() {}

    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            ctx.write(message);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext ctx) {
            ctx.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
            ctx.close();
        }
    }

    private static final class Init extends ChannelInitializer<SocketChannel> {
        @Override
        protected void initChannel(SocketChannel channel) {
            channel.pipeline().addLast(new Echo());
        }
    }

    private static final class Spin implements Runnable {
        private final EventExecutor loop;

        Spin(EventExecutor loop) {
            this.loop = loop;
        }

        @Override
        public void run() {
            loop.execute(this);
        }
    }

    private static void beBusy(long busyNs) {
        long endAtNs = System.nanoTime() + busyNs;

        while (System.nanoTime() < endAtNs)
            ;
    }

    /** In milliseconds; returns only when the loop has ended, and that may be never. */
    private static double stop(NioEventLoopGroup workers, long timeoutMs) throws Exception {
        long beganAtNs = System.nanoTime();

        workers.shutdownGracefully(0, timeoutMs, TimeUnit.MILLISECONDS);
        workers.terminationFuture().await();
        return (System.nanoTime() - beganAtNs) / 1e6;
    }

    private static void obey(NioEventLoopGroup workers, String[] words) throws Exception {
        EventExecutor loop = workers.iterator().next();

        switch (words[0]) {
            case "queue":
                long busyNs = Long.parseLong(words[2]) * 1000;
                for (int i = Integer.parseInt(words[1]); i > 0; i--)
                    loop.execute(() -> beBusy(busyNs));
                System.out.println("queued");
                break;
            case "spin":
                loop.execute(new Spin(loop));
                System.out.println("spinning");
                break;
            case "stop":
                System.out.printf(Locale.ROOT, "ended %.1f%n", stop(workers, Long.parseLong(words[1])));
                break;
            default:
                throw new IllegalArgumentException("not understood: " + words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        NioEventLoopGroup boss = new NioEventLoopGroup(1);
        NioEventLoopGroup workers = new NioEventLoopGroup(1);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

        // What the JDK opens to write a log line it has opened before descriptors run out: else it fails, and not Netty.
        new SimpleFormatter().format(new LogRecord(Level.WARNING, ""));
        workers.setIoRatio(Integer.parseInt(args[1]));
        new ServerBootstrap().group(boss, workers)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG)
            .childHandler(new Init())
            .bind("127.0.0.1", Integer.parseInt(args[0]))
            .sync();
        for (String line = in.readLine(); line != null; line = in.readLine())
            obey(workers, line.split(" "));
        Runtime.getRuntime().halt(0); // a loop that cannot be stopped must not keep it alive
    }
}
