//! Encodes the requests of a scenario.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, ConnectRequest, Create, CreateOp, MultiOp, MultiReadOp, OpCode, Perms, Request,
    SessionId, Ustring, Xid, Zxid, jute,
};

use super::{Env, token::Token};

type Message = (Bytes, Xid, Option<OpCode>);

/// The words of one operation, consumed in order.
struct Words<'a> {
    op: String,
    words: std::slice::Iter<'a, Token>,
    /// Whether only the syntax is checked.
    is_dry: bool,
    env: &'a Env,
}

/// Parses the handshake of a `connect` line.
pub(crate) fn hello(options: &[Token], env: &Env, is_dry: bool) -> Result<ConnectRequest, String> {
    let mut hello = ConnectRequest::new(10_000);
    for option in options {
        let (name, value) = option.option().ok_or("connect takes name=value")?;
        let text = value.text();
        match name.as_str() {
            "timeout" => hello.timeout_ms = number(&text)?,
            "seen" => hello.last_zxid_seen = env.zxid(&text, is_dry)?,
            "readonly" => {
                hello.read_only = match text.as_str() {
                    "none" => None,
                    "yes" => Some(true),
                    _ => return Err(format!("readonly is none or yes, not {text}")),
                };
            }
            "session" if text.starts_with("0x") => {
                let id = i64::from_str_radix(&text[2..], 16);
                hello.session_id = SessionId(id.map_err(|_| format!("invalid session {text}"))?);
            }
            "session" => match env.sessions.get(&text) {
                Some((id, password)) => {
                    hello.session_id = *id;
                    hello.password = Some(password.clone());
                }
                None if is_dry => {}
                None => return Err(format!("{text} has no session")),
            },
            "password" => {
                hello.password = match text.as_str() {
                    "null" => None,
                    "wrong" => Some(Bytes::from_static(&[7; 16])),
                    "long" => Some(Bytes::from_static(&[7; 100])),
                    "short" => hello.password.map(|password| password.slice(1..)),
                    _ => return Err(format!("unknown password {text}")),
                };
            }
            _ => return Err(format!("unknown option {name} of connect")),
        }
    }
    Ok(hello)
}

/// Returns the message of a request line, its xid, and its operation if the code is known.
pub(crate) fn message(
    words: &[Token],
    env: &Env,
    mut xid: Xid,
    is_dry: bool,
) -> Result<Message, String> {
    let mut kept = Vec::new();
    for word in words {
        match word.option() {
            Some((name, value)) if name == "xid" => xid = Xid(number(&value.text())?),
            _ => kept.push(word.clone()),
        }
    }
    let op = kept.first().ok_or("missing operation")?.text();
    let mut words = Words {
        op,
        words: kept[1..].iter(),
        is_dry,
        env,
    };
    let message = if words.op == "raw" {
        raw(&mut words, xid)?
    } else {
        let request = request(&mut words)?;
        let mut out = Vec::new();
        request.encode(xid, &mut out);
        (Bytes::from(out).slice(4..), xid, Some(request.op()))
    };
    words.end()?;
    Ok(message)
}

/// `raw op=<code> [body=<hex>]`: any operation code, any body.
fn raw(words: &mut Words<'_>, xid: Xid) -> Result<Message, String> {
    let code = words.option("op")?.ok_or("raw needs op=")?;
    let code = number(&code.text())?;
    let hex = words
        .option("body")?
        .map_or_else(String::new, |body| body.text());
    let mut out = Vec::new();
    jute::put_int(&mut out, xid.0);
    jute::put_int(&mut out, code);
    for at in (0..hex.len()).step_by(2) {
        let byte = hex
            .get(at..at + 2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.ok_or("body= needs pairs of hex digits")?);
    }
    Ok((out.into(), xid, OpCode::from_code(code)))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("invalid number {text}"))
}

impl Words<'_> {
    fn next(&mut self, what: &str) -> Result<&Token, String> {
        let op = &self.op;
        self.words
            .next()
            .ok_or_else(|| format!("{op} needs a {what}"))
    }

    fn path(&mut self) -> Result<Option<Ustring>, String> {
        let value = self.next("path")?.value();
        Ok(value.map(|path| Ustring::from(Bytes::from(path))))
    }

    fn data(&mut self) -> Result<Option<Bytes>, String> {
        Ok(self.next("data")?.value().map(Bytes::from))
    }

    fn version(&mut self) -> Result<i32, String> {
        number(&self.next("version")?.text())
    }

    /// Takes the next word if it is `word`.
    fn flag(&mut self, word: &str) -> bool {
        let is_next = self
            .words
            .as_slice()
            .first()
            .is_some_and(|next| next.is(word));
        if is_next {
            self.words.next();
        }
        is_next
    }

    /// Takes the next word if it is `name=value`.
    fn option(&mut self, name: &str) -> Result<Option<Token>, String> {
        match self.words.as_slice().first().and_then(Token::option) {
            Some((found, value)) if found == name => {
                self.words.next();
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }

    fn acl(&mut self) -> Result<AclList, String> {
        match self.option("acl")? {
            Some(acl) => parse_acl(&acl.text()),
            None => Ok(AclList::world_all()),
        }
    }

    fn since(&mut self) -> Result<Zxid, String> {
        let since = self.option("since")?.ok_or("missing since=")?;
        self.env.zxid(&since.text(), self.is_dry)
    }

    fn paths(&mut self, name: &str) -> Result<Vec<Ustring>, String> {
        let Some(list) = self.option(name)? else {
            return Ok(Vec::new());
        };
        Ok(list_items(&list.text())?
            .iter()
            .map(|path| path.as_str().into())
            .collect())
    }

    fn end(&mut self) -> Result<(), String> {
        match self.words.next() {
            Some(word) => Err(format!("{} does not take {}", self.op, word.text())),
            None => Ok(()),
        }
    }

    /// Takes the operations in `{ ... ; ... }`.
    fn group(&mut self) -> Result<Vec<Vec<Token>>, String> {
        let words: Vec<_> = self.words.by_ref().cloned().collect();
        group(&words)
    }
}

/// Splits `{ ... ; ... }` into its parts.
pub(super) fn group(words: &[Token]) -> Result<Vec<Vec<Token>>, String> {
    let [open, inner @ .., close] = words else {
        return Err("a group looks like { one ; two }".to_owned());
    };
    if !open.is("{") || !close.is("}") {
        return Err("a group looks like { one ; two }".to_owned());
    }
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    Ok(inner
        .split(|word| word.is(";"))
        .map(<[Token]>::to_vec)
        .collect())
}

/// Splits `[a,b]` into its items.
pub(super) fn list_items(text: &str) -> Result<Vec<String>, String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .ok_or_else(|| format!("a list looks like [a,b], not {text}"))?;
    Ok(inner
        .split(',')
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Parses `null`, `[]`, or `[31@world:anyone,1@digest:a:b]`, where `~` is a null scheme or id.
fn parse_acl(text: &str) -> Result<AclList, String> {
    if text == "null" {
        return Ok(AclList::null());
    }
    let mut entries = Vec::new();
    for item in list_items(text)? {
        let fault = || format!("invalid access list entry {item}");
        let (perms, identity) = item.split_once('@').ok_or_else(fault)?;
        let (scheme, id) = identity.split_once(':').ok_or_else(fault)?;
        let string = |text: &str| (text != "~").then(|| text.into());
        entries.push(Acl {
            perms: Perms(number(perms)?),
            scheme: string(scheme),
            id: string(id),
        });
    }
    Ok(AclList::new(&entries))
}

fn create(op: CreateOp, words: &mut Words<'_>) -> Result<Create, String> {
    const MODES: [(&str, i32); 7] = [
        ("persistent", 0),
        ("ephemeral", 1),
        ("sequential", 2),
        ("ephemeral_sequential", 3),
        ("container", 4),
        ("ttl", 5),
        ("ttl_sequential", 6),
    ];
    let (path, data) = (words.path()?, words.data()?);
    let mode = MODES.iter().find(|(mode, _)| words.flag(mode));
    let mut flags = mode.map_or(0, |(_, flags)| *flags);
    if let Some(given) = words.option("flags")? {
        flags = number(&given.text())?;
    }
    let acl = words.acl()?;
    let ttl = words.option("ttl_ms")?;
    Ok(Create {
        op,
        path,
        data,
        acl,
        flags,
        ttl_ms: ttl.map_or(Ok(0), |ttl| number(&ttl.text()))?,
    })
}

fn create_op(op: &str) -> Option<CreateOp> {
    Some(match op {
        "create" => CreateOp::Create,
        "create2" => CreateOp::Create2,
        "createContainer" => CreateOp::Container,
        "createTTL" => CreateOp::Ttl,
        _ => return None,
    })
}

fn request(words: &mut Words<'_>) -> Result<Request, String> {
    let op = words.op.clone();
    if let Some(op) = create_op(&op) {
        return Ok(Request::Create(create(op, words)?));
    }
    Ok(match op.as_str() {
        "delete" => Request::Delete {
            path: words.path()?,
            version: words.version()?,
        },
        "deleteContainer" => Request::DeleteContainer {
            path: words.path()?,
        },
        "exists" => Request::Exists {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        "getData" => Request::GetData {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        "getChildren" => Request::GetChildren {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        "getChildren2" => Request::GetChildren2 {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        "setData" => Request::SetData {
            path: words.path()?,
            data: words.data()?,
            version: words.version()?,
        },
        "getACL" => Request::GetAcl {
            path: words.path()?,
        },
        "setACL" => Request::SetAcl {
            path: words.path()?,
            acl: words.acl()?,
            version: words.version()?,
        },
        "sync" => Request::Sync {
            path: words.path()?,
        },
        "ping" => Request::Ping,
        "check" => Request::Check {
            path: words.path()?,
            version: words.version()?,
        },
        "getEphemerals" => Request::GetEphemerals {
            prefix: words.path()?,
        },
        "getAllChildrenNumber" => Request::GetAllChildrenNumber {
            path: words.path()?,
        },
        "addWatch" => Request::AddWatch {
            path: words.path()?,
            mode: code(words, &[("persistent", 0), ("recursive", 1)])?,
        },
        "checkWatches" => Request::CheckWatches {
            path: words.path()?,
            kind: watcher_type(words)?,
        },
        "removeWatches" => Request::RemoveWatches {
            path: words.path()?,
            kind: watcher_type(words)?,
        },
        "setWatches" => Request::SetWatches {
            relative_zxid: words.since()?,
            data: words.paths("data")?,
            exist: words.paths("exist")?,
            child: words.paths("child")?,
        },
        "setWatches2" => Request::SetWatches2 {
            relative_zxid: words.since()?,
            data: words.paths("data")?,
            exist: words.paths("exist")?,
            child: words.paths("child")?,
            persistent: words.paths("persistent")?,
            persistent_recursive: words.paths("recursive")?,
        },
        "reconfig" => Request::Reconfig {
            joining: None,
            leaving: None,
            members: None,
            config_id: -1,
        },
        "sasl" => Request::Sasl {
            token: words.data()?,
        },
        "auth" => Request::Auth {
            kind: 0,
            scheme: words.path()?,
            data: words.data()?,
        },
        "whoAmI" => Request::WhoAmI,
        "createSession" => Request::CreateSession,
        "closeSession" => Request::CloseSession,
        "multi" => Request::Multi(in_group(words, multi_op)?),
        "multiRead" => Request::MultiRead(in_group(words, multi_read_op)?),
        _ => return Err(format!("unknown operation {op}")),
    })
}

fn code(words: &mut Words<'_>, names: &[(&str, i32)]) -> Result<i32, String> {
    let text = words.next("mode")?.text();
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, code)) => Ok(*code),
        None => number(&text),
    }
}

fn watcher_type(words: &mut Words<'_>) -> Result<i32, String> {
    let names = [
        ("children", 1),
        ("data", 2),
        ("any", 3),
        ("persistent", 4),
        ("recursive", 5),
    ];
    code(words, &names)
}

fn in_group<T>(
    words: &mut Words<'_>,
    parse: impl Fn(&mut Words<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let (is_dry, env) = (words.is_dry, words.env);
    let mut ops = Vec::new();
    for part in words.group()? {
        let op = part.first().ok_or("missing operation")?.text();
        let mut words = Words {
            op,
            words: part[1..].iter(),
            is_dry,
            env,
        };
        ops.push(parse(&mut words)?);
        words.end()?;
    }
    Ok(ops)
}

fn multi_op(words: &mut Words<'_>) -> Result<MultiOp, String> {
    if let Some(op) = create_op(&words.op) {
        return Ok(MultiOp::Create(create(op, words)?));
    }
    Ok(match words.op.as_str() {
        "delete" => MultiOp::Delete {
            path: words.path()?,
            version: words.version()?,
        },
        "check" => MultiOp::Check {
            path: words.path()?,
            version: words.version()?,
        },
        "setData" => MultiOp::SetData {
            path: words.path()?,
            data: words.data()?,
            version: words.version()?,
        },
        other => return Err(format!("{other} is not allowed in a multi")),
    })
}

fn multi_read_op(words: &mut Words<'_>) -> Result<MultiReadOp, String> {
    Ok(match words.op.as_str() {
        "getData" => MultiReadOp::GetData {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        "getChildren" => MultiReadOp::GetChildren {
            path: words.path()?,
            watch: words.flag("watch"),
        },
        other => return Err(format!("{other} is not allowed in a multiRead")),
    })
}
