//! Failing a test with a sentence. A test has nobody to return an error to.

use std::{error::Error, fmt::Display};

/// Takes the value out of a result, or fails the test saying what could not be done.
pub trait OrFail<T> {
    /// `what` follows "cannot", such as "read the log".
    #[track_caller]
    fn or_fail(self, what: impl Display) -> T;
}

impl<T, E: Into<Box<dyn Error>>> OrFail<T> for Result<T, E> {
    fn or_fail(self, what: impl Display) -> T {
        match self {
            Ok(value) => value,
            Err(error) => {
                let error: Box<dyn Error> = error.into();
                let mut causes = error.to_string();
                let mut next = error.source();
                while let Some(cause) = next {
                    causes = format!("{causes}: {cause}");
                    next = cause.source();
                }
                panic!("cannot {what}: {causes}")
            }
        }
    }
}

impl<T> OrFail<T> for Option<T> {
    fn or_fail(self, what: impl Display) -> T {
        match self {
            Some(value) => value,
            None => panic!("cannot {what}: there is none"),
        }
    }
}
