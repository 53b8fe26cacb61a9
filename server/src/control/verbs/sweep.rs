//! Sweeps of tests in other languages.

use std::time::Duration;

use minikeeper_core::state::run_notes::{GOAL_CHARS_MAX, GOALS_MAX};
use serde_json::{Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Outcome, Verb},
    },
    orders::{choice::RequestOrder, fault::SweepFault},
    sweep::{
        SweepError,
        plan::{Run, RunVerdict, SweepOptions},
        point::FaultPoint,
        remote::{OrderedClients, Sweeps},
        report::{SweepFailure, SweepState, text_of},
        rule::SweepRule,
        suite::SuiteTest,
    },
    views::schema::{Field, FieldKind},
};

const SWEEP: Parameter = Parameter::required(
    "sweep",
    ParameterKind::Count(u64::MAX),
    "The number that sweep_start returned",
);

const RUN: Parameter = Parameter::optional(
    "run",
    ParameterKind::Count(u64::MAX),
    "The number of the run, if several are being done",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "sweep_start",
        method: Method::Post,
        docs: "Start a sweep: a test runs once for every fault at every place where it can happen\n\n\
               Then, until `sweep_next` returns run 0: call `sweep_next` on a universe that no client \
               uses yet, run the test with it, and call `sweep_end`. The fixtures of the packages do so.",
        parameters: &[
            Parameter::required(
                "all",
                ParameterKind::Flag,
                "Whether to try equivalent points, too",
            )
            .with_default("false"),
            Parameter::required(
                "depth",
                ParameterKind::Count(2),
                "How many faults a run has; with 2, pairs are tried until a budget ends, or with `orders` one fault in an \
                 order",
            )
            .with_default("1"),
            Parameter::required(
                "seed",
                ParameterKind::Count(u64::MAX),
                "The order in which points are tried",
            )
            .with_default("0"),
            Parameter::optional(
                "runs",
                ParameterKind::Count(u64::MAX),
                "The maximum number of runs",
            ),
            Parameter::optional(
                "time_ms",
                ParameterKind::DurationMs,
                "The time after which no run begins",
            ),
            Parameter::optional(
                "faults",
                ParameterKind::Text,
                "The faults to try, separated by commas, or `all`: reply-lost,session-expired; by default all but outage, \
                 client-outage, client-crash and rollback",
            ),
            Parameter::optional(
                "outage_ms",
                ParameterKind::DurationMs,
                "How long an outage lasts, by the server's clock; 0 if it does not end; by default 1,000",
            ),
            Parameter::required(
                "rollback",
                ParameterKind::Count(1_000),
                "How many changes a rollback takes back",
            )
            .with_default("1"),
            Parameter::optional(
                "allow",
                ParameterKind::Text,
                "The failures that the test expects, a rule a line: session-expired:*:create raises SessionExpired because \
                 the caller asks again",
            ),
            Parameter::optional(
                "leave_out",
                ParameterKind::Text,
                "The points that are not tried, a rule a line: reply-late because the timeout is an hour",
            ),
            Parameter::required(
                "first",
                ParameterKind::Flag,
                "Whether to end with the first failure, once it is confirmed",
            )
            .with_default("false"),
            Parameter::required(
                "compare",
                ParameterKind::Flag,
                "Whether a run also fails if it leaves other znodes, clients or watches than the runs without faults",
            )
            .with_default("false"),
            Parameter::optional(
                "only",
                ParameterKind::Text,
                "The points of the only run, as a report names them, with + between two; or its order",
            ),
            Parameter::required(
                "orders",
                ParameterKind::Flag,
                "Whether to try the orders in which requests can be served, instead of faults",
            )
            .with_default("false"),
            Parameter::optional(
                "changes",
                ParameterKind::Text,
                "With `orders`: up to how many unforced changes (of client, late events, with `depth` 2 a fault) all orders \
                 are tried, or `all`; by default 2",
            ),
            Parameter::optional(
                "more",
                ParameterKind::Count(u64::MAX),
                "With `orders`: how many further orders are tried then, random ones among them; by default 1,000, or until a budget \
                 ends",
            ),
            Parameter::required(
                "alike",
                ParameterKind::Flag,
                "With `orders`: whether the clients that begin a run, up to 4, do the same, so that orders which differ only \
                 in which of them is which are equivalent",
            )
            .with_default("false"),
            Parameter::optional(
                "clients",
                ParameterKind::Count(64),
                "With `orders`: the number of clients with which a run begins, if it is known; then their requests are \
                 served as soon as each of them has one",
            ),
            Parameter::optional(
                "process",
                ParameterKind::Count(u64::MAX),
                "With `orders`: the number of the process, on the server's machine, that runs the test; then its threads \
                 tell when no further request is coming",
            ),
            Parameter::optional(
                "allow_unreached",
                ParameterKind::Count(u64::MAX),
                "How many points may stay unreached in a sweep that is clean nevertheless; by default 0",
            ),
            Parameter::optional(
                "allow_untried",
                ParameterKind::Count(u64::MAX),
                "How many points the budget may leave untried in a sweep that is clean nevertheless; by default 0",
            ),
            Parameter::optional(
                "test",
                ParameterKind::Text,
                "The name of the test, if it is one of a suite, whose options it takes in place of these: see `suite_start`",
            ),
            Parameter::optional(
                "tests_left",
                ParameterKind::Count(u32::MAX as u64),
                "With `test`: how many tests are still to come, this one included; it may take four equal shares of the time that is left",
            ),
            Parameter::optional(
                "repeat",
                ParameterKind::Text,
                "With `test`: the command that does a run of it again, with {} in place of its points",
            ),
        ],
        plain: Some("sweep"),
        answer: &[Field::new("sweep", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let options = options(call).map_err(refused)?;
            let number =
                |name| (call.arguments.given(name)).and_then(crate::control::parameter::whole);
            let clients = OrderedClients {
                process: number("process").and_then(|process| u32::try_from(process).ok()),
                count: number("clients").and_then(|clients| usize::try_from(clients).ok()),
            };
            let text = |name| call.arguments.given(name).and_then(Value::as_str);
            let test = text("test").map(|title| SuiteTest {
                title: title.to_owned(),
                left: number("tests_left").and_then(|left| u32::try_from(left).ok()),
                repeat: text("repeat").map(str::to_owned),
            });
            let begun = sweeps(call).begin(options, clients, test);
            Ok(json!({"sweep": begun.map_err(refused)?}))
        }),
    },
    Verb {
        name: "suite_start",
        method: Method::Post,
        docs: "Start a suite, whose tests share a budget, a report and equivalent points\n\n\
               Then call `sweep_start` with `test` for each test, and `suite_report` at the end. `minikeeper sweep --suite` does so.",
        parameters: &[
            Parameter::optional("faults", ParameterKind::Text, "As in `sweep_start`"),
            Parameter::optional("outage_ms", ParameterKind::DurationMs, "As in `sweep_start`"),
            Parameter::required("rollback", ParameterKind::Count(1_000), "As in `sweep_start`").with_default("1"),
            Parameter::required("all", ParameterKind::Flag, "As in `sweep_start`").with_default("false"),
            Parameter::required("depth", ParameterKind::Count(2), "As in `sweep_start`").with_default("1"),
            Parameter::required("seed", ParameterKind::Count(u64::MAX), "As in `sweep_start`").with_default("0"),
            Parameter::optional("time_ms", ParameterKind::DurationMs, "The time of the whole suite, after which no run begins"),
            Parameter::required("first", ParameterKind::Flag, "As in `sweep_start`, for each test").with_default("false"),
            Parameter::required("compare", ParameterKind::Flag, "As in `sweep_start`").with_default("false"),
            Parameter::optional("allow", ParameterKind::Text, "As in `sweep_start`"),
            Parameter::optional("leave_out", ParameterKind::Text, "As in `sweep_start`"),
            Parameter::optional("allow_unreached", ParameterKind::Count(u64::MAX), "As in `sweep_start`, for each test and for all"),
            Parameter::optional("allow_untried", ParameterKind::Count(u64::MAX), "As in `sweep_start`, for each test and for all"),
        ],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            sweeps(call).begin_suite(options(call).map_err(refused)?);
            Ok(json!({}))
        }),
    },
    Verb {
        name: "suite_report",
        method: Method::Get,
        docs: "Show what the sweeps of a suite have found so far",
        parameters: &[Parameter::optional("title", ParameterKind::Text, "The name of the suite")],
        plain: Some("text"),
        answer: &[
            Field::new("state", FieldKind::Text).help("`clean`, `failed` or `incomplete`"),
            Field::new("reasons", FieldKind::Texts).help("Why it is incomplete"),
            Field::new("tests", FieldKind::Count).help("The number of tests that were swept"),
            Field::new("clean", FieldKind::Count).help("The number of those that are clean"),
            Field::new("summary", FieldKind::Text).help("The state and what was tried, in a line"),
            Field::new("text", FieldKind::Text).help("The report for people"),
            Field::new("html", FieldKind::Text).help("The report as a page, which loads nothing"),
            Field::new("failures", FieldKind::Count).help("The number of failures"),
        ],
        handler: Handler::AtOnce(|call| {
            let text = |name| call.arguments.given(name).and_then(Value::as_str);
            let shown = sweeps(call).suite(|suite, report| {
                let (tests, clean) = suite.count(SweepState::Clean);
                json!({
                    "state": report.state().name(),
                    "reasons": report.reasons(),
                    "tests": tests,
                    "clean": clean,
                    "summary": report.summary(),
                    "text": suite.text(report),
                    "html": report.to_html(text("title").unwrap_or("a suite"), &SweepFailure::again),
                    "failures": report.failures.len(),
                })
            });
            shown.map_err(refused)
        }),
    },
    Verb {
        name: "sweep_next",
        method: Method::Post,
        docs: "Inject the faults of a sweep's next run into this universe, which no client uses yet\n\n\
               Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be \
               done at a time, each in a universe of its own, but not with `orders`: waits until one ends if that \
               decides what is next.",
        parameters: &[SWEEP],
        plain: None,
        answer: &[
            Field::new("run", FieldKind::Count)
                .help("The number of the run; 0 if the sweep is over"),
            Field::new("points", FieldKind::Text)
                .help("Its points, or its order; empty for a run without faults"),
            Field::new("sentence", FieldKind::Text).help("What goes wrong, in a sentence"),
        ],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let sweep = call.arguments.count("sweep")?;
                let next = sweeps(call).next(sweep, &call.universe).await;
                let run = next.map_err(refused)?;
                let points = run.as_ref().map_or(&[][..], |run| &run.points[..]);
                Ok(json!({
                    "run": run.as_ref().map_or(0, |run| run.number),
                    "points": run.as_ref().map_or_else(String::new, Run::text),
                    "sentence": FaultPoint::sentences(points),
                }))
            })
        }),
    },
    Verb {
        name: "sweep_faults",
        method: Method::Get,
        docs: "Show what the sweep tries in this run\n\n\
               A test that expects an error of one fault asks so.",
        parameters: &[],
        plain: None,
        answer: &[
            Field::new("faults", FieldKind::Texts)
                .help("The faults; none in a run without faults, and without a sweep"),
            Field::new("points", FieldKind::Text).help("Its points"),
            Field::new("sentence", FieldKind::Text).help("What goes wrong, in a sentence"),
        ],
        handler: Handler::AtOnce(|call| {
            let points = call.universe.sweep_points();
            Ok(json!({
                "faults": points.iter().map(|point| point.fault.name()).collect::<Vec<_>>(),
                "points": text_of(&points),
                "sentence": FaultPoint::sentences(&points),
            }))
        }),
    },
    Verb {
        name: "sometimes",
        method: Method::Post,
        docs: "Note a goal that some run of the sweep must reach, such as \"the second contender waited\"\n\n\
               Call it where the goal may hold, in every run. If no run reaches it, the sweep is incomplete. Does nothing \
               without a sweep.",
        parameters: &[
            Parameter::required("goal", ParameterKind::Text, "The goal, at most 200 characters"),
            Parameter::required("holds", ParameterKind::Flag, "Whether it is reached").with_default("true"),
        ],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let arguments = &call.arguments;
            let goal = arguments.text("goal")?;
            if call.universe.note_goal(goal, arguments.flag("holds")) {
                return Ok(json!({}));
            }
            let shown: String = goal.chars().take(GOAL_CHARS_MAX).collect();
            Err(ControlError::bad_input(format!(
                "goal {shown:?}: a run has at most {GOALS_MAX} goals of at most {GOAL_CHARS_MAX} characters"
            )))
        }),
    },
    Verb {
        name: "sweep_crashed",
        method: Method::Post,
        docs: "Wait until the clients of a sweep's run have died, by the fault `client-crash`\n\n\
               Then stop the test where it is, and begin it again in the same universe: the server serves nothing \
               of the sessions from before. The outcome of the run is that of the second start. Returns false if it \
               times out, the run ends, or has no such fault.",
        parameters: &[SWEEP, RUN, super::waiting::WITHIN],
        plain: None,
        answer: &[Field::new("is_crashed", FieldKind::Flag).help("Whether they have died")],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let sweep = call.arguments.count("sweep")?;
                let within = call.arguments.duration("within_ms")?;
                let crashed = sweeps(call).crashed((sweep, run(call)), within).await;
                Ok(json!({"is_crashed": crashed.map_err(refused)?}))
            })
        }),
    },
    Verb {
        name: "sweep_end",
        method: Method::Post,
        docs: "End the run of a sweep with the outcome of the test, and remove its faults",
        parameters: &[
            SWEEP,
            RUN,
            Parameter::required(
                "outcome",
                ParameterKind::OneOf(&["passed", "failed", "hung"]),
                "How the test ended",
            ),
            Parameter::optional("message", ParameterKind::Text, "Why it failed"),
            Parameter::optional(
                "place",
                ParameterKind::Text,
                "Where in the program it failed, such as test_job.py:17; failures with the same message, place and first \
                 difference in the journal are one group",
            ),
            Parameter::optional(
                "story",
                ParameterKind::Text,
                "The page with the story of the failure, which the report names",
            ),
        ],
        plain: None,
        answer: &[Field::new("is_reached", FieldKind::Flag).help("Whether every fault has acted")],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let text = |name| {
                    let given = call.arguments.given(name).and_then(Value::as_str);
                    given.map(str::to_owned)
                };
                let message = text("message").unwrap_or_default();
                let verdict = match call.arguments.text("outcome")? {
                    "passed" => RunVerdict::Passed,
                    "failed" => RunVerdict::Failed(message),
                    _ => RunVerdict::Hung(message),
                };
                let sweep = call.arguments.count("sweep")?;
                let ended = sweeps(call).end((sweep, run(call)), (verdict, text("place")), text("story"));
                let ended = ended.await;
                Ok(json!({"is_reached": ended.map_err(refused)?}))
            })
        }),
    },
    Verb {
        name: "sweep_report",
        method: Method::Get,
        docs: "Show what a sweep has found so far",
        parameters: &[
            SWEEP,
            Parameter::optional(
                "repeat",
                ParameterKind::Text,
                "The command that does a run again, with {} in place of its points",
            ),
            Parameter::optional("title", ParameterKind::Text, "The name of the test"),
        ],
        plain: Some("text"),
        answer: &[
            Field::new("is_clean", FieldKind::Flag)
                .help("Whether every point was tried and no run has failed"),
            Field::new("state", FieldKind::Text).help("`clean`, `failed` or `incomplete`"),
            Field::new("reasons", FieldKind::Texts).help("Why it is incomplete"),
            Field::new("nondeterminism", FieldKind::Text)
                .help("What differs between the runs without faults besides names; may be empty"),
            Field::new("summary", FieldKind::Text).help("The state and what was tried, in a line"),
            Field::new("text", FieldKind::Text).help("The report for people"),
            Field::new("html", FieldKind::Text).help("The report as a page, which loads nothing"),
            Field::new("runs", FieldKind::Count),
            Field::new("points", FieldKind::Count),
            Field::new("tried", FieldKind::Count),
            Field::new("passed", FieldKind::Count),
            Field::new("allowed", FieldKind::Count).help("The number of points that failed as the test expects"),
            Field::new("failed", FieldKind::Count),
            Field::new("hung", FieldKind::Count),
            Field::new("not_reached", FieldKind::Count),
            Field::new("left", FieldKind::Count).help("The number of points that were not tried"),
            Field::new("coverage", FieldKind::Texts)
                .help("How many points of each kind were tried, such as `operation create: 3 of 12`"),
            Field::new("unreached", FieldKind::Texts).help("The points that were not reached"),
            Field::new("failures", FieldKind::Texts).help("The points of the runs that failed"),
        ],
        handler: Handler::AtOnce(report),
    },
];

fn sweeps(call: &Call) -> &Sweeps {
    &call.controls.sweeps
}

/// Returns the number of the run that the caller names.
fn run(call: &Call) -> Option<u64> {
    (call.arguments.given("run")).and_then(crate::control::parameter::whole)
}

fn refused(error: SweepError) -> ControlError {
    ControlError::bad_input(error.to_string())
}

fn options(call: &Call) -> Result<SweepOptions, SweepError> {
    let arguments = &call.arguments;
    let number = |name| (arguments.given(name)).and_then(crate::control::parameter::whole);
    let text = |name| arguments.given(name).and_then(Value::as_str);
    let mut options = SweepOptions {
        all: arguments.flag("all"),
        depth: number("depth")
            .and_then(|depth| u32::try_from(depth).ok())
            .unwrap_or(1),
        seed: number("seed").unwrap_or(0),
        runs_max: number("runs"),
        time_max: number("time_ms").map(Duration::from_millis),
        allow_unreached: number("allow_unreached").unwrap_or(0),
        allow_untried: number("allow_untried").unwrap_or(0),
        orders: arguments.flag("orders"),
        alike: arguments.flag("alike"),
        more_max: number("more"),
        ..SweepOptions::default()
    };
    match number("outage_ms") {
        Some(0) => options.outage = Duration::MAX,
        Some(outage_ms) => options.outage = Duration::from_millis(outage_ms),
        None => {}
    }
    if let Some(rollback) = number("rollback").and_then(|changes| u32::try_from(changes).ok()) {
        options.rollback = rollback;
    }
    options.allow = SweepRule::parse_all(text("allow").unwrap_or_default())?;
    options.leave_out = SweepRule::parse_all(text("leave_out").unwrap_or_default())?;
    options.first = arguments.flag("first");
    options.compare = arguments.flag("compare");
    if text("faults") == Some("all") {
        options.faults = SweepFault::ALL.to_vec();
    } else if let Some(faults) = text("faults") {
        let faults = faults.split(',').map(|fault| fault.trim().parse());
        options.faults = faults.collect::<Result<_, _>>()?;
    }
    match text("only") {
        Some(only) if RequestOrder::is_meant(only) => {
            options.orders = true;
            options.only_orders.push(only.parse()?);
        }
        Some(only) => options.only.push(FaultPoint::parse_run(only)?),
        None => {}
    }
    options.changes_max = match text("changes") {
        None => options.changes_max,
        Some("all") => None,
        Some(changes) => Some(changes.parse().map_err(|_| {
            SweepError(format!(
                "changes: {changes:?} is neither a number nor \"all\""
            ))
        })?),
    };
    options.check()?;
    Ok(options)
}

fn report(call: &Call) -> Outcome {
    let report = sweeps(call).report(call.arguments.count("sweep")?);
    let report = report.map_err(refused)?;
    let text = |name| call.arguments.given(name).and_then(Value::as_str);
    let repeat = |failure: &SweepFailure| match text("repeat") {
        Some(command) => command.replace("{}", &failure.text()),
        None => failure.only(),
    };
    Ok(json!({
        "is_clean": report.is_clean(),
        "state": report.state().name(),
        "reasons": report.reasons(),
        "nondeterminism": report.nondeterminism.as_deref().unwrap_or_default(),
        "summary": report.summary(),
        "text": report.to_text(&repeat),
        "html": report.to_html(text("title").unwrap_or("a test"), &repeat),
        "runs": report.runs,
        "points": report.points,
        "tried": report.tried,
        "passed": report.passed,
        "allowed": report.allowed,
        "failed": report.failed,
        "hung": report.hung,
        "not_reached": report.not_reached,
        "left": report.left,
        "coverage": report.coverage().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unreached": report.unreached.iter().map(|points| text_of(points)).collect::<Vec<_>>(),
        "failures": report.failures.iter().map(SweepFailure::text).collect::<Vec<_>>(),
    }))
}
