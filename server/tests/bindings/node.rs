//! Generates the files `verbs.js` and `verbs.d.ts` of the Node package.

use minikeeper::{
    ErrorCode, OpCode,
    control::{Field, FieldKind, Method, Parameter, ParameterKind, Verb},
};

use crate::{
    HEADER, Returns, camel, help, is_by_place, is_number, is_printed_as_text, is_texts, paragraphs,
    records, returns, words, words_name, wrapped,
};

/// The longest line.
const WIDTH: usize = 118;

const REQUIRED: &str = "
const { dataJson, dataOf, directory, faultId, fields, printed, sessionOf, treeJson, whoJson } = require('./values.js');

/** Every verb of a universe. Its subclass has the control API as `_api`, and makes faults and universes. */
class Verbs {
";

const FAULT_OP: &str = "An operation that a fault applies to; `create`, `getChildren` and `setWatches` \
                        are all their forms, `connect` is the handshake, `request` is every request but \
                        handshakes, pings and closeSession, `any` is everything";
const ERROR_NAME: &str = "ZooKeeper's name of an error";

pub(crate) fn verbs() -> String {
    let mut text = format!("'use strict';\n\n{}{REQUIRED}", header());
    let methods: Vec<_> = crate::verbs().map(method).collect();
    text.push_str(&methods.join("\n"));
    text + "}\n\nmodule.exports = { Verbs };\n"
}

fn header() -> String {
    let lines = HEADER.map(|line| format!("// {line}\n"));
    lines.concat()
}

fn method(verb: &Verb) -> String {
    let (by_place, by_name) = split(verb.parameters);
    let mut arguments: Vec<_> = by_place
        .iter()
        .map(|parameter| match (parameter.kind, parameter.default) {
            (ParameterKind::Tree, _) => "tree".to_owned(),
            (_, None) => camel(parameter.name),
            (ParameterKind::Path | ParameterKind::Data | ParameterKind::Text, Some(default)) => {
                format!("{} = '{default}'", camel(parameter.name))
            }
            (_, Some(default)) => format!("{} = {default}", camel(parameter.name)),
        })
        .collect();
    let mut body: Vec<_> = by_place.iter().map(|parameter| field(parameter)).collect();
    if !by_name.is_empty() {
        arguments.push("options".to_owned());
        body.push("...fields(options)".to_owned());
    }
    let ask = match verb.method {
        Method::Get => "read",
        Method::Post => "act",
    };
    let body = match &body[..] {
        [] => String::new(),
        [only] if only.starts_with("...") => format!(", {}", &only[3..]),
        fields => format!(", {{ {} }}", fields.join(", ")),
    };
    let call = format!("await this._api.{ask}('{}'{body})", verb.name);
    let lines = match returns(verb) {
        Returns::Nothing => format!("    {call};\n"),
        Returns::Value(field) => {
            let value = format!("({call}).{}", field.name);
            format!("    return {};\n", converted(field, &value))
        }
        Returns::Record(_, fields) => {
            let values: Vec<_> = fields
                .iter()
                .map(|field| {
                    let value = converted(field, &format!("answer.{}", field.name));
                    format!("{}: {value}", camel(field.name))
                })
                .collect();
            let values = format!("{{ {} }}", values.join(", "));
            let answer = match is_printed_as_text(fields) {
                true => format!("printed({values})"),
                false => values,
            };
            format!("    const answer = {call};\n    return {answer};\n")
        }
    };
    let name = camel(verb.name);
    format!("  async {name}({}) {{\n{lines}  }}\n", arguments.join(", "))
}

/// Splits parameters into positional ones and those in the object of options.
fn split(parameters: &[Parameter]) -> (Vec<&Parameter>, Vec<&Parameter>) {
    parameters
        .iter()
        .partition(|parameter| is_by_place(parameter))
}

fn field(parameter: &Parameter) -> String {
    let value = camel(parameter.name);
    let converted = match parameter.kind {
        ParameterKind::SessionSelector => return format!("...whoJson({value})"),
        ParameterKind::Tree => return "...treeJson(tree)".to_owned(),
        ParameterKind::Data => return format!("...dataJson({value})"),
        ParameterKind::Fault => format!("faultId({value})"),
        ParameterKind::Directory => format!("directory({value})"),
        _ if value == parameter.name => return value,
        _ => value,
    };
    format!("{}: {converted}", parameter.name)
}

fn converted(field: &Field, value: &str) -> String {
    match field.kind {
        FieldKind::Parts(part) if part.name == "Session" => format!("{value}.map(sessionOf)"),
        FieldKind::Fault => format!("this._fault({value})"),
        FieldKind::ConnectString => format!("this._universe(name, {value})"),
        FieldKind::Data => "dataOf(answer)".to_owned(),
        _ => value.to_owned(),
    }
}

pub(crate) fn types() -> String {
    let mut text = format!(
        "/// <reference types=\"node\" />\n\n{}\n\
         import type * as answers from './answers';\n\
         import type {{ Fault, FaultOptions, Seed, Tree, Universe, Who }} from './index';\n",
        header()
    );
    for (parameter, words) in words() {
        text.push_str(&union(&words_name(parameter), parameter.help, words));
    }
    let operations = OpCode::ALL.iter().map(|op| op.name());
    let operations: Vec<_> = ["any", "request", "connect", "close"]
        .into_iter()
        .chain(operations)
        .collect();
    text.push_str(&union("FaultOp", FAULT_OP, &operations));
    let errors: Vec<_> = ErrorCode::ALL.iter().map(|error| error.name()).collect();
    text.push_str(&union("ErrorName", ERROR_NAME, &errors));
    for (verb, name, fields) in records() {
        let mut paragraphs = paragraphs(verb, name_of);
        paragraphs[0] = format!("The result of {}.", name_of(verb.name));
        text.push_str(&comment(&paragraphs, ""));
        text.push_str(&format!("export interface {name} {{\n"));
        for field in fields {
            let (name, kind) = (camel(field.name), returned_type(field));
            if !field.help.is_empty() {
                text.push_str(&format!("  /** {} */\n", field.help));
            }
            text.push_str(&format!("  {name}: {kind};\n"));
        }
        if is_printed_as_text(fields) {
            text.push_str(
                "  /** Returns `text`, which `console.log` prints too. */\n  toString(): string;\n",
            );
        }
        text.push_str("}\n");
    }
    text.push_str(&comment(
        &[
            "Every verb of a universe. Each rejects with MinikeeperError if the server refuses it."
                .to_owned(),
        ],
        "",
    ));
    text.push_str("export interface Verbs {");
    text.extend(crate::verbs().map(declaration));
    text + "}\n"
}

fn declaration(verb: &Verb) -> String {
    let (by_place, by_name) = split(verb.parameters);
    let mut documentation = paragraphs(verb, name_of);
    for parameter in by_place.iter().filter(|parameter| {
        !matches!(
            parameter.kind,
            ParameterKind::SessionSelector | ParameterKind::Tree
        )
    }) {
        let name = camel(parameter.name);
        documentation.push(format!("@param {name} {}", help(parameter)));
    }
    let mut arguments: Vec<_> = by_place
        .iter()
        .map(|parameter| argument(parameter))
        .collect();
    if verb.name == "inject" {
        // Which options a fault has depends on its action: by hand, beside the class of faults.
        arguments.push("fault: FaultOptions".to_owned());
    } else if !by_name.is_empty() {
        let mark = if by_name.iter().any(|parameter| parameter.is_required) {
            ""
        } else {
            "?"
        };
        let options: String = by_name
            .iter()
            .map(|parameter| {
                let help = comment(&[help(parameter)], "    ");
                format!(
                    "{}    {};\n",
                    help.trim_start_matches('\n'),
                    argument(parameter)
                )
            })
            .collect();
        arguments.push(format!("options{mark}: {{\n{options}  }}"));
    }
    let returned = match returns(verb) {
        Returns::Nothing => "void".to_owned(),
        Returns::Value(field) => returned_type(field),
        Returns::Record(name, _) => name,
    };
    let name = camel(verb.name);
    let arguments = arguments.join(", ");
    let comment = comment(&documentation, "  ");
    let Some(format) = format_of_tree(verb) else {
        return format!("{comment}  {name}({arguments}): Promise<{returned}>;\n");
    };
    let formats = words_name(format);
    let arguments = arguments.replace(&formats, "F");
    format!(
        "{comment}  {name}<F extends {formats} = 'json'>({arguments}): Promise<F extends 'yaml' ? string : Tree>;\n"
    )
}

/// Returns the parameter that decides whether a verb returns a tree as an object or as text.
fn format_of_tree(verb: &Verb) -> Option<&Parameter> {
    let mut fields = verb.answer.iter();
    fields.find(|field| field.kind == FieldKind::Tree)?;
    let mut parameters = verb.parameters.iter();
    parameters.find(|parameter| parameter.name == "format")
}

fn argument(parameter: &Parameter) -> String {
    let mark = if parameter.is_required { "" } else { "?" };
    let kind = match parameter.kind {
        ParameterKind::Flag => "boolean",
        ParameterKind::DurationMs | ParameterKind::Count(_) | ParameterKind::Version => "number",
        ParameterKind::Data => "string | Uint8Array",
        ParameterKind::DurationMsOrNull => "number | null",
        ParameterKind::Fault => "Fault | number",
        ParameterKind::OneOf(_) => &words_name(parameter),
        ParameterKind::SessionSelector => "Who",
        ParameterKind::Tree => "Record<string, Seed> | string",
        ParameterKind::Json(schema) if is_number(schema) => "number",
        ParameterKind::Json(schema) if is_texts(schema) => "readonly string[]",
        ParameterKind::Json(_) => "unknown",
        _ => "string",
    };
    let name = match parameter.kind {
        ParameterKind::Tree => "tree".to_owned(),
        _ => camel(parameter.name),
    };
    // An option that is undefined is as absent, so that callers may pass on what they have.
    let absent = match is_by_place(parameter) || parameter.is_required {
        true => "",
        false => " | undefined",
    };
    format!("{name}{mark}: {kind}{absent}")
}

/// Generates the type of one of several words, with its comment.
fn union(name: &str, help: &str, words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("export type {name} = {};\n", quoted.join(" | "));
    let declaration = match line.len() <= WIDTH {
        true => line,
        false => {
            let lines = wrapped(&quoted.join(" | "), WIDTH - 2).join("\n  ");
            format!("export type {name} =\n  {lines};\n")
        }
    };
    comment(&[format!("{help}.")], "") + &declaration
}

fn returned_type(field: &Field) -> String {
    let plain = match field.kind {
        FieldKind::Count | FieldKind::DurationMs | FieldKind::UnixMs | FieldKind::Integer => {
            "number"
        }
        FieldKind::Flag => "boolean",
        FieldKind::Texts => "string[]",
        FieldKind::Part(part) => return format!("answers.{}", part.name),
        FieldKind::Parts(part) => return format!("answers.{}[]", part.name),
        FieldKind::Fault => "Fault",
        FieldKind::ConnectString => "Universe",
        FieldKind::Data => "Buffer | null",
        FieldKind::Tree => "Tree | string",
        _ => "string",
    };
    plain.to_owned()
}

/// Generates a comment after an empty line.
fn comment(paragraphs: &[String], indent: &str) -> String {
    let mut lines = Vec::new();
    for (number, paragraph) in paragraphs.iter().enumerate() {
        if number > 0 && !paragraph.starts_with('@') {
            lines.push(String::new());
        }
        lines.extend(wrapped(paragraph, WIDTH - indent.len() - 6));
    }
    if let [line] = &lines[..] {
        return format!("\n{indent}/** {line} */\n");
    }
    let mut text = format!("\n{indent}/**\n");
    for line in lines {
        text.push_str(format!("{indent} * {line}").trim_end());
        text.push('\n');
    }
    text + indent + " */\n"
}

fn name_of(name: &str) -> String {
    format!("`{}`", camel(name))
}
