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
 * Closing a client in the same process sends closeSession. Behind this link it vanishes without one, like a process or a
 * machine that dies.
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

    /** Simulates a killed process: closes both connections and accepts no new one. */
    void cut() throws IOException {
        listener.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    /** Simulates a dead machine: the connection to the server stays open, and carries nothing more. */
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
                // The socket was closed. The client sees the effect.
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
