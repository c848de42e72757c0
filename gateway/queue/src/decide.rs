//! The order of the line, and the two questions that are asked of it.

use crate::{
    decision::{Decision, Outcome},
    line::{Line, Step},
    situation::{Situation, Work},
};

/// What starts, what waits and why, what never will; in the order of the line.
pub fn decide(situation: &Situation) -> Vec<Decision> {
    let mut order: Vec<&Work> = situation.waiting.iter().collect();
    order.sort_by_cached_key(|&work| {
        let priority = work.effective_priority(situation.now, situation.rules);
        (std::cmp::Reverse(priority), work.submitted, work.id.as_str())
    });
    let mut line = Line::new(situation);
    let steps: Vec<(&Work, Step)> = order.into_iter().map(|work| (work, line.next(work))).collect();
    let mut decisions = Vec::with_capacity(steps.len());
    let mut waiting = 0;
    for (work, step) in steps {
        let outcome = match step {
            Step::Start(tasks) => Outcome::Start { tasks },
            Step::Never(reason) => Outcome::Never { reason },
            Step::Wait { reason, starts_by } => {
                waiting += 1;
                // Only once everything is decided is it clear what is left.
                Outcome::Wait { position: waiting, reason, starts_by, instead: line.less(work) }
            }
        };
        decisions.push(Decision { id: work.id.clone(), outcome });
    }
    decisions
}

/// What would become of `work` if it were submitted now.
pub fn decide_for(situation: &Situation, work: &Work) -> Option<Outcome> {
    let mut with = situation.clone();
    with.waiting.retain(|there| there.id != work.id);
    with.waiting.push(work.clone());
    decide(&with).into_iter().find(|decision| decision.id == work.id).map(|decision| decision.outcome)
}
