//! The log of both programs: one line of JSON for each event, on standard error.
//!
//! Names and paths in it come from strangers. So each field is cut, each line is bounded, and nothing in it moves a
//! cursor, ends a line early or changes the direction of writing, wherever it is shown.

use std::{
    fmt::{self, Write as _},
    io::{self, Write},
    sync::Mutex,
};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// The longest value of a field, in bytes.
pub const FIELD_MAX: usize = 256;
/// Fields of one event or span; those after them are left out.
const FIELDS_MAX: usize = 32;
/// The spans of an event that are named, from the innermost.
const SPANS_MAX: usize = 4;
/// What a cut value ends with.
const CUT: &str = "…";

/// Logs what `variable` says, or `otherwise`, from now on.
pub fn start(variable: &str, otherwise: &str) {
    let filter = EnvFilter::try_from_env(variable).unwrap_or_else(|_| EnvFilter::new(otherwise));
    tracing_subscriber::registry().with(filter).with(Lines::new(io::stderr())).init();
}

/// Writes events as lines.
#[derive(Debug)]
struct Lines<W> {
    out: Mutex<W>,
}

/// The fields of an event or a span.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self { out: Mutex::new(out) }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut line = Map::new();
        line.insert("time".to_owned(), format!("{:.3}", Timestamp::now()).into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("target".to_owned(), event.metadata().target().into());
        line.extend(fields.0);
        // An event's own word stands before that of what it happened in.
        for span in context.event_scope(event).into_iter().flatten().take(SPANS_MAX) {
            if let Some(Fields(outer)) = span.extensions().get::<Fields>() {
                for (name, value) in outer {
                    line.entry(format!("{}.{name}", span.name())).or_insert_with(|| value.clone());
                }
            }
        }
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        // One write for one line; there is nobody to tell when it fails.
        if let Ok(mut out) = self.out.lock() {
            let _ = out.write_all(text.as_bytes());
        }
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if self.0.len() < FIELDS_MAX {
            self.0.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut tame = Tame::default();
        let _ = write!(tame, "{value:?}");
        self.put(field, tame.text.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut tame = Tame::default();
        let _ = tame.write_str(value);
        self.put(field, tame.text.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut tame = Tame::default();
        let _ = write!(tame, "{value}");
        self.put(field, tame.text.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put(field, i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, u64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

/// Text that is bounded and does nothing when it is shown. Stops listening once it is full, so that what is never
/// shown is never put together either.
#[derive(Debug, Default)]
struct Tame {
    text: String,
    full: bool,
}

impl fmt::Write for Tame {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for letter in more.chars() {
            if self.full {
                return Err(fmt::Error);
            }
            let before = self.text.len();
            if is_wild(letter) {
                let _ = write!(self.text, "\\u{{{:x}}}", u32::from(letter));
            } else {
                self.text.push(letter);
            }
            if self.text.len() > FIELD_MAX - CUT.len() {
                self.text.truncate(before);
                self.text.push_str(CUT);
                self.full = true;
            }
        }
        Ok(())
    }
}

/// Control characters, also those beyond ASCII, line separators, and marks that turn the direction of writing.
fn is_wild(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn heard(log: impl FnOnce()) -> String {
        let heard = Heard::default();
        let subscriber = tracing_subscriber::registry().with(Lines::new(heard.clone()));
        tracing::subscriber::with_default(subscriber, log);
        let bytes = heard.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_stranger_s_text_is_cut_and_tamed() {
        let path =
            format!("/a\r\n{{\"level\":\"ERROR\"}}\x1b]0;title\x07\u{9b}2J\u{202e}{}", "x".repeat(100_000));
        let user = "名".repeat(1000);
        let text = heard(|| {
            let span = tracing::info_span!("request", path, id = 7);
            let _inside = span.enter();
            tracing::info!(user, %path, debug = ?path, "refused {}", "\n".repeat(5000));
        });
        assert_eq!(text.matches('\n').count(), 1, "one line");
        assert!(text.len() < 2000, "{}", text.len());
        assert!(!text.trim_end().chars().any(is_wild), "{text:?}");
        let line: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(
            line["path"]
                .as_str()
                .unwrap()
                .starts_with(r#"/a\u{d}\u{a}{"level":"ERROR"}\u{1b}]0;title\u{7}\u{9b}2J\u{202e}"#)
        );
        assert_eq!((&line["level"], &line["request.id"]), (&"INFO".into(), &7.into()));
        for (name, value) in &line {
            assert!(value.as_str().is_none_or(|value| value.len() <= FIELD_MAX), "{name}");
        }
        assert!(line["user"].as_str().unwrap().ends_with('…'));
    }

    #[test]
    fn short_text_is_left_as_it_is() {
        let text = heard(|| tracing::warn!(name = "训练 1", ok = true, "it's \"fine\""));
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["name"], &line["ok"], &line["message"]),
            (&"训练 1".into(), &true.into(), &"it's \"fine\"".into())
        );
    }
}
