//! YAML to [`Node`]s.
//!
//! Built on the parser's events and not on its loader, so that aliases are counted as they are written out: a file of
//! a kilobyte cannot become a gigabyte, and an alias within its own anchor is a sentence instead of an endless tree.
//! Merge keys (`<<`) work, since exported files have them.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use super::{DEEPEST, Entries, Key, MOST_VALUES, Node, Value, small};
use crate::note::{Code, Level, Notes, Place};

pub(crate) fn read(text: &str, notes: &Notes) -> Option<Node> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        notes,
        anchors: HashMap::new(),
        open: Vec::new(),
        values: 0,
    };
    let node = reader.document()?;
    (!notes.any_error()).then_some(node)
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    notes: &'a Notes,
    /// Finished anchored values, with how many values each holds.
    anchors: HashMap<usize, (Node, usize)>,
    /// Anchors of the values that are being read.
    open: Vec<usize>,
    values: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Option<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return root,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) if root.is_some() => {
                    let what = "there is more than one document (`---`) in the file".to_owned();
                    self.error(Code::Syntax, span, [("what", what)]);
                    return None;
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?);
                }
                Event::Alias(_)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => return None,
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            self.error(Code::TooDeep, span, [("limit", DEEPEST.to_string())]);
            return None;
        }
        let before = self.values;
        self.count(1, span)?;
        let (anchor, value) = match event {
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let quoted = style != ScalarStyle::Plain || text_tag;
                (anchor, Value::Scalar { text: text.into_owned(), quoted })
            }
            Event::SequenceStart(anchor, _) => {
                self.open.push(anchor);
                let items = self.items(depth);
                self.open.pop();
                (anchor, Value::List(items?))
            }
            Event::MappingStart(anchor, _) => {
                self.open.push(anchor);
                let entries = self.entries(depth);
                self.open.pop();
                (anchor, entries?.into_map())
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return None,
        };
        let node = Node { place: place(span), value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.values - before));
        }
        Some(node)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Option<Node> {
        if self.open.contains(&anchor) {
            self.error(Code::Cycle, span, [("value", "*".to_owned())]);
            return None;
        }
        let size = self.anchors.get(&anchor).map(|(_, size)| *size)?;
        // Counted before it is copied.
        self.count(size, span)?;
        self.anchors.get(&anchor).map(|(node, _)| node.clone())
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Some(items),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn entries(&mut self, depth: usize) -> Option<Entries> {
        let mut entries = Entries::default();
        let mut merged = Vec::new();
        loop {
            let (key, key_span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (event, span) => (self.node(event, span, depth + 1)?, span),
            };
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            match key.value {
                Value::Scalar { text, quoted: false } if text == "<<" => merged.push(value),
                Value::Scalar { text, .. } => {
                    entries.put(Key { place: key.place, text }, value, Level::Error, self.notes);
                }
                Value::List(_) | Value::Map(_) => {
                    let what = "a key must be text, not a list or a map".to_owned();
                    self.error(Code::Syntax, key_span, [("what", what)]);
                }
            }
        }
        // What is written out wins over what is merged in.
        for node in merged {
            match node.value {
                Value::Map(more) => entries.merge(more),
                Value::List(nodes) => {
                    for node in nodes {
                        if let Value::Map(more) = node.value {
                            entries.merge(more);
                        }
                    }
                }
                Value::Scalar { .. } => {}
            }
        }
        Some(entries)
    }

    fn count(&mut self, more: usize, span: Span) -> Option<()> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_VALUES {
            self.error(Code::TooManyValues, span, [("limit", MOST_VALUES.to_string())]);
            return None;
        }
        Some(())
    }

    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        match self.parser.next_event()? {
            Ok(event) => Some(event),
            Err(error) => {
                let marker = error.marker();
                let place = Place { line: small(marker.line()), column: small(marker.col() + 1) };
                // The parser has a bound of its own on brackets.
                let (code, params) = if error.info().contains("recursion limit") {
                    (Code::TooDeep, [("limit", DEEPEST.to_string())])
                } else {
                    (Code::Syntax, [("what", error.info().to_owned())])
                };
                self.notes.add(Level::Error, code, Some(place), "", params);
                None
            }
        }
    }

    fn error<const N: usize>(&self, code: Code, span: Span, params: [(&str, String); N]) {
        self.notes.add(Level::Error, code, Some(place(span)), "", params);
    }
}

fn place(span: Span) -> Place {
    Place { line: small(span.start.line()), column: small(span.start.col() + 1) }
}
