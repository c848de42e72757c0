//! Who someone is and what they may do.

pub(crate) mod limits;
pub(crate) mod password;
pub(crate) mod policy;
pub(crate) mod token;
