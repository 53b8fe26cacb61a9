//! Servers inside this process, each on its own thread: minikeeper, and an echo that sends back all
//! input.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc,
    thread::JoinHandle,
};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::{Error, IoContext as _, process::Pin};

/// A server on its own thread. Dropping it stops the server.
#[derive(Debug)]
pub struct Embedded {
    /// Where it listens.
    pub addr: SocketAddr,
    thread_id: u32,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Starts minikeeper with a tick of 100 ms, so that sessions may be as short as 200 ms.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn minikeeper(pin: Pin) -> Result<Self, Error> {
        Self::start(pin, "minikeeper", async |started, stop| {
            let server = minikeeper::Server::builder()
                .configure(|config| {
                    config.tick_time_ms = 100;
                    config.session_timeout_max_ms = Some(60_000);
                })
                .start()
                .await
                .map_err(|error| Error::Setup(error.to_string()))?;
            let _ = started.send(server.addr());
            let _ = stop.await;
            Ok(())
        })
    }

    /// Starts a server that sends back all input: the bare round trip.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn echo(pin: Pin) -> Result<Self, Error> {
        Self::start(pin, "echo", async |started, mut stop| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            let listener = listener.context(|| "cannot listen for the echo".into())?;
            let addr = listener.local_addr().context(|| "no address".into())?;
            let _ = started.send(addr);
            loop {
                tokio::select! {
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        tokio::spawn(send_back(stream));
                    },
                    _ = &mut stop => return Ok(()),
                }
            }
        })
    }

    fn start<F>(pin: Pin, name: &str, serve: F) -> Result<Self, Error>
    where
        F: AsyncFnOnce(mpsc::SyncSender<SocketAddr>, oneshot::Receiver<()>) -> Result<(), Error>
            + Send
            + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let (started, starting) = mpsc::sync_channel(1);
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _ = tell.send(gettid().as_raw_nonzero().get().unsigned_abs());
                place(pin.server_core());
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    // If it fails before it listens, there is no address.
                    let _ = runtime.block_on(serve(started, stopped));
                }
            })
            .context(|| format!("cannot start a thread for {name}"))?;
        let failed = || Error::Setup(format!("{name} did not start inside this process"));
        let thread_id = told.recv().map_err(|_| failed())?;
        let addr = starting.recv().map_err(|_| failed())?;
        Ok(Self {
            addr,
            thread_id,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the CPU time of its thread, in nanoseconds.
    ///
    /// # Errors
    /// When the kernel keeps no such statistics.
    pub fn cpu_ns(&self) -> Result<u64, Error> {
        crate::process::one_thread_cpu_ns(&format!("self/task/{}", self.thread_id))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Pins the calling thread to a core. If that fails, the thread stays unpinned, which shows in the
/// spread of the figures.
pub fn place(core: Option<usize>) {
    if let Some(core) = core {
        let mut cores = CpuSet::new();
        cores.set(core);
        let _ = sched_setaffinity(None, &cores);
    }
}

/// Sends back all input of a connection, until it ends.
pub async fn send_back(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
