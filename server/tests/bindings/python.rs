//! Generates the module `_verbs` of the Python package.

use minikeeper::control::{Field, FieldKind, Method, Parameter, ParameterKind, Part, Verb};

use crate::{
    HEADER, Returns, help, is_by_place, is_number, is_optional, is_printed_as_text, is_texts,
    paragraphs, parts, records, returns, wrapped,
};

/// The longest line.
const WIDTH: usize = 118;

/// The imports at the top of the module.
const IMPORTS: &str = r#"
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, cast

from ._control import Control
from ._faults import Fault, fault_id
from ._sessions import SessionBase, SessionLike, signed, who
from ._values import data_field, data_of, given, tree_or_yaml

if TYPE_CHECKING:
    from .universe import Universe
"#;

/// The objects in answers that have types. Lists of others are lists of dicts.
const TYPED: [&str; 4] = ["Session", "Watch", "LastOperation", "Stat"];

const CLASS: &str = r#"

class Verbs:
    """Every verb of a universe. Each raises MinikeeperError if the server refuses it."""

    _control: Control

    def _universe(self, name: str, connect_string: str) -> Universe:
        """The universe that a verb has created."""
        raise NotImplementedError
"#;

pub(crate) fn verbs() -> String {
    let header = HEADER.join("\n");
    let mut text = format!("\"\"\"The verbs of the control API.\n\n{header}\n\"\"\"\n{IMPORTS}");
    let typed = parts().into_iter();
    text.extend(typed.filter(|part| TYPED.contains(&part.name)).map(part));
    for (verb, name, fields) in records() {
        text.push_str(&record(verb, &name, fields));
    }
    text.push_str(CLASS);
    text.extend(crate::verbs().map(method));
    text
}

fn record(verb: &Verb, name: &str, fields: &[Field]) -> String {
    let returned = format!("The result of `{}`.", verb.name);
    let details = paragraphs(verb, quoted).split_off(1);
    let types = fields.iter().map(|field| returned_type(field).to_owned());
    let mut text = dataclass(name, &[vec![returned], details].concat(), fields, types);
    if is_printed_as_text(fields) {
        text.push_str("\n    def __str__(self) -> str:\n        return self.text\n");
    }
    text
}

/// Generates the class of an object in an answer, which may be a key, and what reads it: a newer server
/// may send more fields, an older one fewer.
fn part(part: &Part) -> String {
    let name = part.name;
    let class = name.replace("Session", "Session(SessionBase)");
    let members = part.fields.iter().map(|field| {
        let (value, or_none) = (
            format!("answer[\"{}\"]", field.name),
            format!("answer.get(\"{}\")", field.name),
        );
        match field.kind {
            FieldKind::Session if field.name == "id" => {
                ("int".to_owned(), format!("signed({value})"))
            }
            FieldKind::Texts => (
                "Tuple[str, ...]".to_owned(),
                format!("tuple({or_none} or ())"),
            ),
            FieldKind::Parts(Part { name, .. }) => (
                format!("Tuple[{name}, ...]"),
                format!("tuple({name}._of(one) for one in {or_none} or ())"),
            ),
            FieldKind::Part(Part { name, .. }) => (
                format!("Optional[{name}]"),
                format!("{name}._of({value}) if {or_none} else None"),
            ),
            // Users may leave it out.
            FieldKind::Flag if field.name == "is_unbound" => {
                ("bool = False".to_owned(), format!("bool({or_none})"))
            }
            FieldKind::Flag => ("bool".to_owned(), format!("bool({or_none})")),
            // Users take it for optional.
            _ if field.is_optional || field.name == "timeout_left_ms" => {
                (format!("Optional[{}]", returned_type(field)), or_none)
            }
            _ => (returned_type(field).to_owned(), value),
        }
    });
    let (types, values): (Vec<_>, Vec<_>) = members.unzip();
    let text = dataclass(&class, &[format!("{}.", part.help)], part.fields, types);
    let values = part.fields.iter().zip(values);
    let values: String = values
        .map(|(field, value)| format!("            {}={value},\n", field.name))
        .collect();
    format!(
        "{text}\n    @classmethod\n    def _of(cls, answer: Mapping[str, Any]) -> {name}:\n        \
         return cls(\n{values}        )\n"
    )
}

fn dataclass(
    name: &str,
    paragraphs: &[String],
    fields: &[Field],
    types: impl IntoIterator<Item = String>,
) -> String {
    let mut text = format!("\n\n@dataclass(frozen=True)\nclass {name}:\n");
    text.push_str(&docstring(paragraphs, &[], "    "));
    text.push('\n');
    for (field, of) in fields.iter().zip(types) {
        text.push_str(&format!("    {}: {of}\n", field.name));
        if !field.help.is_empty() {
            let help = field.help.replace("null", "None");
            text.push_str(&format!("    \"\"\"{help}.\"\"\"\n"));
        }
    }
    text
}

fn method(verb: &Verb) -> String {
    let arguments = arguments(verb.parameters);
    let returned = match returns(verb) {
        Returns::Nothing => "None".to_owned(),
        Returns::Value(field) => returned_type(field).to_owned(),
        Returns::Record(name, _) => name,
    };
    let mut signature = format!(
        "    def {}({}) -> {returned}:",
        verb.name,
        arguments.join(", ")
    );
    if signature.len() > WIDTH {
        let arguments: String = arguments
            .iter()
            .map(|argument| format!("        {argument},\n"))
            .collect();
        signature = format!("    def {}(\n{arguments}    ) -> {returned}:", verb.name);
    }
    let documentation = docstring(
        &paragraphs(verb, quoted),
        &helps(verb.parameters),
        "        ",
    );
    let short = body(verb, false);
    let body = if short.lines().all(|line| line.len() + 8 <= WIDTH) {
        short
    } else {
        body(verb, true)
    };
    format!("\n{signature}\n{documentation}        {body}\n")
}

fn body(verb: &Verb, is_long: bool) -> String {
    let call = call(verb, is_long);
    match returns(verb) {
        Returns::Nothing => call,
        Returns::Value(field) => {
            let value = format!("{call}[\"{}\"]", field.name);
            match (converted(field, &value), returned_type(field)) {
                // A type checker takes parsed JSON for Any.
                (same, of) if same == value && of != "Any" => {
                    format!("return cast(\"{of}\", {value})")
                }
                (converted, _) => format!("return {converted}"),
            }
        }
        Returns::Record(name, fields) => {
            let values: Vec<_> = fields
                .iter()
                .map(|field| {
                    let value = format!("answer[\"{}\"]", field.name);
                    format!("{}={}", field.name, converted(field, &value))
                })
                .collect();
            let values = values.join(", ");
            format!("answer = {call}\n        return {name}({values})")
        }
    }
}

fn arguments(parameters: &[Parameter]) -> Vec<String> {
    let mut arguments = vec!["self".to_owned()];
    let mut is_by_name = false;
    for parameter in parameters {
        if !is_by_place(parameter) && !is_by_name {
            arguments.push("*".to_owned());
            is_by_name = true;
        }
        let name = parameter.name;
        match parameter.kind {
            ParameterKind::SessionSelector => {
                arguments.push("session: Optional[SessionLike] = None".to_owned());
                arguments.push("*".to_owned());
                is_by_name = true;
                let others = ["address", "identity", "owner"];
                arguments.extend(others.map(|name| format!("{name}: Optional[str] = None")));
            }
            ParameterKind::Tree => {
                arguments.push("tree: Optional[Mapping[str, Any]] = None".to_owned());
                arguments.push("*".to_owned());
                is_by_name = true;
                arguments.push("yaml: Optional[str] = None".to_owned());
            }
            kind => {
                let given = given_type(kind);
                arguments.push(match parameter.default {
                    _ if is_optional(parameter) => format!("{name}: Optional[{given}] = None"),
                    None => format!("{name}: {given}"),
                    Some(default) => format!("{name}: {given} = {}", literal(kind, default)),
                });
            }
        }
    }
    arguments
}

fn given_type(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Flag => "bool".to_owned(),
        ParameterKind::DurationMs | ParameterKind::Count(_) | ParameterKind::Version => {
            "int".to_owned()
        }
        ParameterKind::Data => "Union[str, bytes]".to_owned(),
        ParameterKind::DurationMsOrNull => "Optional[int]".to_owned(),
        ParameterKind::Fault => "Union[Fault, int]".to_owned(),
        ParameterKind::Directory => "Union[str, os.PathLike[str]]".to_owned(),
        ParameterKind::OneOf(words) => format!("Literal[{}]", quoted_words(words)),
        ParameterKind::Json(schema) if is_number(schema) => "float".to_owned(),
        ParameterKind::Json(schema) if is_texts(schema) => "Sequence[str]".to_owned(),
        ParameterKind::Json(_) => "Any".to_owned(),
        _ => "str".to_owned(),
    }
}

fn quoted_words(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

fn literal(kind: ParameterKind, default: &str) -> String {
    match (kind, default) {
        (ParameterKind::Flag, "true") => "True".to_owned(),
        (ParameterKind::Flag, _) => "False".to_owned(),
        (ParameterKind::DurationMs | ParameterKind::Count(_) | ParameterKind::Version, number) => {
            number.to_owned()
        }
        (_, text) => format!("\"{text}\""),
    }
}

fn helps(parameters: &[Parameter]) -> Vec<String> {
    let lines = parameters
        .iter()
        .flat_map(|parameter| match parameter.kind {
            ParameterKind::SessionSelector => vec![
            "`session`: A session's id, a `Session`, or a kazoo client. Give exactly one of these \
             four arguments"
                .to_owned(),
            "`address`: The address of clients: \"127.0.0.1:4711\" or \"127.0.0.1\"".to_owned(),
            "`identity`: An identity of clients: \"digest:alice\"".to_owned(),
            "`owner`: The path of an ephemeral; selects its owner".to_owned(),
        ],
            ParameterKind::Tree => vec![
                "`tree`: Znodes by path, as `export_tree` returns them; data may be bytes"
                    .to_owned(),
                "`yaml`: The tree in YAML. Give either `tree` or `yaml`".to_owned(),
            ],
            _ => vec![format!(
                "`{}`: {}",
                parameter.name,
                help(parameter).replace("null", "None")
            )],
        });
    lines.collect()
}

fn docstring(paragraphs: &[String], items: &[String], indent: &str) -> String {
    let mut lines = Vec::new();
    for (number, paragraph) in paragraphs.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        lines.extend(wrapped(paragraph, WIDTH - indent.len() - 3));
    }
    if !items.is_empty() {
        lines.push(String::new());
    }
    for item in items {
        let wrapped = wrapped(item, WIDTH - indent.len() - 2)
            .into_iter()
            .enumerate();
        lines.extend(wrapped.map(|(number, line)| match number {
            0 => format!("- {line}"),
            _ => format!("  {line}"),
        }));
    }
    if let [line] = &lines[..] {
        return format!("{indent}\"\"\"{line}\"\"\"\n");
    }
    let mut text = format!("{indent}\"\"\"");
    for (number, line) in lines.iter().enumerate() {
        if number > 0 && !line.is_empty() {
            text.push_str(indent);
        }
        text.push_str(line);
        text.push('\n');
    }
    text + indent + "\"\"\"\n"
}

fn call(verb: &Verb, is_long: bool) -> String {
    let mut fields = Vec::new();
    let mut optional = Vec::new();
    for parameter in verb.parameters {
        let name = parameter.name;
        let value = match parameter.kind {
            ParameterKind::SessionSelector => {
                fields.push("**who(session, address, identity, owner)".to_owned());
                continue;
            }
            ParameterKind::Tree => {
                fields.push("**tree_or_yaml(tree, yaml)".to_owned());
                continue;
            }
            ParameterKind::Data => {
                fields.push(format!("**data_field({name})"));
                continue;
            }
            ParameterKind::Fault => format!("fault_id({name})"),
            ParameterKind::Directory => format!("os.path.abspath({name})"),
            _ => name.to_owned(),
        };
        let is_flag = matches!(parameter.kind, ParameterKind::Flag);
        // `given` leaves out what is False.
        if is_optional(parameter) || (is_flag && parameter.default != Some("true")) {
            optional.push(format!("{name}={value}"));
        } else {
            fields.push(format!("\"{name}\": {value}"));
        }
    }
    let lines_of = |items: &[String], indent: &str| -> String {
        items
            .iter()
            .map(|item| format!("{indent}{item},\n"))
            .collect()
    };
    if !optional.is_empty() {
        fields.push(match is_long {
            false => format!("**given({})", optional.join(", ")),
            true => format!(
                "**given(\n{}                )",
                lines_of(&optional, &" ".repeat(20))
            ),
        });
    }
    let ask = match verb.method {
        Method::Get => "read",
        Method::Post => "do",
    };
    let name = verb.name;
    if fields.is_empty() {
        return format!("self._control.{ask}(\"{name}\")");
    }
    if !is_long {
        return format!("self._control.{ask}(\"{name}\", {{{}}})", fields.join(", "));
    }
    let fields = lines_of(&fields, &" ".repeat(16));
    format!(
        "self._control.{ask}(\n            \"{name}\",\n            {{\n{fields}            }},\n        )"
    )
}

fn returned_type(field: &Field) -> &'static str {
    match field.kind {
        FieldKind::Count | FieldKind::DurationMs | FieldKind::UnixMs | FieldKind::Integer => "int",
        FieldKind::Flag => "bool",
        FieldKind::Texts => "List[str]",
        FieldKind::Parts(part) if part.name == "Session" => "List[Session]",
        FieldKind::Part(part) => part.name,
        FieldKind::Parts(_) => "List[Dict[str, Any]]",
        FieldKind::Fault => "Fault",
        FieldKind::ConnectString => "Universe",
        FieldKind::Data => "Optional[bytes]",
        FieldKind::Tree => "Any",
        _ => "str",
    }
}

fn converted(field: &Field, value: &str) -> String {
    match field.kind {
        FieldKind::Parts(part) if part.name == "Session" => {
            format!("[Session._of(one) for one in {value}]")
        }
        FieldKind::Fault => format!("Fault(self, {value})"),
        FieldKind::ConnectString => format!("self._universe(name, {value})"),
        FieldKind::Data => "data_of(answer)".to_owned(),
        FieldKind::Part(part) => format!("{}._of({value})", part.name),
        _ => value.to_owned(),
    }
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}
