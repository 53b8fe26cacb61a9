//! The operation mix of a load: the syntax of `--mix`, the znodes that it needs, and the requests.

use bytes::Bytes;
use minikeeper_protocol::{ErrorCode, Reply, Request, Xid};

use crate::{
    Error,
    client::Client,
    frames::{Deck, Kind, Source, get_reply_bytes, request},
};

/// Kinds with their weights, as parsed from `get`, or `get=90,set=10`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mix {
    parts: Vec<(Kind, u32)>,
}

impl Mix {
    /// Parses `name` or `name=weight`, separated by commas.
    ///
    /// # Errors
    /// A message for the user: an unknown name, a weight that is not a number, or kinds that cannot
    /// be mixed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let kind = Kind::from_name(name.trim()).ok_or_else(|| {
                let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                format!("operation {name:?} is unknown; one of {}", names.join(", "))
            })?;
            let weight = weight
                .trim()
                .parse()
                .map_err(|_| format!("weight {weight:?} of {name} is not a whole number"))?;
            parts.push((kind, weight));
        }
        let alone = |kind: &Kind| matches!(kind, Kind::Raw | Kind::Connect);
        if parts.len() > 1 && parts.iter().any(|(kind, _)| alone(kind)) {
            return Err("raw and connect cannot be mixed with other operations".into());
        }
        if parts.iter().all(|(_, weight)| *weight == 0) {
            return Err("all weights are 0; at least one must be above 0".into());
        }
        Ok(Self { parts })
    }

    /// Returns the kind, if there is only one.
    #[must_use]
    pub fn only(&self) -> Option<Kind> {
        match self.parts[..] {
            [(kind, _)] => Some(kind),
            _ => None,
        }
    }

    /// Returns whether the mix has any of these kinds.
    #[must_use]
    pub fn has(&self, kinds: &[Kind]) -> bool {
        self.parts.iter().any(|(kind, _)| kinds.contains(kind))
    }

    /// Returns the text from which this was parsed, normalised.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some(kind) = self.only() {
            return kind.name().into();
        }
        let parts = self.parts.iter();
        let parts = parts.map(|(kind, weight)| format!("{}={weight}", kind.name()));
        parts.collect::<Vec<_>>().join(",")
    }
}

/// The parent of all znodes that a load creates.
pub const PARENT: &str = "/load";

/// The parent of znodes that are created and deleted in the timed part.
pub const NURSERY: &str = "/load/c";

/// The largest number of znodes under [`NURSERY`].
pub const NURSERY_ZNODES: usize = 16_384;

/// Returns the path of key `number`.
#[must_use]
pub fn key(number: usize) -> String {
    format!("{PARENT}/k{number:07}")
}

fn nursling(number: usize) -> String {
    format!("{NURSERY}/n{number:07}")
}

/// Returns the data of each znode of a load: bytes that are not all the same.
#[must_use]
pub fn data(data_bytes: usize) -> Bytes {
    let pattern = (0..data_bytes).map(|at| u8::try_from(at * 7 % 251).expect("below 251"));
    pattern.collect::<Vec<_>>().into()
}

/// The frames of a load, by purpose.
#[derive(Debug)]
pub struct Decks {
    /// Creates of the keys, for the setup.
    pub plant: Deck,
    /// Sets of the keys, for the setup: a key of an earlier run may have other data.
    pub refresh: Deck,
    /// Creates under the nursery.
    pub births: Deck,
    /// Deletes under the nursery.
    pub deaths: Deck,
    by_kind: Vec<Option<Deck>>,
}

impl Decks {
    /// Encodes the requests of the mix.
    #[must_use]
    pub fn new(mix: &Mix, keys: usize, data_bytes: usize) -> Self {
        let data = data(data_bytes);
        let births = match mix.only() {
            Some(Kind::Create2) => Kind::Create2,
            _ => Kind::Create,
        };
        let of_keys = |kind| Deck::new(kind, (0..keys).map(|at| request(kind, &key(at), &data)));
        let of_nursery = |kind| {
            let numbers = 0..NURSERY_ZNODES;
            Deck::new(kind, numbers.map(|at| request(kind, &nursling(at), &data)))
        };
        let mut by_kind = vec![None; Kind::ALL.len()];
        for (kind, _) in &mix.parts {
            by_kind[*kind as usize] = match kind {
                Kind::Get | Kind::Set | Kind::Exists => Some(of_keys(*kind)),
                Kind::Children | Kind::Ping => Some(Deck::new(
                    *kind,
                    [request(*kind, NURSERY, &data)].into_iter(),
                )),
                Kind::Raw => Some(Deck::raw(get_reply_bytes(data_bytes))),
                Kind::Create | Kind::Create2 | Kind::Delete => Some(of_nursery(*kind)),
                Kind::Connect => None,
            };
        }
        Self {
            plant: of_keys(Kind::Create),
            refresh: of_keys(Kind::Set),
            births: of_nursery(births),
            deaths: of_nursery(Kind::Delete),
            by_kind,
        }
    }
}

/// Deals requests at random in the proportions of the mix.
///
/// Creates and deletes use znodes of their own connection, whose requests are served in order: a
/// delete removes the oldest one created there. Without a znode to delete, a delete becomes a
/// create; without room for another, a create becomes a delete. So no reply is an error.
#[derive(Debug)]
pub struct Mixed<'a> {
    decks: &'a Decks,
    /// The kinds, each repeated by its weight, from which one is picked evenly.
    wheel: Vec<Kind>,
    random: u64,
    share: usize,
    /// For each connection, how many znodes it has ever created and deleted under the nursery.
    alive: Vec<(usize, usize)>,
}

impl<'a> Mixed<'a> {
    /// Returns a source for this number of connections. The same seed deals the same requests.
    #[must_use]
    pub fn new(mix: &Mix, decks: &'a Decks, connections: usize, seed: u64) -> Self {
        let parts = mix.parts.iter();
        let wheel = parts
            .flat_map(|(kind, weight)| std::iter::repeat_n(*kind, *weight as usize))
            .collect();
        Self {
            decks,
            wheel,
            random: seed | 1,
            share: NURSERY_ZNODES / connections.max(1),
            alive: vec![(0, 0); connections],
        }
    }

    /// Returns a random number below `bound`: xorshift, good enough to pick keys.
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let high = (u128::from(self.random) * bound as u128) >> 64;
        usize::try_from(high).expect("the product's high half is below the bound")
    }
}

impl Source for Mixed<'_> {
    fn next(&mut self, connection: usize, xid: Xid, out: &mut Vec<u8>) -> Option<Kind> {
        let kind = if self.wheel.len() == 1 {
            self.wheel[0]
        } else {
            let at = self.below(self.wheel.len());
            self.wheel[at]
        };
        let (born, died) = self.alive[connection];
        let base = connection * self.share;
        let births = match kind {
            Kind::Create | Kind::Create2 => born - died < self.share,
            Kind::Delete => born == died,
            _ => {
                let deck = self.decks.by_kind[kind as usize].as_ref()?;
                let at = if deck.len() == 1 {
                    0
                } else {
                    self.below(deck.len())
                };
                return Some(deck.deal(at, xid, out));
            }
        };
        if births {
            self.alive[connection].0 += 1;
            let deck = self.decks.by_kind[kind as usize].as_ref();
            let deck = deck.filter(|deck| deck.kind() != Kind::Delete);
            let deck = deck.unwrap_or(&self.decks.births);
            Some(deck.deal(base + born % self.share, xid, out))
        } else {
            self.alive[connection].1 += 1;
            Some(self.decks.deaths.deal(base + died % self.share, xid, out))
        }
    }
}

/// Creates the parents.
///
/// # Errors
/// The server cannot be reached, or refuses for another reason than that they exist.
pub fn plant_parents(client: &mut Client) -> Result<(), Error> {
    for path in [PARENT, NURSERY] {
        let (header, _) = client.call(&request(Kind::Create, path, &Bytes::new()))?;
        match header.error {
            None | Some(ErrorCode::NodeExists) => {}
            Some(error) => {
                return Err(Error::Unexpected(format!(
                    "cannot create {path:?}: {error}"
                )));
            }
        }
    }
    Ok(())
}

/// Reads a key back and checks the size of its data.
///
/// # Errors
/// It cannot be read, or has another size: an echo returns the size with which it was started.
pub fn check_key(client: &mut Client, data_bytes: usize) -> Result<(), Error> {
    let path = Some(key(0).into());
    let (header, reply) = client.call(&Request::GetData { path, watch: false })?;
    let Some(Reply::Data(data, _)) = reply else {
        let error = header.error.map_or_else(String::new, |e| e.to_string());
        return Err(Error::Unexpected(format!(
            "cannot read {:?}: {error}",
            key(0)
        )));
    };
    let found = data.map_or(0, |data| data.len());
    if found != data_bytes {
        return Err(Error::Setup(format!(
            "data of {found} bytes where {data_bytes} bytes were set; \
             start echo with --data-bytes {data_bytes}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_weights_and_refuses_nonsense() {
        assert_eq!(Mix::parse("get").unwrap().only(), Some(Kind::Get));
        assert_eq!(
            Mix::parse("get=90, set=10").unwrap().text(),
            "get=90,set=10"
        );
        assert!(Mix::parse("get=90,raw").is_err());
        assert!(Mix::parse("fetch").unwrap_err().contains("unknown"));
        assert!(Mix::parse("get=0").is_err());
    }

    #[test]
    fn deletes_never_outnumber_creates() {
        let mix = Mix::parse("create=1,delete=3").unwrap();
        let decks = Decks::new(&mix, 1, 10);
        let mut mixed = Mixed::new(&mix, &decks, 1, 42);
        let (mut born, mut died) = (0, 0);
        for _ in 0..10_000 {
            match mixed.next(0, Xid(1), &mut Vec::new()) {
                Some(Kind::Create) => born += 1,
                Some(Kind::Delete) => died += 1,
                other => panic!("dealt {other:?}"),
            }
            assert!(died <= born, "{died} deletes after {born} creates");
        }
    }
}
