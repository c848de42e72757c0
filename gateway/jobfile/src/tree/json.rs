//! JSON to [`Node`]s, with the place of each value.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{ObjectPropName, Value as Ast},
    common::{Range, Ranged as _},
    errors::ParseErrorKind,
    parse_to_ast,
};

use super::{DEEPEST, Entries, Key, Lines, MOST_VALUES, Node, Value, small};
use crate::note::{Code, Level, Notes, Place};

pub(crate) fn read(text: &str, notes: &Notes) -> Option<Node> {
    // Comments and trailing commas are what people leave in hand-edited files; nothing is unclear about them.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => {
            let mut reader = Reader { lines: Lines::new(text), notes, values: 0 };
            reader.node(parsed.value?, 0)
        }
        Err(error) => {
            let place = Place { line: small(error.line_display()), column: small(error.column_display()) };
            if matches!(error.kind(), ParseErrorKind::NestingDepthExceeded) {
                let limit = [("limit", DEEPEST.to_string())];
                notes.add(Level::Error, Code::TooDeep, Some(place), "", limit);
            } else {
                let said = error.kind().to_string();
                let mut letters = said.chars();
                let what = letters.next().map(|first| first.to_lowercase().chain(letters).collect());
                notes.add(Level::Error, Code::Syntax, Some(place), "", [("what", what.unwrap_or_default())]);
            }
            None
        }
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    notes: &'a Notes,
    values: usize,
}

impl Reader<'_> {
    fn node(&mut self, ast: Ast<'_>, depth: usize) -> Option<Node> {
        let place = self.place(ast.range());
        self.values += 1;
        if depth > DEEPEST {
            let limit = [("limit", DEEPEST.to_string())];
            self.notes.add(Level::Error, Code::TooDeep, Some(place), "", limit);
            return None;
        }
        if self.values > MOST_VALUES {
            let limit = [("limit", MOST_VALUES.to_string())];
            self.notes.add(Level::Error, Code::TooManyValues, Some(place), "", limit);
            return None;
        }
        Some(match ast {
            Ast::StringLit(text) => Node::scalar(place, &text.value, true),
            Ast::NumberLit(number) => Node::scalar(place, number.value, false),
            Ast::BooleanLit(boolean) => {
                Node::scalar(place, if boolean.value { "true" } else { "false" }, false)
            }
            Ast::NullKeyword(_) => Node::scalar(place, "null", false),
            Ast::Array(array) => {
                let items = array.elements.into_iter().map(|item| self.node(item, depth + 1));
                Node { place, value: Value::List(items.collect::<Option<_>>()?) }
            }
            Ast::Object(object) => {
                let mut entries = Entries::default();
                for property in object.properties {
                    let (text, range) = match property.name {
                        ObjectPropName::String(name) => (name.value.into_owned(), name.range),
                        ObjectPropName::Word(name) => (name.value.to_owned(), name.range),
                    };
                    let key = Key { place: self.place(range), text };
                    let value = self.node(property.value, depth + 1)?;
                    entries.put(key, value, Level::Warning, self.notes);
                }
                Node { place, value: entries.into_map() }
            }
        })
    }

    fn place(&self, range: Range) -> Place {
        self.lines.place(range.start)
    }
}
