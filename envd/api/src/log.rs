//! The log of both programs: one line of JSON for each event, on standard error.
//!
//! Names and paths in it come from strangers. So each field is cut, each line is bounded, and nothing in it moves a
//! cursor, ends a line early or changes the direction of writing, wherever it is shown.

use std::{
    cell::{Cell, RefCell},
    fmt::{self, Write as _},
    io::{self, Write},
    panic::PanicHookInfo,
    sync::Mutex,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde::Serialize;
use tracing::{
    Event, Level, Subscriber,
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
/// How much a thread gathers before it writes, in bytes.
const GATHERED_MAX: usize = 16 << 10;
/// How long lines wait at most where a thread writes at its leisure.
pub const GATHERED_FOR: Duration = Duration::from_millis(200);
/// What a cut value ends with.
const CUT: &str = "…";

/// Logs what `variable` says, or `otherwise`, from now on.
pub fn start(variable: &str, otherwise: &str) {
    let filter = EnvFilter::try_from_env(variable).unwrap_or_else(|_| EnvFilter::new(otherwise));
    tracing_subscriber::registry().with(filter).with(Lines::new(io::stderr())).init();
    std::panic::set_hook(Box::new(note_panic));
}

/// A panic is a line like any other.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let (place, thread) = (panic.location().map(ToString::to_string), thread.name().unwrap_or_default());
    tracing::error!(thread, place, why = panic.payload_as_str().unwrap_or_default(), "a thread panicked");
}

/// Writes events as lines.
#[derive(Debug)]
struct Lines<W> {
    out: Mutex<W>,
}

/// The fields of a span, each with the comma before it.
#[derive(Debug, Default)]
struct Fields {
    /// What comes before a name: the span's own name and a dot.
    prefix: &'static str,
    count: usize,
    text: Vec<u8>,
}

thread_local! {
    /// The lines of this thread that are not written yet, if it gathers them.
    static GATHERED: RefCell<Option<Gathered>> = const { RefCell::new(None) };
    /// Room for the line at hand.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The second of the last line, and how it is written.
    static SECOND: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
}

#[derive(Debug)]
struct Gathered {
    lines: Vec<u8>,
    written: Instant,
}

/// From now on the lines of this thread wait for [`write_gathered`], a warning, or many others. For threads that answer
/// a request after the other: they have no time for a write in each, and a moment without work after each burst.
pub fn gather() {
    let nothing = Gathered { lines: Vec::new(), written: Instant::now() };
    GATHERED.set(Some(nothing));
}

/// Writes the lines of this thread that wait.
pub fn write_gathered() {
    GATHERED.with_borrow_mut(|gathered| {
        if let Some(gathered) = gathered.as_mut().filter(|gathered| !gathered.lines.is_empty()) {
            let _ = io::stderr().write_all(&gathered.lines);
            gathered.lines.clear();
            gathered.written = Instant::now();
        }
    });
}

/// The same, unless some were written less than [`GATHERED_FOR`] ago: a thread that has nothing to do for a moment
/// thousands of times a second would write as often. `true`: lines wait, and somebody has to write them later.
pub fn write_gathered_at_leisure() -> bool {
    let waits = GATHERED.with_borrow(|gathered| {
        gathered
            .as_ref()
            .is_some_and(|Gathered { lines, written }| !lines.is_empty() && written.elapsed() < GATHERED_FOR)
    });
    if !waits {
        write_gathered();
    }
    waits
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self { out: Mutex::new(out) }
    }

    /// One write for one line, or for many; there is nobody to tell when it fails.
    fn write(&self, line: &[u8]) {
        if let Ok(mut out) = self.out.lock() {
            let _ = out.write_all(line);
        }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields { prefix: span.name(), ..Fields::default() };
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
        let level = *event.metadata().level();
        let mut fields = Fields { text: LINE.take(), ..Fields::default() };
        begin(&mut fields.text, event);
        event.record(&mut fields);
        let mut line = fields.text;
        let mut named: [&str; SPANS_MAX] = [""; SPANS_MAX];
        for (nth, span) in context.event_scope(event).into_iter().flatten().take(SPANS_MAX).enumerate() {
            // The innermost of one name stands for all.
            if !named.contains(&span.name())
                && let Some(fields) = span.extensions().get::<Fields>()
            {
                line.extend_from_slice(&fields.text);
            }
            named[nth] = span.name();
        }
        line.extend_from_slice(b"}\n");
        let is_waiting = GATHERED.with_borrow_mut(|gathered| {
            let Some(Gathered { lines, written }) = gathered else { return false };
            lines.extend_from_slice(&line);
            if level <= Level::WARN || lines.len() > GATHERED_MAX {
                self.write(lines);
                lines.clear();
                *written = Instant::now();
            }
            true
        });
        if !is_waiting {
            self.write(&line);
        }
        line.clear();
        LINE.set(line);
    }
}

/// Writes a line up to an event's own fields.
fn begin(line: &mut Vec<u8>, event: &Event<'_>) {
    let now = Timestamp::now();
    let (level, target) = (event.metadata().level(), event.metadata().target());
    line.extend_from_slice(b"{\"time\":\"");
    SECOND.with_borrow_mut(|(second, written)| {
        if *second != now.as_second() {
            *second = now.as_second();
            *written = format!("{now:.0}");
        }
        line.extend_from_slice(written.trim_end_matches('Z').as_bytes());
    });
    // Piece by piece: there is a line for every request, and a format would be read anew for each.
    let millis = now.subsec_millisecond().unsigned_abs();
    let digits = [millis / 100, millis / 10 % 10, millis % 10].map(|digit| b'0' + digit.to_le_bytes()[0]);
    let pieces: [&[u8]; 5] =
        [b".", &digits, b"Z\",\"level\":\"", level.as_str().as_bytes(), b"\",\"target\":"];
    for piece in pieces {
        line.extend_from_slice(piece);
    }
    quote(line, target);
}

/// Text as JSON has it.
fn quote(line: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(line, text);
}

impl Fields {
    /// Writes the name of a field, and what `value` writes; nothing where there are too many already.
    fn put(&mut self, field: &Field, value: impl FnOnce(&mut Vec<u8>)) {
        if self.count == FIELDS_MAX {
            return;
        }
        self.count += 1;
        let (dot, name) = (if self.prefix.is_empty() { "" } else { "." }, field.name());
        for piece in [",\"", self.prefix, dot, name, "\":"] {
            self.text.extend_from_slice(piece.as_bytes());
        }
        value(&mut self.text);
    }

    fn put_tame(&mut self, field: &Field, write: impl FnOnce(&mut Tame<'_>) -> fmt::Result) {
        self.put(field, |text| {
            text.push(b'"');
            let _ = write(&mut Tame { text, length: 0, full: false });
            text.push(b'"');
        });
    }

    fn put_plain(&mut self, field: &Field, value: impl Serialize) {
        self.put(field, |text| {
            let _ = serde_json::to_writer(text, &value);
        });
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_tame(field, |tame| write!(tame, "{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_tame(field, |tame| tame.write_str(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put_tame(field, |tame| write!(tame, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put_plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_plain(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put_plain(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put_plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.put_plain(field, value);
        } else {
            self.put_tame(field, |tame| write!(tame, "{value}"));
        }
    }
}

/// Text inside of JSON's quotes that is bounded and does nothing when it is shown. Stops listening once it is full, so
/// that what is never shown is never put together either.
#[derive(Debug)]
struct Tame<'a> {
    text: &'a mut Vec<u8>,
    /// In bytes, as it is read again.
    length: usize,
    full: bool,
}

impl fmt::Write for Tame<'_> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let fits = !self.full && self.length + more.len() <= FIELD_MAX - CUT.len();
        // All of them, without a way out at the first that is not: so they are looked at many at once.
        let is_plain = |byte: u8| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~');
        if fits && more.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
            self.text.extend_from_slice(more.as_bytes());
            self.length += more.len();
            return Ok(());
        }
        for letter in more.chars() {
            if self.full {
                return Err(fmt::Error);
            }
            if is_wild(letter) {
                self.put(&format!("\\u{{{:x}}}", u32::from(letter)));
            } else {
                self.put(letter.encode_utf8(&mut [0; 4]));
            }
        }
        Ok(())
    }
}

impl Tame<'_> {
    /// Puts all of it, or what a cut value ends with.
    fn put(&mut self, piece: &str) {
        self.full = self.length + piece.len() > FIELD_MAX - CUT.len();
        let piece = if self.full { CUT } else { piece };
        self.length += piece.len();
        for &byte in piece.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                self.text.push(b'\\');
            }
            self.text.push(byte);
        }
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

    use serde_json::{Map, Value};

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

    #[test]
    fn a_panic_is_a_line_like_any_other() {
        let text = heard(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(note_panic));
            let panicked = std::panic::catch_unwind(|| panic!("no\nway"));
            std::panic::set_hook(before);
            assert!(panicked.is_err());
        });
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&"ERROR".into(), &"a thread panicked".into()));
        assert_eq!(line["why"], r"no\u{a}way");
        assert!(line["place"].as_str().unwrap().contains("log.rs:"), "{line}");
    }

    #[test]
    fn gathered_lines_come_with_the_next_warning_in_their_order() {
        let heard = Heard::default();
        let subscriber = tracing_subscriber::registry().with(Lines::new(heard.clone()));
        let words = || {
            let text = String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
            let lines =
                text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].clone());
            lines.collect::<Vec<_>>()
        };
        let thread = std::thread::scope(|scope| {
            let gathering = scope.spawn(|| {
                tracing::subscriber::with_default(subscriber, || {
                    gather();
                    tracing::info!("one");
                    let waiting = words();
                    tracing::warn!("two");
                    (waiting, words())
                })
            });
            gathering.join().unwrap()
        });
        assert_eq!(thread, (vec![], vec!["one".into(), "two".into()]));
    }

    #[test]
    fn the_innermost_of_spans_with_one_name_stands_for_all() {
        let text = heard(|| {
            let _outer = tracing::info_span!("task", name = "outer", age = 3).entered();
            let _inner = tracing::info_span!("task", name = "inner").entered();
            tracing::info!(share = 0.5, nothing = f64::NAN, "hello");
        });
        let line: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["task.name"], &line["share"]), (&"inner".into(), &0.5.into()));
        assert_eq!((&line["nothing"], line.get("task.age")), (&"NaN".into(), None));
    }
}
