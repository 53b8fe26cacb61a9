import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A TCP proxy in front of the server for one client, so that the client can be made to vanish.
 *
 * A client that dies in the same process would say goodbye: closing it sends closeSession. Behind this link it dies
 * like a machine does, without a word.
 */
final class VanishingLink implements AutoCloseable {
    private final ServerSocket listener;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private volatile boolean frozen;

    VanishingLink(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        String host = address.substring(0, colon);
        int port = Integer.parseInt(address.substring(colon + 1));
        listener = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
        daemon("link-accept", () -> {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(host, port);
                client.setTcpNoDelay(true);
                server.setTcpNoDelay(true);
                sockets.add(client);
                sockets.add(server);
                daemon("link-up", () -> pump(client, server));
                daemon("link-down", () -> pump(server, client));
            }
        });
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** The process is gone: both connections end and no new one is taken. */
    void cut() throws IOException {
        listener.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    /** The machine is gone: the server's connection stays open, and nothing ever comes through it again. */
    void freeze() throws IOException {
        frozen = true;
        listener.close();
    }

    @Override
    public void close() throws IOException {
        cut();
    }

    private void pump(Socket from, Socket to) throws IOException {
        byte[] buffer = new byte[65536];
        InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream();
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
            if (!frozen) {
                out.write(buffer, 0, n);
            }
        }
        if (!frozen) {
            from.close();
            to.close();
        }
    }

    private interface Body {
        void run() throws IOException;
    }

    private static void daemon(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (IOException ended) {
                // How a closed socket ends its thread; what it means shows at the client.
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
