//! The story of a failed test.

use serde_json::json;

use crate::{
    control::{
        parameter::{Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
    },
    views::schema::{Field, FieldKind},
};

pub(super) const VERBS: &[Verb] = &[Verb {
    name: "story",
    method: Method::Get,
    docs: "Show what helps to understand a failed test: locks, sessions, faults, the last requests\n\n\
           The fixtures of the packages print `text` when a test fails, and save `html` and `json`. \
           A story has the newest 10000 entries of the journal, and its text the last 50.",
    parameters: &[
        Parameter::optional(
            "title",
            ParameterKind::Text,
            "Its title, such as the name of the test; cut after 200 characters",
        ),
        Parameter::optional(
            "failure",
            ParameterKind::Text,
            "Why the test failed, which the page shows; cut after 4000 characters",
        ),
    ],
    plain: Some("text"),
    answer: &[
        Field::new("text", FieldKind::Text).help("The story for people, about 100 lines at most"),
        Field::new("html", FieldKind::Text).help("A page with everything, which loads nothing"),
        Field::new("json", FieldKind::Text).help("Everything as JSON, as text"),
        Field::new("file_name", FieldKind::Text)
            .help("The title as the name of a file, without an extension"),
    ],
    handler: Handler::AtOnce(|call| {
        let given = |name| call.arguments.given(name).and_then(|text| text.as_str());
        let story = (call.universe.story())
            .with_title(given("title").unwrap_or_default())
            .with_failure(given("failure").unwrap_or_default());
        Ok(json!({
            "text": story.to_string(),
            "html": story.to_html(),
            "json": story.to_json(),
            "file_name": story.file_name(),
        }))
    }),
}];
