//! Finds out when the programs of a run do nothing but wait, so that no further request is coming.
//!
//! Source: Linux, `proc(5)`: the third field of `stat` is the state of a thread, `schedstat` the time that
//! it has run and waited to run, and how often it ran. The second field of a line of `net/tcp` is the address
//! of a connection's own end, the tenth the number of its socket.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// How far apart two looks at the threads are.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_micros(150);

/// The maximum number of processes of a run that are looked at.
const PROCESSES_MAX: usize = 1_000;

/// The programs of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Programs {
    /// A process group, and what its processes have started.
    Group(u32),
    /// A process, and what it has started.
    Process(u32),
}

/// The threads of programs, and those of this process.
#[derive(Debug)]
pub(crate) struct Threads {
    programs: Programs,
    /// The last look: each thread with what it has run.
    seen: Vec<(u32, String)>,
    /// How long the threads have run, as the last look showed.
    ran: Duration,
    /// The threads of the system that deliver what was sent over loopback, if the sender has not.
    delivering: Vec<u32>,
}

impl Threads {
    /// Returns the threads of programs; `None` where the system does not tell, and for a process of another
    /// system.
    pub(crate) fn of(programs: Programs) -> Option<Self> {
        let (Programs::Group(process) | Programs::Process(process)) = programs;
        let tells = Path::new(&format!("/proc/{process}/schedstat")).exists();
        tells.then(|| Self {
            programs,
            seen: Vec::new(),
            ran: Duration::ZERO,
            delivering: delivering(),
        })
    }

    /// Returns whether every thread but the calling one sleeps, and none has run since the last look.
    pub(crate) fn are_quiet(&mut self) -> bool {
        let before = std::mem::take(&mut self.seen);
        let (seen, runs) = self.look();
        let ran = seen.iter().map(|(_, ran)| nanoseconds_of(ran)).sum();
        self.ran = Duration::from_nanos(ran);
        let is_same = !runs && !seen.is_empty() && seen == before;
        self.seen = seen;
        is_same
    }

    /// Returns how long the threads that exist have run, as the last look showed.
    pub(crate) const fn ran(&self) -> Duration {
        self.ran
    }

    /// Returns what each thread has run, and whether one runs.
    fn look(&self) -> (Vec<(u32, String)>, bool) {
        let own = std::process::id();
        let calling = fs::read_link("/proc/thread-self").ok();
        let calling = calling.as_deref().and_then(number_of);
        let runs = |thread: &u32| {
            let thread = format!("/proc/{thread}");
            state_of(Path::new(&thread)).is_none_or(|(state, _)| state == 'R')
        };
        let (mut seen, mut runs) = (Vec::new(), self.delivering.iter().any(runs));
        let mut processes = self.processes();
        if !processes.contains(&own) {
            processes.push(own);
        }
        for process in processes {
            let threads = fs::read_dir(format!("/proc/{process}/task"));
            // It may have ended.
            for thread in threads.into_iter().flatten().flatten() {
                let Some(number) = number_of(&thread.path()) else {
                    continue;
                };
                if Some(number) == calling {
                    continue;
                }
                let Some((state, ran)) = state_of(&thread.path()) else {
                    runs = true;
                    continue;
                };
                runs |= matches!(state, 'R' | 'D');
                seen.push((number, ran));
            }
        }
        (seen, runs)
    }

    /// Finds the processes with the connections from these ports. They count in the order in which they were
    /// started, those that others have started after them, so that the same program has the same numbers in
    /// each run.
    pub(crate) fn owners(&self, ports: &[u16]) -> BTreeMap<u16, usize> {
        let sockets = sockets_of(ports);
        let mut owners = BTreeMap::new();
        for (place, process) in self.processes().into_iter().enumerate() {
            let files = fs::read_dir(format!("/proc/{process}/fd"));
            for file in files.into_iter().flatten().flatten() {
                let Ok(target) = fs::read_link(file.path()) else {
                    continue;
                };
                let of_file = sockets.iter().filter(|(_, socket)| **socket == target);
                for (port, _) in of_file {
                    // Those that it has started may have the same.
                    owners.entry(*port).or_insert(place);
                }
            }
        }
        owners
    }

    /// Finds the processes with the connections from these ports.
    pub(crate) fn owning(&self, ports: &[u16]) -> BTreeMap<u16, u32> {
        let processes = self.processes();
        let owners = self.owners(ports).into_iter();
        let known = owners.filter_map(|(port, place)| Some((port, *processes.get(place)?)));
        known.collect()
    }

    /// Returns the processes of the programs, and those that they have started.
    fn processes(&self) -> Vec<u32> {
        let mut found = match self.programs {
            Programs::Process(process) => vec![process],
            Programs::Group(leader) if tells_children(leader) => vec![leader],
            Programs::Group(group) => members_of(group),
        };
        let mut next = 0;
        while let Some(parent) = found.get(next).copied()
            && found.len() < PROCESSES_MAX
        {
            next += 1;
            let children = children_of(parent);
            let new = children.into_iter().filter(|child| !found.contains(child));
            let new: Vec<_> = new.collect();
            found.extend(new);
        }
        found
    }
}

/// Returns the threads that handle software interrupts; none if the system hides them.
fn delivering() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |path: &Path| {
        let name = fs::read_to_string(path.join("comm"));
        name.is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    let paths = entries.map(|entry| entry.path());
    let found = paths.filter(|path| number_of(path).is_some() && is_one(path));
    found.filter_map(|path| number_of(&path)).collect()
}

/// Returns the sockets of connections from these ports, as the links in `/proc/PID/fd` show them.
fn sockets_of(ports: &[u16]) -> BTreeMap<u16, PathBuf> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")));
    let tables: String = tables.into_iter().flatten().collect();
    let sockets = tables.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (_, port) = fields.next()?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = fields.nth(7).filter(|_| ports.contains(&port))?;
        // A connection that has closed has none.
        (inode != "0").then(|| (port, PathBuf::from(format!("socket:[{inode}]"))))
    });
    sockets.collect()
}

/// Returns whether the system lists the children of a thread.
fn tells_children(process: u32) -> bool {
    Path::new(&format!("/proc/{process}/task/{process}/children")).exists()
}

/// Returns the processes that the threads of a process have started, and that have not ended.
fn children_of(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let lists: String = lists.collect();
    let children = lists.split_whitespace();
    children.filter_map(|child| child.parse().ok()).collect()
}

/// Returns the processes of a group.
fn members_of(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| number_of(&entry.path()));
    all.filter(|process| group_of(*process) == Some(group))
        .collect()
}

fn number_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Returns the group of a process.
fn group_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(2);
    fields.next()?.parse().ok()
}

/// Returns the first number of `schedstat`: how long a thread has run.
fn nanoseconds_of(ran: &str) -> u64 {
    let first = ran.split_whitespace().next();
    first.and_then(|first| first.parse().ok()).unwrap_or(0)
}

/// Returns the state of a thread, and what it has run; a thread that has ended has the state `X`.
fn state_of(thread: &Path) -> Option<(char, String)> {
    let read = |name: &str| fs::read_to_string(thread.join(name));
    let (Ok(stat), Ok(ran)) = (read("stat"), read("schedstat")) else {
        return Some(('X', String::new()));
    };
    let state = stat[stat.rfind(')')? + 1..].trim_start().chars().next()?;
    Some((state, ran))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        process::Command,
    };

    use super::*;

    #[test]
    fn group_and_state_are_read() {
        let own = std::process::id();
        assert!(members_of(group_of(own).unwrap()).contains(&own));
        let (state, ran) = state_of(Path::new("/proc/thread-self")).unwrap();
        assert_eq!(state, 'R');
        assert!(!ran.is_empty());
    }

    #[test]
    fn process_of_a_connection_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = connection.local_addr().unwrap().port();
        let threads = Threads::of(Programs::Process(std::process::id())).unwrap();
        assert_eq!(threads.owners(&[port, 1]), BTreeMap::from([(port, 0)]));
    }

    #[test]
    fn process_of_another_system_tells_nothing() {
        assert!(Threads::of(Programs::Process(std::process::id())).is_some());
        assert!(Threads::of(Programs::Process(u32::MAX)).is_none());
    }

    #[test]
    fn processes_that_a_command_has_started_belong_to_it() {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & setsid sleep 60 & wait"]);
        let mut child = command.process_group(0).spawn().unwrap();
        let threads = Threads::of(Programs::Group(child.id())).unwrap();
        let is_there = |count: usize| (0..10_000).any(|_| threads.processes().len() == count);
        assert!(is_there(3), "{:?}", threads.processes());
        for process in threads.processes() {
            if process != child.id() {
                Command::new("kill")
                    .arg(process.to_string())
                    .status()
                    .unwrap();
            }
        }
        child.wait().unwrap();
    }
}
