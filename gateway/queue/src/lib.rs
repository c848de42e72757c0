//! The queue: what starts now, and why the rest waits.
//!
//! [`decide`] is a pure function of a [`Situation`] (waiting work, running work, machines, allowances, the time). It
//! knows nothing of the store, of containers or of users beyond their names, so the same code answers the loop that
//! starts work, `dryRun` ([`decide_for`]) and the tests. Interactive and batch work are in one line.
//!
//! # The rules
//!
//! - **Order**: the higher priority first, then the earlier submission. Waiting raises a priority by one for each
//!   `ageing` of time, up to 9, so that nothing is overtaken for ever.
//! - **All or nothing**: all tasks of a work start together, or none does. A task is on one machine, its cards are of
//!   one model, and so are those of the whole work unless it has none.
//! - **Head of the line**: the first work that has the allowance but not the room. A plan is made for it: running work
//!   is thought away until it fits, first what was there before it (the earliest end first, what has no limit last),
//!   then what came since, in the order of starts; what turns out to have no need to go stays. Its place in the plan
//!   is held, and its part of its owners' allowances as well. Nothing behind it may take either.
//! - **Back-fill**: what is behind the head starts if it fits beside the plan, or if its time limit ends before the
//!   plan comes due. So the head starts at the latest when all that ran when it became the head has ended or reached
//!   its time limit.
//! - **Allowances**: work over the allowance of its user, group or share waits and does not stop others, but those of
//!   the same owner who are behind it do not get what it waits for. Work that is larger than the whole allowance waits
//!   and holds nothing.
//! - **Clusters**: a work stays within the one that it names. Each cluster has a head of its own, so that no line waits
//!   for another; order, and what owners may hold, are common to all.
//! - **Pools**: a pool is the cards of some models, or whole machines, for some kinds of work. Who names a pool gets what
//!   is in it; who names none gets what is in no pool, or in one that takes its kind.
//! - **Never**: what would not fit into the empty cluster is told so at once, with the largest that would.
//! - Machines that are not ready are nobody's room. Work that only they could take waits, and holds nothing.
//!
//! # Limits
//!
//! Tasks of several sizes are placed largest first and not in the best of all ways; a work with one size of task is
//! placed exactly.

mod allowance;
mod decide;
mod decision;
mod line;
mod room;
mod scope;
mod situation;

pub use decide::{decide, decide_for};
pub use decision::{Decision, Impossible, Less, Outcome, Reason, Resource};
pub use situation::{
    Allowance, Card, Kind, Limits, Need, Node, Owner, PRIORITY_MAX, PRIORITY_MIN, Placed, Pool, Raise, Rules,
    Running, Situation, Work,
};
