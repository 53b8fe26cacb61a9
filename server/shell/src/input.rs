//! Where the lines come from: an editor on a terminal, stdin elsewhere. Either blocks, so it has a thread
//! of its own, which reads a line when it is asked for one.

use std::{
    io::{self, BufRead as _, Read as _},
    sync::{Arc, mpsc},
    thread,
};

use minikeeper_client::Client;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc as lines};

use crate::{
    editor::{Completer, LineEditor},
    output::Output,
};

/// The longest line. A request of a client is at most 1 MiB.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// What was read.
pub(crate) enum Line {
    Text(String),
    /// The user has given up the line.
    Discarded,
    /// There are no more lines, or reading failed.
    End,
}

pub(crate) struct Input {
    /// Asks the thread for a line, with the prompt.
    prompts: mpsc::SyncSender<String>,
    lines: lines::Receiver<Line>,
    is_edited: bool,
    /// The client that completion asks.
    client: Arc<Mutex<Option<Client>>>,
}

impl Input {
    /// Starts the thread. Must be called within a runtime.
    ///
    /// # Errors
    /// When the thread or the editor cannot start.
    pub(crate) fn start(
        is_edited: bool,
        client: Option<Client>,
        output: &Output,
    ) -> Result<Self, String> {
        let (prompts, asked) = mpsc::sync_channel::<String>(1);
        let (read, lines) = lines::channel(1);
        let client = Arc::new(Mutex::new(client));
        let mut source = if is_edited {
            let completer = Completer::new(Handle::current(), Arc::clone(&client));
            let mut editor = LineEditor::new(completer)?;
            output.print_events_with(editor.printer()?);
            Source::Editor(Box::new(editor))
        } else {
            Source::Stdin
        };
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                while let Ok(prompt) = asked.recv() {
                    if read.blocking_send(source.read(&prompt)).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| format!("cannot read lines: {error}"))?;
        Ok(Self {
            prompts,
            lines,
            is_edited,
            client,
        })
    }

    pub(crate) const fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Sets the client that completion asks.
    pub(crate) fn serve(&self, client: Option<Client>) {
        *self.client.lock() = client;
    }

    /// Reads the next line. Must not be dropped unfinished.
    pub(crate) async fn next(&mut self, prompt: impl FnOnce() -> String) -> Line {
        if self.prompts.send(prompt()).is_err() {
            return Line::End;
        }
        self.lines.recv().await.unwrap_or(Line::End)
    }
}

enum Source {
    Editor(Box<LineEditor>),
    Stdin,
}

impl Source {
    fn read(&mut self, prompt: &str) -> Line {
        match self {
            Self::Editor(editor) => editor.read(prompt),
            Self::Stdin => {
                let mut bytes = Vec::new();
                let mut stdin = io::stdin().lock().take(LINE_BYTES_MAX);
                match stdin.read_until(b'\n', &mut bytes) {
                    Ok(0) | Err(_) => Line::End,
                    Ok(_) => {
                        let text = String::from_utf8_lossy(&bytes);
                        Line::Text(text.trim_end_matches(['\n', '\r']).to_owned())
                    }
                }
            }
        }
    }
}
