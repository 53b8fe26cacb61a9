//! Carries out one command.

use std::{path::Path, time::Duration};

use minikeeper_client::{
    AclList, AddWatchMode, Call, Client, CreateMode, CreateOptions, Data, Error, ErrorCode,
    OneShot, Reconfiguration, Stat,
};
use tokio::time::timeout;

use crate::{
    commands::Command,
    connection::{Connection, Table},
    failure::{self, Failure},
    format,
    options::{self, Parsed},
    output::Output,
    quota, read_file, tree,
};

/// How long `sync` waits, as in zkCli.
const SYNC_WAIT: Duration = Duration::from_secs(30);

/// The largest time to live: 40 bits of milliseconds, about 34 years.
const TTL_MS_MAX: i64 = (1 << 40) - 1;

/// The largest file of a configuration: what fits into a request.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// How many znodes `deleteall` deletes in a multi.
const BATCH_SIZE: usize = 1_000;

/// Carries out a command that needs a connection.
///
/// # Errors
/// What zkCli prints.
pub(crate) async fn execute(
    command: &Command,
    words: &[String],
    connection: &mut Connection,
    output: &Output,
) -> Result<(), Failure> {
    let parsed = read_options(command, words, output)?;
    let mut run = Run {
        command,
        connection,
        output,
    };
    match command.name {
        "addWatch" => run.add_watch(&parsed).await,
        "addauth" => run.add_auth(&parsed).await,
        "config" => run.config(&parsed).await,
        "create" => run.create(&parsed).await,
        "delete" => run.delete(&parsed).await,
        "deleteall" => run.delete_all(&parsed).await,
        "delquota" => {
            let path = run.argument(&parsed, 1)?;
            quota::delete(&run.connection.client, output, &parsed, path).await
        }
        "get" => run.get(&parsed).await,
        "getAcl" => run.get_acl(&parsed).await,
        "getAllChildrenNumber" => run.all_children_number(&parsed).await,
        "getEphemerals" => run.ephemerals(&parsed).await,
        "listquota" => {
            let path = run.argument(&parsed, 1)?;
            quota::list(&run.connection.client, output, path).await
        }
        "ls" => run.ls(&parsed).await,
        "reconfig" => run.reconfig(&parsed).await,
        "removewatches" => run.remove_watches(&parsed).await,
        "set" => run.set(&parsed).await,
        "setAcl" => run.set_acl(&parsed).await,
        "setquota" => {
            let path = run.argument(&parsed, 1)?;
            quota::set(run.connection, output, &parsed, path).await
        }
        "stat" => run.stat(&parsed).await,
        "sync" => run.sync(&parsed).await,
        "version" => run.version(&parsed),
        "whoami" => run.who_am_i().await,
        // The others need no connection; their caller has carried them out.
        _ => Ok(()),
    }
}

/// Sorts the words of a command. `get`, `stat` and `ls` once took a further argument for a watch: they
/// warn, and replace their third word by `-w`, as zkCli does.
fn read_options(command: &Command, words: &[String], output: &Output) -> Result<Parsed, Failure> {
    if command.name == "whoami" {
        return Ok(Parsed::default());
    }
    let read = |words: &[String]| options::parse(command.options, command.choice, words);
    let parsed = read(words)?;
    let usage = match command.name {
        "get" => "get [-s] [-w] path",
        "stat" => "stat [-w] path",
        "ls" => "ls [-w] path",
        _ => return Ok(parsed),
    };
    if parsed.args.len() <= 2 {
        return Ok(parsed);
    }
    output.error(&format!(
        "'{} path [watch]' has been deprecated. Please use '{usage}' instead.",
        command.name
    ));
    let mut words = words.to_vec();
    "-w".clone_into(&mut words[2]);
    Ok(read(&words)?)
}

struct Run<'a> {
    command: &'a Command,
    connection: &'a mut Connection,
    output: &'a Output,
}

impl Run<'_> {
    fn client(&self) -> &Client {
        &self.connection.client
    }

    fn usage(&self) -> Failure {
        Failure::from(self.command.usage_line())
    }

    /// Returns an argument that the command must have.
    fn argument<'p>(&self, parsed: &'p Parsed, index: usize) -> Result<&'p str, Failure> {
        let argument = parsed.args.get(index).map(String::as_str);
        argument.ok_or_else(|| self.usage())
    }

    /// Returns the version of `-v`; `None` for any.
    fn version_option(parsed: &Parsed) -> Result<Option<i32>, Failure> {
        let Some(text) = parsed.value("v") else {
            return Ok(None);
        };
        let version: i32 = text
            .parse()
            .map_err(|_| Failure::from("-v argument must be an int value"))?;
        Ok((version != -1).then_some(version))
    }

    fn print_stat(&self, stat: &Stat) {
        self.output.line(&format::stat(stat));
    }

    /// Reads data, with a watch if `-w` says so.
    async fn read_data(
        &mut self,
        parsed: &Parsed,
        path: &str,
        plain: impl FnOnce(&Client) -> Call<Data>,
        watching: impl FnOnce(&Client) -> Call<(Data, OneShot)>,
    ) -> Result<Data, Failure> {
        let failed = |error| Failure::of(&error, path);
        if !parsed.has("w") {
            return plain(self.client()).await.map_err(failed);
        }
        let (data, watch) = watching(self.client()).await.map_err(failed)?;
        self.connection.keep_one_shot(Table::Data, path, watch);
        Ok(data)
    }

    async fn add_watch(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        let [_, path] = &parsed.args[..] else {
            return Err(self.usage());
        };
        let mode = match parsed.value("m").map(str::to_uppercase).as_deref() {
            Some("PERSISTENT") => AddWatchMode::Persistent,
            Some("PERSISTENT_RECURSIVE") | None => AddWatchMode::PersistentRecursive,
            Some(_) => return Err(self.usage()),
        };
        let watch = self.client().add_watch(path, mode).await;
        let watch = watch.map_err(|error| Failure::of(&error, path))?;
        self.connection.keep_persistent(mode, path, watch);
        Ok(())
    }

    async fn add_auth(&self, parsed: &Parsed) -> Result<(), Failure> {
        let scheme = self.argument(parsed, 1)?;
        let data = parsed.args.get(2).map_or("", String::as_str);
        // Without a connection the client would only note the identity, and a rejection come later.
        let connected = self.connection.connected().await;
        connected.map_err(|_| Failure::from(failure::connection_loss("")))?;
        // A rejection ends the client, which prints it as an event.
        let _ = self.client().add_identity(scheme, data.as_bytes()).await;
        Ok(())
    }

    async fn config(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        const PATH: &str = "/zookeeper/config";
        let data = self
            .read_data(parsed, PATH, Client::config, Client::config_and_watch)
            .await?;
        let text = format::text(&data);
        self.output.line(&if parsed.has("c") {
            format::client_config(&text)
        } else {
            text
        });
        if parsed.has("s") {
            self.print_stat(&data.stat);
        }
        Ok(())
    }

    async fn create(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let [ephemeral, sequential, container] = ["e", "s", "c"].map(|name| parsed.has(name));
        if container && (ephemeral || sequential) {
            return Err(Failure::from(
                "-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.",
            ));
        }
        let ttl_ms: Option<i64> = match parsed.value("t") {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| Failure::from("-t argument must be a long value"))?,
            ),
            None => None,
        };
        if ttl_ms.is_some() && ephemeral {
            return Err(Failure::from("TTLs cannot be used with Ephemeral znodes"));
        }
        if ttl_ms.is_some() && container {
            return Err(Failure::from("TTLs cannot be used with Container znodes"));
        }
        let mode = match (ephemeral, sequential, ttl_ms.is_some()) {
            (true, true, _) => CreateMode::EphemeralSequential,
            (true, false, _) => CreateMode::Ephemeral,
            (false, true, true) => CreateMode::PersistentSequentialWithTtl,
            (false, true, false) => CreateMode::PersistentSequential,
            (false, false, true) => CreateMode::PersistentWithTtl,
            (false, false, false) if container => CreateMode::Container,
            (false, false, false) => CreateMode::Persistent,
        };
        let mut create = CreateOptions::new(mode);
        if let Some(ttl_ms) = ttl_ms {
            let ttl = u64::try_from(ttl_ms).ok();
            let ttl = ttl.filter(|_| (1..=TTL_MS_MAX).contains(&ttl_ms));
            let ttl = ttl.ok_or_else(|| {
                format!("ttl must be positive and cannot be larger than: {TTL_MS_MAX}")
            })?;
            create = create.ttl(Duration::from_millis(ttl));
        }
        let data = parsed.args.get(2);
        create = create.null_data(data.is_none());
        if let Some(acl) = parsed.args.get(3) {
            create = create.acl(self.parse_acl(acl));
        }
        let data = data.map_or("", String::as_str);
        match self.client().create(path, data.as_bytes(), create).await {
            Ok(created) => {
                if self.output.prints_path_alone {
                    self.output.line(&created.path);
                } else {
                    self.output.error(&format!("Created {}", created.path));
                }
                Ok(())
            }
            Err(error) => {
                match error.code() {
                    Some(code @ ErrorCode::InvalidAcl) => {
                        self.output.error(&failure::raw(code, path));
                    }
                    Some(ErrorCode::EphemeralOnLocalSession) => self
                        .output
                        .error("Unable to create ephemeral node on a local session"),
                    _ => {}
                }
                Err(Failure::of(&error, path))
            }
        }
    }

    fn parse_acl(&self, text: &str) -> AclList {
        format::parse_acl(text, |complaint| self.output.error(&complaint))
    }

    async fn delete(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        if parsed.args.len() > 2 {
            self.output.error(
                "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' \
                 instead.",
            );
        }
        let version = Self::version_option(parsed)?;
        let deleted = self.client().delete(path, version).await;
        deleted.map_err(|error| Failure::of(&error, path))
    }

    async fn delete_all(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let batch_size = match parsed.value("b") {
            Some(text) => {
                let size: i32 = text
                    .parse()
                    .map_err(|_| Failure::from("-b argument must be an int value"))?;
                usize::try_from(size).unwrap_or(0)
            }
            None => BATCH_SIZE,
        };
        if tree::delete(self.client(), path, batch_size).await? {
            Ok(())
        } else {
            Err(Failure::from(
                "Failed to delete some node(s) in the subtree!",
            ))
        }
    }

    async fn get(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let data = self
            .read_data(
                parsed,
                path,
                |client| client.get_data(path),
                |client| client.get_data_and_watch(path),
            )
            .await?;
        let bytes = data.data.as_deref().unwrap_or(b"null");
        self.output.line(&if parsed.has("x") {
            format::hex_dump(bytes)
        } else if parsed.has("b") {
            format::base64(bytes)
        } else {
            format::text(&data)
        });
        if parsed.has("s") {
            self.print_stat(&data.stat);
        }
        Ok(())
    }

    async fn get_acl(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let read = self.client().get_acl(path).await;
        let (acl, stat) = read.map_err(|error| Failure::of(&error, path))?;
        let text = format::acl(&acl);
        if let Some(text) = text.strip_suffix('\n') {
            self.output.line(text);
        }
        if parsed.has("s") {
            self.print_stat(&stat);
        }
        Ok(())
    }

    async fn all_children_number(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let count = self.client().all_children_number(path).await;
        let count = count.map_err(|error| Failure::of(&error, path))?;
        self.output.line(&count.to_string());
        Ok(())
    }

    async fn ephemerals(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = parsed.args.get(1).map_or("/", String::as_str);
        let paths = self.client().ephemerals(path).await;
        let paths = paths.map_err(|error| Failure::of(&error, path))?;
        self.output.line(&format!("[{}]", paths.join(", ")));
        Ok(())
    }

    async fn ls(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        if parsed.has("?") {
            self.output.line(
                "usage: ls [options] path\n -?   help\n -R   recurse\n -s   stat\n -w   watch",
            );
        }
        let path = self.argument(parsed, 1)?;
        let is_watching = parsed.has("w");
        if parsed.has("R") {
            return tree::list(self.connection, self.output, path, is_watching).await;
        }
        let failed = |error| Failure::of(&error, path);
        let children = if is_watching {
            let read = self.client().children_and_watch(path).await;
            let (children, watch) = read.map_err(failed)?;
            self.connection.keep_one_shot(Table::Child, path, watch);
            children
        } else {
            self.client().children(path).await.map_err(failed)?
        };
        let mut names: Vec<_> = children.names().collect();
        names.sort_unstable();
        self.output.line(&format!("[{}]", names.join(", ")));
        if parsed.has("s") {
            self.print_stat(children.stat());
        }
        Ok(())
    }

    async fn reconfig(&self, parsed: &Parsed) -> Result<(), Failure> {
        let [file, members, add, remove] =
            ["file", "members", "add", "remove"].map(|name| parsed.value(name));
        if [file, members, add, remove].iter().all(Option::is_none) {
            return Err(self.usage());
        }
        let version = match parsed.value("v") {
            Some(text) => Some(i64::from_str_radix(text, 16).map_err(|_| {
                Failure::from("-v must be followed by a long (configuration version)")
            })?),
            None => None,
        };
        if (file.is_some() || members.is_some()) && (add.is_some() || remove.is_some()) {
            return Err(Failure::from(
                "Can't use -file or -members together with -add or -remove (mixing incremental and \
                 non-incremental modes is not allowed)",
            ));
        }
        if file.is_some() && members.is_some() {
            return Err(Failure::from(
                "Can't use -file and -members together (conflicting non-incremental modes)",
            ));
        }
        let mut change = Reconfiguration::new().from_version(version);
        if let Some(servers) = add {
            change = change.joining(servers.to_lowercase());
        }
        if let Some(ids) = remove {
            change = change.leaving(ids.to_lowercase());
        }
        if let Some(servers) = members {
            change = change.members(servers.to_lowercase());
        }
        if let Some(file) = file {
            let text = read_file(Path::new(file), CONFIG_BYTES_MAX)
                .map_err(|error| format!("Error processing {file}: {error}"))?;
            let text = String::from_utf8_lossy(&text);
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| line.starts_with("server."));
            change = change.members(lines.collect::<Vec<_>>().join("\n"));
        }
        let data = self.client().reconfigure(change).await;
        let data = data.map_err(|error| Failure::of(&error, ""))?;
        let text = format::text(&data);
        self.output
            .line(&format!("Committed new configuration:\n{text}"));
        if parsed.has("s") {
            self.print_stat(&data.stat);
        }
        Ok(())
    }

    async fn remove_watches(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        minikeeper_client::ZnodePath::new(path)
            .map_err(|error| Failure::of(&error.into(), path))?;
        let options = [
            ("c", Table::Child),
            ("d", Table::Data),
            ("p", Table::Persistent),
            ("r", Table::PersistentRecursive),
        ];
        let chosen = options.iter().find(|(name, _)| parsed.has(name));
        let tables = chosen.map_or(Table::ALL, |(_, table)| std::slice::from_ref(table));
        if !parsed.has("l") {
            let connected = self.connection.connected().await;
            connected.map_err(|_| Failure::from(failure::connection_loss(path)))?;
        }
        if self.connection.remove_watches(tables, path) {
            Ok(())
        } else {
            Err(Failure::from(failure::refused(ErrorCode::NoWatcher, path)))
        }
    }

    async fn set(&self, parsed: &Parsed) -> Result<(), Failure> {
        let (path, data) = (self.argument(parsed, 1)?, self.argument(parsed, 2)?);
        let data = if parsed.has("b") {
            format::parse_base64(data)?
        } else {
            data.as_bytes().to_vec()
        };
        let version = Self::version_option(parsed)?;
        let stat = self.client().set_data(path, &data, version).await;
        let stat = stat.map_err(|error| Failure::of(&error, path))?;
        if parsed.has("s") {
            self.print_stat(&stat);
        }
        Ok(())
    }

    async fn set_acl(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        let (path, acl) = (self.argument(parsed, 1)?, self.argument(parsed, 2)?);
        let acl = self.parse_acl(acl);
        let version = Self::version_option(parsed)?;
        if parsed.has("R") {
            return tree::set_acl(self.connection, self.output, path, &acl, version).await;
        }
        let stat = self.client().set_acl(path, &acl, version).await;
        let stat = stat.map_err(|error| Failure::of(&error, path))?;
        if parsed.has("s") {
            self.print_stat(&stat);
        }
        Ok(())
    }

    async fn stat(&mut self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        let failed = |error: Error| Failure::of(&error, path);
        let stat = if parsed.has("w") {
            let read = self.client().exists_and_watch(path).await;
            let (stat, watch) = read.map_err(failed)?;
            self.connection.keep_one_shot(Table::Data, path, watch);
            stat
        } else {
            self.client().exists(path).await.map_err(failed)?
        };
        match stat {
            Some(stat) => {
                self.print_stat(&stat);
                Ok(())
            }
            None => Err(Failure::from(failure::refused(ErrorCode::NoNode, path))),
        }
    }

    async fn sync(&self, parsed: &Parsed) -> Result<(), Failure> {
        let path = self.argument(parsed, 1)?;
        match timeout(SYNC_WAIT, self.client().sync(path)).await {
            Ok(Ok(())) => self.output.line("Sync is OK"),
            Ok(Err(error)) => match error.code() {
                Some(code) => {
                    let code = code.code();
                    self.output.line(&format!("Sync has failed. rc={code}"));
                }
                None => return Err(Failure::of(&error, path)),
            },
            Err(_) => {
                let seconds = SYNC_WAIT.as_secs();
                return Err(Failure::from(format!("no reply within {seconds} s")));
            }
        }
        Ok(())
    }

    fn version(&self, parsed: &Parsed) -> Result<(), Failure> {
        if parsed.args.len() > 1 {
            return Err(self.usage());
        }
        let version = env!("CARGO_PKG_VERSION");
        self.output
            .line(&format!("minikeeper CLI version: {version}"));
        Ok(())
    }

    async fn who_am_i(&self) -> Result<(), Failure> {
        let infos = self.client().who_am_i().await;
        let infos = infos.map_err(|error| Failure::of(&error, ""))?;
        self.output.line("Auth scheme: User");
        for info in infos {
            self.output.line(&format!("{}: {}", info.scheme, info.user));
        }
        Ok(())
    }
}
