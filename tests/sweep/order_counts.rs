//! The numbers of orders that a sweep tries, compared with those of an enumerator of a model.
//!
//! The model has its own tree and its own idea of which requests commute. It counts orders without doing
//! them one by one: prefixes that are equivalent lead to the same state, so that it is enough to know in how
//! many orders each class of prefixes comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use minikeeper::{Server, Sweep, SweepOptions, SweepReport, tree};
use minikeeper_client::{Client, CreateMode, Error, OneShot};
use minikeeper_recipes::InterProcessMutex;
use minikeeper_test_kit::{
    link::Link,
    random::{self, Random},
    servers,
};

/// What a contender for the mutex does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Next {
    Join,
    List,
    /// Reads the znode with this number, and watches it. Our mutex then looks at the one before it.
    Watch(u32, Option<u32>),
    /// Watches the znode before the one that it waits for.
    WatchFurther(u32, u32),
    /// Watches its own znode, while it waits for this one.
    WatchOwn(u32),
    /// Reads once more the znode that had gone before it could be watched.
    ReadAgain(u32),
    /// Waits for the deletion of this znode.
    Wait(u32),
    Get,
    Set,
    Leave,
    Nothing,
}

/// What a request may touch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Thing {
    Names,
    Number,
    Znode(u32),
    Counter,
    /// The replies and events of a client.
    Stream(usize),
}

/// How: two that read, or two that add, commute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum How {
    Reads,
    Adds,
    Writes,
}

type Touches = Vec<(Thing, How)>;

/// Contenders for a mutex, who read and write a counter while they hold it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct World {
    /// Whether a contender watches its own znode, too, and needs no list when the last one ahead is gone.
    watches_own: bool,
    znodes: BTreeSet<u32>,
    joined: u32,
    contenders: Vec<(Next, u32)>,
    /// Who watches which znode.
    watches: BTreeSet<(usize, u32)>,
    /// Who found the znode gone that it wanted to wait for.
    unsure: BTreeSet<usize>,
    /// The contenders whose events are late, and whether they do nothing until those come.
    late: BTreeMap<usize, bool>,
}

impl World {
    fn new(contenders: usize, watches_own: bool) -> Self {
        Self {
            watches_own,
            znodes: BTreeSet::new(),
            joined: 0,
            contenders: vec![(Next::Join, 0); contenders],
            watches: BTreeSet::new(),
            unsure: BTreeSet::new(),
            late: BTreeMap::new(),
        }
    }

    fn enabled(&self) -> Vec<usize> {
        let waits = |next: Next| matches!(next, Next::Wait(_) | Next::Nothing);
        let all = self.contenders.iter().enumerate();
        all.filter(|(who, (next, _))| !waits(*next) && self.late.get(who) != Some(&true))
            .map(|(who, _)| who)
            .collect()
    }

    /// Lets the events that are late come when everybody waits.
    fn wait(&mut self) {
        if self.enabled().is_empty() {
            self.late.clear();
        }
    }

    /// Lets a contender watch a znode. Returns whether that is there.
    fn watch(&mut self, who: usize, znode: u32) -> bool {
        let is_there = self.znodes.contains(&znode);
        if is_there {
            self.watches.insert((who, znode));
        }
        is_there
    }

    /// Serves the request of a contender. The events of `late` are late.
    fn serve(&mut self, who: usize, late: &[usize]) -> Touches {
        self.late.remove(&who);
        let (next, own) = self.contenders[who];
        let (then, mut touches) = match next {
            Next::Join => {
                let own = self.joined;
                self.joined += 1;
                self.znodes.insert(own);
                self.contenders[who].1 = own;
                let touches = vec![
                    (Thing::Names, How::Adds),
                    (Thing::Number, How::Writes),
                    (Thing::Znode(own), How::Writes),
                ];
                (Next::List, touches)
            }
            Next::List => {
                let mut ahead = self.znodes.range(..own).rev().copied();
                let then = match (ahead.next(), ahead.next()) {
                    (None, _) => Next::Get,
                    (Some(last), further) => {
                        Next::Watch(last, further.filter(|_| self.watches_own))
                    }
                };
                (then, vec![(Thing::Names, How::Reads)])
            }
            Next::Watch(ahead, further) => {
                let is_there = self.watch(who, ahead);
                if further.is_some() && !is_there {
                    self.unsure.insert(who);
                }
                let then = match further {
                    Some(further) => Next::WatchFurther(ahead, further),
                    None if self.watches_own => Next::WatchOwn(ahead),
                    None if is_there => Next::Wait(ahead),
                    None => Next::List,
                };
                (then, vec![(Thing::Znode(ahead), How::Reads)])
            }
            Next::WatchFurther(ahead, further) => {
                self.watch(who, further);
                (
                    Next::WatchOwn(ahead),
                    vec![(Thing::Znode(further), How::Reads)],
                )
            }
            Next::WatchOwn(ahead) => {
                let is_there = self.znodes.contains(&ahead);
                let then = if self.unsure.remove(&who) {
                    Next::ReadAgain(ahead)
                } else if is_there {
                    Next::Wait(ahead)
                } else {
                    Next::Get
                };
                (then, vec![(Thing::Znode(own), How::Reads)])
            }
            Next::ReadAgain(ahead) => (Next::Get, vec![(Thing::Znode(ahead), How::Reads)]),
            Next::Get => (Next::Set, vec![(Thing::Counter, How::Reads)]),
            Next::Set => (Next::Leave, vec![(Thing::Counter, How::Writes)]),
            Next::Leave => {
                self.znodes.remove(&own);
                let mut touches = vec![(Thing::Names, How::Adds), (Thing::Znode(own), How::Writes)];
                for (other, (next, _)) in self.contenders.iter_mut().enumerate() {
                    if !self.watches.remove(&(other, own)) {
                        continue;
                    }
                    touches.push((Thing::Stream(other), How::Writes));
                    let is_woken = *next == Next::Wait(own);
                    if late.contains(&other) {
                        self.late.insert(other, is_woken);
                    } else if let Some(waits) = self.late.get_mut(&other) {
                        // It comes behind the one that is late.
                        *waits |= is_woken;
                    }
                    if is_woken {
                        *next = if self.watches_own {
                            Next::Get
                        } else {
                            Next::List
                        };
                    }
                }
                (Next::Nothing, touches)
            }
            Next::Wait(_) | Next::Nothing => unreachable!("it is not enabled"),
        };
        self.contenders[who].0 = then;
        touches.push((Thing::Stream(who), How::Writes));
        touches
    }
}

fn clash(one: &Touches, other: &Touches) -> bool {
    one.iter().any(|(thing, how)| {
        let same = other.iter().filter(|(with, _)| thing == with);
        same.into_iter()
            .any(|(_, with)| how != with || *how == How::Writes)
    })
}

/// Requests by client and number, each with those that must come before it.
type Class = BTreeMap<(usize, usize), BTreeSet<(usize, usize)>>;

/// An order, up to equivalence: what comes before what, and which of it are events that are late.
type OrderClass = (Class, BTreeSet<(usize, usize)>);

/// A prefix of an order, up to equivalence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Prefix {
    class: Class,
    touches: BTreeMap<(usize, usize), Touches>,
    /// Which of them are events that are late, instead of requests.
    late: BTreeSet<(usize, usize)>,
    world: World,
}

impl Prefix {
    /// Returns what it becomes once the request of a client is served, with no event late, and with each
    /// choice of those that are.
    fn with(&self, who: usize, may_be_late: bool) -> Vec<(Self, u32)> {
        let touches = self.world.clone().serve(who, &[]);
        let told = touches.iter().filter_map(|(thing, _)| match thing {
            Thing::Stream(other) if *other != who => Some(*other),
            _ => None,
        });
        let told: Vec<_> = told
            .filter(|other| may_be_late && !self.world.late.contains_key(other))
            .collect();
        let choices = (0..1_usize << told.len()).map(|bits| {
            let late = told.iter().enumerate();
            let late = late.filter(|(place, _)| bits & (1 << place) != 0);
            let late: Vec<_> = late.map(|(_, other)| *other).collect();
            let mut next = self.clone();
            let touches = next.world.serve(who, &late);
            let cause = next.add(who, touches, None);
            for other in &late {
                let event = next.add(*other, Touches::new(), Some(cause));
                next.late.insert(event);
            }
            next.world.wait();
            (next, u32::try_from(late.len()).unwrap())
        });
        choices.collect()
    }

    fn add(
        &mut self,
        who: usize,
        touches: Touches,
        cause: Option<(usize, usize)>,
    ) -> (usize, usize) {
        let own = self.class.keys().filter(|(client, _)| *client == who);
        let added = (who, own.count());
        let mut before = BTreeSet::new();
        for (event, its) in &self.touches {
            if event.0 == who || cause == Some(*event) || clash(its, &touches) {
                before.insert(*event);
                before.extend(&self.class[event]);
            }
        }
        self.class.insert(added, before);
        self.touches.insert(added, touches);
        added
    }
}

/// How many orders there are, and how many classes of them, with at most so many unforced changes. Events may be
/// late, or not.
fn enumerate(world: World, changes_max: Option<u32>, may_be_late: bool) -> (u64, usize) {
    let (orders, classes) = classes_of(world, changes_max, may_be_late);
    (orders, classes.len())
}

/// How many orders there are, and their classes.
fn classes_of(
    world: World,
    changes_max: Option<u32>,
    may_be_late: bool,
) -> (u64, BTreeSet<OrderClass>) {
    let first = Prefix {
        class: Class::new(),
        touches: BTreeMap::new(),
        late: BTreeSet::new(),
        world,
    };
    // With the client that was served last, and the number of changes.
    let mut prefixes = BTreeMap::from([((first, None::<usize>, 0), 1)]);
    let (mut orders, mut classes) = (0, BTreeSet::new());
    while !prefixes.is_empty() {
        let mut longer = BTreeMap::new();
        for ((prefix, last, changes), count) in prefixes {
            let enabled = prefix.world.enabled();
            if enabled.is_empty() {
                assert!(
                    prefix.world.znodes.is_empty(),
                    "everybody waits: {prefix:?}"
                );
                orders += count;
                classes.insert((prefix.class, prefix.late));
                continue;
            }
            for who in &enabled {
                let is_change = last.is_some_and(|last| last != *who && enabled.contains(&last));
                for (with, late) in prefix.with(*who, may_be_late) {
                    let (last, changes) = match changes_max {
                        // Nothing depends on it.
                        None => (None, 0),
                        Some(_) => (Some(*who), changes + u32::from(is_change) + late),
                    };
                    if changes_max.is_none_or(|max| changes <= max) {
                        *longer.entry((with, last, changes)).or_default() += count;
                    }
                }
            }
        }
        prefixes = longer;
    }
    (orders, classes)
}

/// Returns how many classes there are if nobody can tell the contenders apart.
fn count_alike(classes: BTreeSet<OrderClass>, contenders: usize) -> usize {
    let mut numberings = vec![vec![]];
    for _ in 0..contenders {
        let longer = numberings.iter().flat_map(|numbers: &Vec<usize>| {
            let others = (0..contenders).filter(|other| !numbers.contains(other));
            others.map(|other| [&numbers[..], &[other]].concat())
        });
        numberings = longer.collect();
    }
    let renamed = |(class, late): &OrderClass, numbers: &[usize]| {
        let rename = |(client, number): (usize, usize)| (numbers[client], number);
        let events = class.iter();
        let events = events.map(|(event, before)| {
            let before = before.iter().map(|event| rename(*event));
            (rename(*event), before.collect::<BTreeSet<_>>())
        });
        let events: Class = events.collect();
        let late: BTreeSet<_> = late.iter().map(|event| rename(*event)).collect();
        (events, late)
    };
    let first = classes.iter().map(|class| {
        let all = numberings.iter().map(|numbers| renamed(class, numbers));
        all.min()
    });
    first.collect::<BTreeSet<_>>().len()
}

async fn connect(server: &Arc<Server>, seed: u64) -> Client {
    let link = Link::to(server);
    let client = servers::client_builder(&link, seed).connect().await;
    client.expect("nothing fails")
}

async fn add_one(client: &Client) {
    let read = client.get_data("/count").await.unwrap();
    let count: u64 = str::from_utf8(read.as_bytes()).unwrap().parse().unwrap();
    let count = (count + 1).to_string();
    client
        .set_data("/count", count.as_bytes(), None)
        .await
        .unwrap();
}

async fn names_of(client: &Client, path: &str) -> Vec<String> {
    let children = client.children(path).await.unwrap();
    let mut names: Vec<_> = children.names().map(|name| name.into_owned()).collect();
    names.sort_unstable();
    names
}

/// Our mutex.
async fn with_recipe(client: Client) -> Client {
    let mutex = InterProcessMutex::new(client.clone(), "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    add_one(&client).await;
    guard.release().await.unwrap();
    client
}

/// Curator's algorithm, written out.
async fn by_hand(client: Client) -> Client {
    let created = client.create("/lock/lock-", b"", CreateMode::EphemeralSequential);
    let own = created.await.unwrap().path.to_string();
    let own = own.rsplit_once('/').unwrap().1.to_owned();
    loop {
        let names = names_of(&client, "/lock").await;
        let place = names
            .iter()
            .position(|name| *name == own)
            .expect("it is there");
        let Some(ahead) = place.checked_sub(1) else {
            break;
        };
        match client
            .get_data_and_watch(&format!("/lock/{}", names[ahead]))
            .await
        {
            Ok((_, gone)) => {
                gone.await;
            }
            Err(Error::Refused { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    add_one(&client).await;
    client.delete(&format!("/lock/{own}"), None).await.unwrap();
    client
}

fn sweep<F>(contenders: u64, contend: fn(Client) -> F, options: SweepOptions) -> SweepReport
where
    F: Future<Output = Client> + Send + 'static,
{
    let test = move |server: Arc<Server>| async move {
        let mut tasks = Vec::new();
        for seed in 0..contenders {
            let client = connect(&server, seed).await;
            tasks.push(tokio::spawn(contend(client)));
        }
        // A client that is dropped closes its session, which is a request, too.
        let mut clients = Vec::new();
        for task in tasks {
            clients.push(task.await.unwrap());
        }
        let count = server.get("/count").unwrap().0.unwrap();
        assert_eq!(count, contenders.to_string().as_bytes());
    };
    Sweep::new(test)
        .options(options)
        .server(|| servers::server().seed(tree! { "/lock" => "", "/count" => "0" }))
        .run()
}

fn options(changes_max: Option<u32>, all: bool) -> SweepOptions {
    let mut options = SweepOptions::default();
    options.orders = true;
    options.changes_max = changes_max;
    options.more_max = Some(0);
    options.all = all;
    options
}

/// Returns options that let no event be late.
fn prompt(changes_max: Option<u32>, all: bool) -> SweepOptions {
    let mut options = options(changes_max, all);
    options.faults = Vec::new();
    options
}

/// Returns how many orders were tried, and how many of them are not equivalent.
fn counts(report: &SweepReport) -> (u64, usize) {
    report.assert_clean();
    let different = report.orders.as_ref().unwrap().different;
    (report.tried, usize::try_from(different).unwrap())
}

#[test]
fn two_contenders_have_as_many_orders_as_the_model() {
    for contend in [Contend::Recipe, Contend::ByHand] {
        let world = World::new(2, matches!(contend, Contend::Recipe));
        for (may_be_late, options) in LATENESS {
            let (orders, classes) = enumerate(world.clone(), None, may_be_late);
            println!("2 contenders, {contend:?}: {orders} orders in {classes} classes");
            let all = contend.sweep(2, options(None, true));
            assert_eq!(counts(&all), (orders, classes), "{contend:?}");
            let reduced = contend.sweep(2, options(None, false));
            let (tried, different) = counts(&reduced);
            println!("{contend:?}: {tried} tried with reduction, {different} different");
            assert_eq!(different, classes);
            assert!(tried < orders / 4, "{tried} of {orders}");
            assert!(reduced.orders.as_ref().unwrap().is_all);
        }
    }
}

/// Without late events, and with them.
const LATENESS: [(bool, Options); 2] = [(false, prompt), (true, options)];

type Options = fn(Option<u32>, bool) -> SweepOptions;

#[test]
fn three_contenders_have_as_many_orders_as_the_model() {
    for contend in [Contend::ByHand, Contend::Recipe] {
        let world = World::new(3, matches!(contend, Contend::Recipe));
        for changes in [0, 1, 2] {
            for (may_be_late, options) in LATENESS {
                let what = format!("{contend:?}, {changes} changes, late events {may_be_late}");
                let (orders, classes) = enumerate(world.clone(), Some(changes), may_be_late);
                println!("3 contenders, {what}: {orders} orders in {classes} classes");
                let all = contend.sweep(3, options(Some(changes), true));
                assert_eq!(counts(&all), (orders, classes), "{what}");
                let reduced = contend.sweep(3, options(Some(changes), false));
                let (tried, different) = counts(&reduced);
                println!("{tried} tried with reduction, {different} different");
                assert_eq!(different, classes, "{what}");
            }
        }
    }
}

/// All orders of three contenders, of which the sweep tries at least one of each class.
#[test]
fn three_contenders_have_as_many_classes_as_the_model() {
    for contend in [Contend::ByHand, Contend::Recipe] {
        let world = World::new(3, matches!(contend, Contend::Recipe));
        let (orders, classes) = enumerate(world, None, false);
        println!("3 contenders, {contend:?}: {orders} orders in {classes} classes");
        let reduced = contend.sweep(3, prompt(None, false));
        println!("{}", reduced.summary());
        assert_eq!(counts(&reduced).1, classes, "{contend:?}");
    }
}

/// Contenders that are alike have fewer orders.
#[test]
fn contenders_that_are_alike_have_as_many_classes_as_the_model() {
    for changes in [Some(0), Some(1), Some(2), None] {
        let (_, classes) = classes_of(World::new(3, false), changes, false);
        let (all, alike) = (classes.len(), count_alike(classes, 3));
        let mut options = prompt(changes, false);
        options.alike = true;
        let report = Contend::ByHand.sweep(3, options);
        let (tried, different) = counts(&report);
        println!(
            "{changes:?} changes: {alike} of {all} classes, {tried} tried, {different} different"
        );
        assert_eq!(different, alike, "{changes:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Contend {
    Recipe,
    ByHand,
}

impl Contend {
    fn sweep(self, contenders: u64, options: SweepOptions) -> SweepReport {
        match self {
            Self::Recipe => sweep(contenders, with_recipe, options),
            Self::ByHand => sweep(contenders, by_hand, options),
        }
    }
}

/// What a run of a random program ended with.
type End = (Vec<Vec<String>>, String);

/// The number of random programs by default.
const PROGRAMS: u64 = 60;

/// A reduced sweep reaches every end that the full one reaches. `MINIKEEPER_ORDER_PROGRAMS` says of how many random
/// programs.
#[test]
fn reduced_sweep_of_random_programs_reaches_every_end() {
    let mut random = Random::new(random::seed());
    let (mut full, mut reduced) = (0, 0);
    let programs = random::number_of_environment("MINIKEEPER_ORDER_PROGRAMS", PROGRAMS);
    for program in 0..programs {
        let clients = if random.below(4) == 0 { 3 } else { 2 };
        let length = if clients == 2 { 3 } else { 2 };
        let scripts: Vec<Vec<u8>> = (0..clients)
            .map(|_| (0..length).map(|_| random.byte()).collect())
            .collect();
        let (all, many) = ends(&scripts, options(None, true));
        let (some, few) = ends(&scripts, options(None, false));
        assert_eq!(all, some, "program {program}: {scripts:?}");
        full += many;
        reduced += few;
    }
    println!("{programs} programs: {full} orders, {reduced} with reduction");
    assert!(reduced < full / 2, "{reduced} of {full}");
}

/// Does a sweep of clients that send these requests. Returns its ends, and how many orders were tried.
fn ends(scripts: &[Vec<u8>], options: SweepOptions) -> (BTreeSet<End>, u64) {
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let (scripts, into) = (Arc::new(scripts.to_vec()), Arc::clone(&found));
    let test = move |server: Arc<Server>| {
        let (scripts, into) = (Arc::clone(&scripts), Arc::clone(&into));
        async move {
            let mut tasks = Vec::new();
            for (seed, script) in (0..).zip(scripts.iter().cloned()) {
                let client = connect(&server, seed).await;
                tasks.push(tokio::spawn(follow(client, script)));
            }
            let (mut kept, mut seen) = (Vec::new(), Vec::new());
            for task in tasks {
                let (client, watches, lines) = task.await.unwrap();
                // Each that is dropped sends a request.
                kept.push((client, watches));
                seen.push(lines);
            }
            let tree = format!("{:?}", server.export_tree());
            into.lock().unwrap().insert((seen, tree));
        }
    };
    let report = Sweep::new(test).options(options).run();
    report.assert_clean();
    let found = std::mem::take(&mut *found.lock().unwrap());
    (found, report.tried)
}

/// Sends a request for each number. Returns what the client was told.
async fn follow(client: Client, script: Vec<u8>) -> (Client, Vec<OneShot>, Vec<String>) {
    let mut lines = Vec::new();
    let mut watches = Vec::new();
    for byte in script {
        let path = ["/a", "/b", "/a/c"][usize::from(byte / 16) % 3];
        let line = match byte % 8 {
            0 | 1 => format!(
                "{:?}",
                client
                    .create(path, b"", CreateMode::Persistent)
                    .await
                    .map(|it| it.path.to_string())
                    .map_err(code)
            ),
            2 => format!(
                "{:?}",
                client
                    .create("/s-", b"", CreateMode::PersistentSequential)
                    .await
                    .map(|it| it.path.to_string())
                    .map_err(code)
            ),
            3 => format!("{:?}", client.delete(path, None).await.map_err(code)),
            4 => format!(
                "{:?}",
                client
                    .set_data(path, &[byte], None)
                    .await
                    .map(|stat| stat.version)
                    .map_err(code)
            ),
            5 => format!(
                "{:?}",
                client
                    .get_data(path)
                    .await
                    .map(|read| (read.data, read.stat.version))
                    .map_err(code)
            ),
            6 => {
                format!("{:?}", names_of(&client, "/").await)
            }
            _ => {
                let (stat, watch) = client.exists_and_watch(path).await.unwrap();
                watches.push(watch);
                format!("{:?}", stat.map(|stat| stat.version))
            }
        };
        lines.push(line);
    }
    (client, watches, lines)
}

fn code(error: Error) -> String {
    error.to_string()
}
