"""Medians, their intervals, and what may be said of them.

All figures of one case are taken in rounds: each round measures every target once. A ratio is formed inside its round,
so that what slows the whole machine slows both. One target is measured twice in each round: the ratio of the two is the
control, which would be 1 on a quiet machine. How far it is off is charged to every verdict of the case.
"""

import random
import statistics
from dataclasses import dataclass

RESAMPLES = 2000
# A control that is off by more leaves nothing to be said.
CONTROL_MAX = 0.25

REACHED = "reached"
MISSED = "not reached"
UNCLEAR = "cannot be told"
NO_GOAL = "no goal"


@dataclass(frozen=True)
class Interval:
    """A median and where it lies with 95 %."""

    median: float
    low: float
    high: float


def interval(values):
    """The median of `values` and its bootstrap interval; of fewer than three values, their range."""
    if not values:
        raise ValueError("nothing was measured")
    middle = statistics.median(values)
    if len(values) < 3:
        return Interval(middle, min(values), max(values))
    chance = random.Random(len(values))  # the same interval each time the same values are looked at
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Interval(middle, medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)])


def ratios(ours, theirs, less=0.0):
    """Round by round, `ours` (without the part `less` that is allowed for) over `theirs`."""
    if len(ours) != len(theirs):
        raise ValueError("a ratio is formed inside a round")
    return [(mine - less) / other for mine, other in zip(ours, theirs)]


def percentile(values, share):
    """The smallest value that `share` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def verdict(found, at_most=None, at_least=None, control=None):
    """Whether a goal is reached: the whole interval must say so, also if the figure is off as far as the control is."""
    if at_most is None and at_least is None:
        return NO_GOAL
    off = abs(control - 1) if control is not None else 0.0
    if off > CONTROL_MAX:
        return UNCLEAR
    low, high = found.low * (1 - off), found.high * (1 + off)
    if at_most is not None:
        return REACHED if high <= at_most else MISSED if low > at_most else UNCLEAR
    return REACHED if low >= at_least else MISSED if high < at_least else UNCLEAR


def median_of(before, after):
    """The median of what was counted between two looks at a histogram, as if a bucket's were spread evenly in it."""
    earlier = dict(before)
    counts = [(most, count - earlier.get(most, 0)) for most, count in after]
    if not counts or counts[-1][1] == 0:
        raise ValueError("nothing was counted")
    half, least, below = counts[-1][1] / 2, 0.0, 0
    for most, count in counts:
        if count >= half:
            return least + (most - least) * (half - below) / (count - below)
        least, below = most, count
    raise ValueError("the last bucket holds less than those before it")
