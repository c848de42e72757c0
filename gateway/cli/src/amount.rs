//! How much of something, as it is written on the command line.
//!
//! One below zero is read too: what is wrong with it is then said as the gateway says it, in the user's language and
//! not in that of the parser.

use gateway_api::{Code, Problem, client::ClientError, error::Reason};

use crate::size;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount<T> {
    Of(T),
    Negative,
}

impl<T> Amount<T> {
    /// The amount of `field`, as the API calls it.
    pub(crate) fn of(self, field: &str) -> Result<T, ClientError> {
        match self {
            Self::Of(amount) => Ok(amount),
            Self::Negative => Err(negative(field).into()),
        }
    }
}

/// The same for what may be left out.
pub(crate) fn given<T>(amount: Option<Amount<T>>, field: &str) -> Result<Option<T>, ClientError> {
    amount.map(|amount| amount.of(field)).transpose()
}

/// A limit to set: the most that may be held, or `none`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit<T> {
    Most(Amount<T>),
    None,
}

/// The same as `read` reads, or `none`.
pub(crate) fn limit<T: 'static>(
    read: fn(&str) -> Result<Amount<T>, String>,
) -> impl Fn(&str) -> Result<Limit<T>, String> + Clone + Send + Sync + 'static {
    move |text| if text == "none" { Ok(Limit::None) } else { read(text).map(Limit::Most) }
}

/// Bytes, such as `512M`.
pub(crate) fn size(text: &str) -> Result<Amount<u64>, String> {
    read(text, size::parse)
}

/// Processors, which may be parts of one.
pub(crate) fn cpus(text: &str) -> Result<Amount<f64>, String> {
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    read(text, |text| {
        number(text).ok_or_else(|| format!("`{text}` is not a number; write it like `2` or `0.5`"))
    })
}

/// Whole things.
pub(crate) fn count<T: std::str::FromStr>(text: &str) -> Result<Amount<T>, String> {
    read(text, |text| text.parse().map_err(|_| format!("`{text}` is not a whole number; write it like `2`")))
}

fn read<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Amount<T>, String> {
    match text.strip_prefix('-') {
        Some(positive) if !positive.starts_with(['-', '+']) && parse(positive).is_ok() => {
            Ok(Amount::Negative)
        }
        Some(_) | None => parse(text).map(Amount::Of),
    }
}

fn negative(field: &str) -> Problem {
    let reason = Reason::Negative;
    let params =
        [("field", field.to_owned()), ("reason", reason.word()), ("why", reason.sentence().to_owned())];
    Problem {
        code: Code::BadValue,
        message: format!("{field}: {}", reason.sentence()),
        hint: Some("change that value".to_owned()),
        pointer: Some(format!("/{field}")),
        params: params.map(|(key, value)| (key.to_owned(), value)).into(),
        notes: Vec::new(),
        request_id: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_zero_is_told_from_what_is_no_number() {
        assert_eq!(size("8G"), Ok(Amount::Of(8 << 30)));
        assert_eq!(size("-8G"), Ok(Amount::Negative));
        assert_eq!(cpus("0.5"), Ok(Amount::Of(0.5)));
        assert_eq!(cpus("-1"), Ok(Amount::Negative));
        assert_eq!(count::<u32>("2"), Ok(Amount::Of(2)));
        assert_eq!(count::<u32>("-2"), Ok(Amount::Negative));
        for wrong in ["", "-", "two", "--cpus", "--1", "NaN", "inf"] {
            assert!(size(wrong).is_err() && cpus(wrong).is_err() && count::<u32>(wrong).is_err(), "{wrong}");
        }
    }

    /// Word for word what the gateway says, which wrote it down in `gateway/api/problems.json`.
    #[test]
    fn a_negative_amount_is_refused_as_the_gateway_refuses_it() {
        let said: serde_json::Value = serde_json::from_str(include_str!("../../api/problems.json")).unwrap();
        let said: Problem = serde_json::from_value(said["bad_input"]["negative GPUs"].clone()).unwrap();
        assert_eq!(negative("gpus"), said);
    }
}
