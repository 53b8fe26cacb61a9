//! Generates the class `Verbs` of the Java package, and the types that its methods take and return.

use minikeeper::{
    ErrorCode, FaultOp, OpCode,
    control::{Field, FieldKind, Method, Parameter, ParameterKind, Part, Verb},
};

use crate::{
    HEADER, Returns, camel, help, is_number, is_optional, is_printed_as_text, paragraphs, parts,
    records, returns, words, words_name, wrapped,
};

/// The longest line.
const WIDTH: usize = 118;

/// Records that are written by hand, because they decode data.
const BY_HAND: [&str; 1] = ["Znode"];

const CLASS: &str = "
import static io.github.minikeeper.Values.fields;
import static io.github.minikeeper.Values.with;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Every verb of a universe. Each throws {@link MinikeeperException} if the server refuses it. */
abstract class Verbs {
  Verbs() {}

  abstract Control control();

  /** The universe that a verb has created. */
  abstract Universe universe(String name, String connectString);

  abstract Fault fault(long id);
";

/// Returns every generated class with the text of its file.
pub(crate) fn classes() -> Vec<(String, String)> {
    let mut verbs = file(CLASS);
    verbs.extend(crate::verbs().map(methods));
    verbs.push_str("}\n");
    let mut classes = vec![("Verbs".to_owned(), verbs)];
    let takes_words = |parameter: &Parameter| {
        crate::verbs()
            .filter(|verb| !takes_map(verb))
            .flat_map(|verb| verb.parameters)
            .any(|other| other.name == parameter.name)
    };
    for (parameter, words) in words() {
        if takes_words(parameter) {
            classes.push((words_name(parameter), file(&enumeration(parameter, words))));
        }
    }
    for (verb, name, fields) in records() {
        if !BY_HAND.contains(&&*name) {
            let mut paragraphs = paragraphs(verb, name_of);
            paragraphs[0] = format!("The result of {}.", name_of(verb.name));
            classes.push((name.clone(), file(&answer(&name, &paragraphs, fields, ""))));
        }
    }
    for Part {
        name, help, fields, ..
    } in parts()
    {
        let paragraphs = [format!("{}.", coded(help))];
        classes.push((
            (*name).to_owned(),
            file(&answer(name, &paragraphs, fields, JSON)),
        ));
    }
    classes.push(("FaultOp".to_owned(), file(&fault_ops())));
    classes.push(("ErrorCode".to_owned(), file(&error_codes())));
    classes
}

fn file(text: &str) -> String {
    let header = HEADER.map(|line| format!("// {line}\n")).concat();
    format!("{header}package io.github.minikeeper;\n{text}")
}

/// The operations as constants: `getACL` is `GET_ACL`.
fn fault_ops() -> String {
    let ops: Vec<_> = OpCode::ALL
        .iter()
        .map(|op| {
            let name = FaultOp::from(*op).name();
            let mut constant = String::new();
            let mut was_lower = false;
            for letter in name.chars() {
                if letter.is_uppercase() && was_lower {
                    constant.push('_');
                }
                was_lower = !letter.is_uppercase();
                constant.extend(letter.to_uppercase());
            }
            format!("  /** {{@code {name}}}. */\n  {constant}(\"{name}\")")
        })
        .collect();
    format!(
        "
/**
 * An operation that a fault applies to: see {{@link FaultSpec#on}}. {{@link #CREATE}}, {{@link #GET_CHILDREN}} and
 * {{@link #SET_WATCHES}} include their later forms, such as {{@link #CREATE2}}.
 */
public enum FaultOp {{
{},
  /** {{@code request}}: every operation but {{@code connect}}, {{@code ping}} and {{@code closeSession}}. */
  REQUEST(\"request\");

  private final String text;

  FaultOp(String text) {{
    this.text = text;
  }}

  /** Its name in the protocol. */
  @Override
  public String toString() {{
    return text;
  }}
}}
",
        ops.join(",\n")
    )
}

fn error_codes() -> String {
    let codes: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let text = code.to_string();
            let text = text.split(" (").next().unwrap_or_default();
            let (name, number) = (code.name(), code.code());
            format!("  /** {text} ({number}). */\n  {name}")
        })
        .collect();
    format!(
        "
/**
 * The error of a fault: see {{@link Fault#error}}. The names are those of {{@code KeeperException.Code}}, which {{@code
 * ErrorCode.valueOf(code.name())}} converts.
 */
public enum ErrorCode {{
{}
}}
",
        codes.join(",\n")
    )
}

fn enumeration(parameter: &Parameter, words: &[&str]) -> String {
    let comment = comment(&[format!("{}.", parameter.help)], "");
    let words: Vec<_> = words
        .iter()
        .map(|word| format!("  {}", word.to_uppercase().replace('-', "_")))
        .collect();
    let words = words.join(",\n");
    let name = words_name(parameter);
    format!("{comment}public enum {name} {{\n{words}\n}}\n")
}

/// What an object in an answer also has.
const JSON: &str = "
  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
";

/// Generates the class of an answer, or of an object in one.
fn answer(name: &str, paragraphs: &[String], fields: &[Field], more: &str) -> String {
    let types: Vec<_> = fields.iter().map(returned_type).collect();
    let imports: String = [
        "java.time.Duration",
        "java.time.Instant",
        "java.util.List",
        "java.util.Map",
        "java.util.OptionalDouble",
        "java.util.OptionalLong",
    ]
    .into_iter()
    .filter(|class| {
        let name = class.rsplit('.').next().unwrap_or_default();
        name == "Map" || (types.iter()).any(|it| it == name || it.starts_with(&format!("{name}<")))
    })
    .map(|class| format!("import {class};\n"))
    .collect();
    let comment = comment(paragraphs, "");
    let mut methods: String = fields
        .iter()
        .map(|field| {
            let value = converted(field, &format!("json.get(\"{}\")", field.name));
            let (kind, name) = (returned_type(field), method_name(field));
            let help = match field.help {
                "" if field.kind == FieldKind::Flag => {
                    format!("Whether it is {}", spoken(field.name))
                }
                "" => format!("Its {}", spoken(field.name)),
                help => coded(help).replace("null", absent(field)),
            };
            let comment = self::comment(&[format!("{help}.")], "  ");
            format!("{comment}  public {kind} {name}() {{\n    return {value};\n  }}\n")
        })
        .collect();
    if more.is_empty() && is_printed_as_text(fields) {
        methods.push_str(
            "\n  /** Its text. */\n  @Override\n  public String toString() {\n    return text();\n  }\n",
        );
    }
    format!(
        "\n{imports}{comment}public final class {name} extends Answer {{\n  \
         {name}(Map<String, Object> json) {{\n    super(json);\n  }}\n{methods}{more}}}\n"
    )
}

/// Converts backquotes.
fn coded(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part.to_owned(),
        _ => format!("{{@code {part}}}"),
    });
    parts.collect()
}

/// Returns the word for an absent value in the documentation of a field.
fn absent(field: &Field) -> &'static str {
    if returned_type(field).starts_with("Optional") {
        "empty"
    } else {
        "null"
    }
}

fn spoken(name: &str) -> String {
    let name = name.strip_prefix("is_").unwrap_or(name);
    name.trim_end_matches("_ms").replace('_', " ")
}

/// Returns the name of a field's method; `do` is a keyword, and every object has a method `wait`.
fn method_name(field: &Field) -> String {
    match field.name {
        "do" => "remedy".to_owned(),
        "wait_ms" => "waits".to_owned(),
        name => short(name),
    }
}

/// Returns whether a verb takes its fields as a map, because some are optional without a default.
fn takes_map(verb: &Verb) -> bool {
    verb.parameters.iter().any(is_optional)
}

/// Generates the method with every parameter, and shorter ones that call it.
fn methods(verb: &Verb) -> String {
    let returned = match returns(verb) {
        Returns::Nothing => "void".to_owned(),
        Returns::Value(field) => returned_type(field),
        Returns::Record(name, _) => name,
    };
    let name = camel(verb.name);
    if takes_map(verb) {
        let mut documentation = paragraphs(verb, name_of);
        documentation.push("The fields:".to_owned());
        let fields: Vec<_> = verb
            .parameters
            .iter()
            .map(|parameter| format!("<li>{{@code {}}}: {}", parameter.name, help(parameter)))
            .collect();
        documentation.push(format!("<ul>\n{}\n</ul>", fields.join("\n")));
        let comment = comment(&documentation, "  ");
        let body = body(verb, "fields");
        return format!(
            "{comment}  public {returned} {name}(Map<String, ?> fields) {{\n{body}  }}\n"
        );
    }
    // The class `Who` contains `allow_none`.
    let is_own = |parameter: &&Parameter| parameter.name != "allow_none";
    let parameters: Vec<_> = verb.parameters.iter().filter(is_own).collect();
    let arguments = |parameters: &[&Parameter]| {
        let arguments: Vec<_> = parameters
            .iter()
            .map(|parameter| format!("{} {}", given_type(parameter), short(parameter.name)))
            .collect();
        arguments.join(", ")
    };
    let mut base = String::new();
    let mut pairs = String::new();
    for parameter in &parameters {
        match parameter.kind {
            ParameterKind::SessionSelector => base.push_str("who.json"),
            ParameterKind::Tree => base.push_str("Values.tree(tree)"),
            ParameterKind::Data => base.push_str("Values.data(data)"),
            _ => pairs.push_str(&format!(
                ", \"{}\", {}",
                parameter.name,
                short(parameter.name)
            )),
        }
    }
    let sent = match (&*base, &*pairs) {
        ("", "") => "Map.of()".to_owned(),
        (base, "") => base.to_owned(),
        ("", pairs) => format!("fields({})", pairs.trim_start_matches(", ")),
        (base, pairs) => format!("with({base}{pairs})"),
    };
    let is_tree = |parameter: &&Parameter| matches!(parameter.kind, ParameterKind::Tree);
    let given = match parameters.iter().any(is_tree) {
        true => "Map<String, ?> tree".to_owned(),
        false => arguments(&parameters),
    };
    let mut documentation = paragraphs(verb, name_of);
    for parameter in parameters.iter().filter(|parameter| !is_tree(parameter)) {
        documentation.push(format!(
            "@param {} {}",
            short(parameter.name),
            described(parameter)
        ));
    }
    let mut text = format!(
        "{}  public {returned} {name}({given}) {{\n{}  }}\n",
        comment(&documentation, "  "),
        body(verb, &sent)
    );
    let give = if returned == "void" { "" } else { "return " };
    let mut shorter = |comment: &str, given: &str, call: &str| {
        text.push_str(&format!(
            "\n  /** {comment} */\n  public {returned} {name}({given}) {{\n    {give}{call};\n  }}\n"
        ));
    };
    let required: Vec<_> = parameters
        .iter()
        .copied()
        .filter(|parameter| parameter.is_required)
        .collect();
    if required.len() < parameters.len() {
        let values: Vec<_> = parameters
            .iter()
            .map(|parameter| match parameter.default {
                None => short(parameter.name),
                Some(default) => literal(parameter, default),
            })
            .collect();
        let call = format!("{name}({})", values.join(", "));
        let comment = format!("Calls {{@code {name}}} with the defaults.");
        shorter(&comment, &arguments(&required), &call);
    }
    let up_to_data = parameters
        .iter()
        .position(|parameter| matches!(parameter.kind, ParameterKind::Data))
        .map(|place| &parameters[..=place]);
    if let Some(given) = up_to_data {
        let default = |parameter: &&Parameter| match parameter.default {
            None => short(parameter.name),
            Some(default) => literal(parameter, default),
        };
        let rest: String = parameters[given.len()..]
            .iter()
            .map(|parameter| format!(", {}", default(parameter)))
            .collect();
        let names: Vec<_> = given.iter().map(|it| short(it.name)).collect();
        let names = names.join(", ");
        if given
            .iter()
            .any(|parameter| !parameter.is_required || parameter.default.is_some())
        {
            let comment = format!("Calls {{@code {name}}} with data, and the other defaults.");
            shorter(
                &comment,
                &arguments(given),
                &format!("{name}({names}{rest})"),
            );
        }
        let comment = format!("Calls {{@code {name}}} with text as data, in UTF-8.");
        let texts = arguments(given).replace("byte[] data", "String data");
        let call = names.replace("data", "data.getBytes(StandardCharsets.UTF_8)");
        shorter(&comment, &texts, &format!("{name}({call})"));
    }
    match verb.parameters.first().map(|parameter| parameter.kind) {
        Some(ParameterKind::SessionSelector) => {
            let call = format!("{name}(Who.session(session))");
            let comment = format!("Calls {{@code {name}}} for one session.");
            shorter(&comment, "long session", &call);
        }
        Some(ParameterKind::Tree) => {
            let of_yaml = sent.replace("Values.tree(tree)", "Map.of(\"yaml\", yaml)");
            text.push_str(&format!(
                "\n  /** Calls {{@code {name}}} with a tree in YAML. */\n  public {returned} {name}(String yaml) \
                 {{\n{}  }}\n",
                body(verb, &of_yaml)
            ));
        }
        _ => {}
    }
    text
}

fn body(verb: &Verb, sent: &str) -> String {
    let ask = match verb.method {
        Method::Get => "read",
        Method::Post => "act",
    };
    let call = format!("control().{ask}(\"{}\", {sent})", verb.name);
    match returns(verb) {
        Returns::Nothing => format!("    {call};\n"),
        Returns::Value(field) => {
            let value = converted(field, &format!("{call}.get(\"{}\")", field.name));
            let line = format!("    return {value};\n");
            if line.len() <= WIDTH {
                return line;
            }
            let value = converted(field, &format!("answer.get(\"{}\")", field.name));
            format!("    Map<String, Object> answer = {call};\n    return {value};\n")
        }
        Returns::Record(name, _) => format!("    return new {name}({call});\n"),
    }
}

fn given_type(parameter: &Parameter) -> String {
    match parameter.kind {
        ParameterKind::Flag => "boolean".to_owned(),
        ParameterKind::DurationMs | ParameterKind::DurationMsOrNull => "Duration".to_owned(),
        ParameterKind::Count(_) => "long".to_owned(),
        ParameterKind::Version => "int".to_owned(),
        ParameterKind::Data => "byte[]".to_owned(),
        ParameterKind::Fault => "Fault".to_owned(),
        ParameterKind::Directory => "Path".to_owned(),
        ParameterKind::OneOf(_) => words_name(parameter),
        ParameterKind::SessionSelector => "Who".to_owned(),
        ParameterKind::Json(schema) if is_number(schema) => "double".to_owned(),
        ParameterKind::Json(_) => "Object".to_owned(),
        _ => "String".to_owned(),
    }
}

fn literal(parameter: &Parameter, default: &str) -> String {
    match parameter.kind {
        ParameterKind::DurationMs => format!("Duration.ofMillis({default})"),
        ParameterKind::OneOf(_) => {
            let word = default.to_uppercase().replace('-', "_");
            format!("{}.{word}", words_name(parameter))
        }
        ParameterKind::Flag | ParameterKind::Count(_) | ParameterKind::Version => {
            default.to_owned()
        }
        ParameterKind::Data => "new byte[0]".to_owned(),
        _ => format!("\"{default}\""),
    }
}

/// Returns the help of a parameter without a unit, which a `Duration` has.
fn described(parameter: &Parameter) -> String {
    help(parameter).replace(", in milliseconds", "").replace(
        &format!("by default {}", parameter.default.unwrap_or_default()),
        &match (parameter.kind, parameter.default) {
            (ParameterKind::DurationMs, Some(default)) => format!("by default {default} ms"),
            (_, default) => format!("by default {}", default.unwrap_or_default()),
        },
    )
}

fn returned_type(field: &Field) -> String {
    let plain = match field.kind {
        FieldKind::Count | FieldKind::Integer | FieldKind::Session if field.is_optional => {
            "OptionalLong"
        }
        FieldKind::Count | FieldKind::Integer | FieldKind::Session => "long",
        FieldKind::Number if field.is_optional => "OptionalDouble",
        FieldKind::Number => "double",
        FieldKind::DurationMs => "Duration",
        FieldKind::UnixMs => "Instant",
        FieldKind::Flag => "boolean",
        FieldKind::Texts => "List<String>",
        FieldKind::Counts | FieldKind::SessionIds => "List<Long>",
        FieldKind::Part(part) => part.name,
        FieldKind::Parts(part) => return format!("List<{}>", part.name),
        FieldKind::OneOf(words) => return enumerated(words).unwrap_or_else(|| "String".to_owned()),
        FieldKind::Data => "byte[]",
        FieldKind::Fault => "Fault",
        FieldKind::ConnectString => "Universe",
        FieldKind::Tree | FieldKind::TreeZnode => "Object",
        _ => "String",
    };
    plain.to_owned()
}

/// Returns the enum of these words, if a parameter has one.
fn enumerated(words: &[&str]) -> Option<String> {
    let mut all = crate::words().into_iter();
    let (parameter, _) = all.find(|(_, others)| *others == words)?;
    let verbs = crate::verbs().filter(|verb| !takes_map(verb));
    let mut parameters = verbs.flat_map(|verb| verb.parameters);
    parameters
        .any(|other| other.name == parameter.name)
        .then(|| words_name(parameter))
}

fn converted(field: &Field, value: &str) -> String {
    match field.kind {
        FieldKind::Count | FieldKind::Integer if field.is_optional => {
            format!("Values.optionalNumber({value})")
        }
        FieldKind::Count | FieldKind::Integer => format!("Values.number({value})"),
        FieldKind::Session if field.is_optional => format!("Values.optionalSession({value})"),
        FieldKind::Session => format!("Values.session({value})"),
        FieldKind::SessionIds => format!("Values.list({value}, Values::session)"),
        FieldKind::Counts => format!("Values.list({value}, Values::number)"),
        FieldKind::Number if field.is_optional => format!("Values.optionalDouble({value})"),
        FieldKind::Number => format!("((Number) {value}).doubleValue()"),
        FieldKind::DurationMs if field.is_optional => {
            format!("Values.orNull({value}, ms -> Duration.ofMillis(Values.number(ms)))")
        }
        FieldKind::DurationMs => format!("Duration.ofMillis(Values.number({value}))"),
        FieldKind::UnixMs if field.is_optional => {
            format!("Values.orNull({value}, ms -> Instant.ofEpochMilli(Values.number(ms)))")
        }
        FieldKind::UnixMs => format!("Instant.ofEpochMilli(Values.number({value}))"),
        FieldKind::Flag => format!("Boolean.TRUE.equals({value})"),
        FieldKind::Texts => format!("Values.texts({value})"),
        FieldKind::Part(part) => {
            format!(
                "Values.orNull({value}, it -> new {}(Control.object(it)))",
                part.name
            )
        }
        FieldKind::Parts(part) => {
            format!(
                "Values.list({value}, it -> new {}(Control.object(it)))",
                part.name
            )
        }
        FieldKind::OneOf(words) => match enumerated(words) {
            Some(name) => format!("Values.word({name}.class, {value})"),
            None => format!("(String) {value}"),
        },
        FieldKind::Data => "Values.data(json)".to_owned(),
        FieldKind::Fault => format!("fault(Values.number({value}))"),
        FieldKind::ConnectString => format!("universe(name, (String) {value})"),
        FieldKind::Tree | FieldKind::TreeZnode => value.to_owned(),
        _ => format!("(String) {value}"),
    }
}

/// Converts a name to camel case, without a unit: the type has it.
fn short(name: &str) -> String {
    camel(name.trim_end_matches("_ms"))
}

fn name_of(name: &str) -> String {
    format!("{{@code {}}}", short(name))
}

/// Generates a comment after an empty line.
fn comment(paragraphs: &[String], indent: &str) -> String {
    let mut lines = Vec::new();
    let mut was_tag = false;
    for (number, paragraph) in paragraphs.iter().enumerate() {
        let (is_tag, is_list) = (paragraph.starts_with('@'), paragraph.starts_with("<ul>"));
        if number > 0 && !is_list && !(is_tag && was_tag) {
            lines.push(String::new());
        }
        was_tag = is_tag;
        let mark = if number > 0 && !is_tag && !is_list {
            "<p>"
        } else {
            ""
        };
        for line in format!("{mark}{paragraph}").lines() {
            lines.extend(wrapped(line, WIDTH - indent.len() - 3));
        }
    }
    if let [line] = &lines[..]
        && line.len() + indent.len() + 7 <= WIDTH + 2
    {
        return format!("\n{indent}/** {line} */\n");
    }
    let mut text = format!("\n{indent}/**\n");
    for line in lines {
        text.push_str(format!("{indent} * {line}").trim_end());
        text.push('\n');
    }
    text + indent + " */\n"
}
