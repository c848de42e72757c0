//! Who someone is and what they may do.

mod caller;
pub(crate) mod limits;
pub(crate) mod live;
pub(crate) mod password;
pub(crate) mod policy;
pub(crate) mod ticket;
pub(crate) mod token;
pub(crate) mod vault;

pub(crate) use caller::{Caller, Key, Origin};
