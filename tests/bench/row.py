"""What a row is made of, and how it is measured."""

import sys
import time
from dataclasses import dataclass, field
from typing import Callable

from stats import Interval, interval, ratios, verdict

ROWS = {}


def row(name, what):
    """Names a generator of cases: it sets up, yields each `Case` to be measured, and clears away."""

    def register(cases):
        ROWS[name] = (what, cases)
        return cases

    return register


class NotMeasured(Exception):
    """Why a row has no figures on this machine, as a sentence."""


@dataclass(frozen=True)
class Goal:
    """What one figure of Berth must be: to a peer, or by itself."""

    metric: str
    to: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    # What is allowed for before the ratio is formed, in the metric's unit.
    less: float = 0.0
    # The largest value rather than the median.
    worst: bool = False
    # Which target's figure it is.
    of: str = "berth"

    def words(self):
        if self.at_most is None and self.at_least is None:
            return "–"
        sign, bound = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        rest = f" {UNITS[self.metric][0]}" if self.to is None else f" × {self.to}"
        extra = f" + {shown(self.less, self.metric)}" if self.less else ""
        worst = ", the worst" if self.worst else ""
        return f"{sign} {shown_number(bound * (UNITS[self.metric][1] if self.to is None else 1))}{rest}{extra}{worst}"


# Each metric's unit and by how much a figure is multiplied to be shown in it.
UNITS = {
    "cpu per request": ("µs", 1e6),
    "cpu per GiB": ("s", 1),
    "cpu per message": ("µs", 1e6),
    "cpu": ("ms", 1e3),
    "wall": ("ms", 1e3),
    "p50": ("µs", 1e6),
    "p99": ("ms", 1e3),
    "whole request": ("µs", 1e6),
    "throughput": ("MB/s", 1e-6),
    "syscalls per request": ("", 1),
    "memory": ("KiB", 1 / 1024),
    "size": ("MB", 1e-6),
    "again": ("ms", 1e3),
    "freeze": ("ms", 1e3),
    "dropped": ("sockets", 1),
}


def shown_number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shown(value, metric):
    unit, times = UNITS[metric]
    return f"{shown_number(value * times)} {unit}".strip()


@dataclass
class Case:
    """One situation, measured in rounds."""

    name: str
    # From a target's name to what measures it once: a dictionary from metric to value.
    targets: dict[str, Callable[[], dict]]
    goals: list[Goal]
    # The target that is measured twice in each round.
    control: str | None = None
    # At most so many rounds, for what takes long.
    rounds_max: int | None = None
    # One more before the first that counts.
    warm_up: bool = True
    note: str = ""
    samples: dict = field(default_factory=dict)


AGAIN = " again"


def measure(case, rounds):
    """All rounds of a case; each begins with another target. One that has its samples is not measured again."""
    if case.samples:
        return
    targets = dict(case.targets)
    if case.control:
        targets[case.control + AGAIN] = targets[case.control]
    names = list(targets)
    rounds = min(rounds, case.rounds_max or rounds)
    for number in range(-1 if case.warm_up else 0, rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if number < 0 and name.endswith(AGAIN):
                continue
            begun = time.monotonic()
            for metric, value in targets[name]().items():
                if number >= 0:
                    case.samples.setdefault(name, {}).setdefault(metric, []).append(value)
            print(f"    {case.name}: {name}, {time.monotonic() - begun:.1f} s", file=sys.stderr)


def figures(case):
    """What is said of each goal of a measured case."""
    found = []
    for goal in case.goals:
        ours = case.samples[goal.of][goal.metric]
        control = None
        if goal.worst:
            value = Interval(max(ours), max(ours), max(ours))
        elif goal.to is None:
            value = interval(ours)
        else:
            value = interval(ratios(ours, case.samples[goal.to][goal.metric], goal.less))
        again = case.samples.get(f"{case.control}{AGAIN}", {}).get(goal.metric) if case.control else None
        if again and goal.to is not None:
            control = interval(ratios(again, case.samples[case.control][goal.metric])).median
        medians = {
            name: interval(metrics[goal.metric]).median
            for name, metrics in case.samples.items()
            if goal.metric in metrics and not name.endswith(AGAIN)
        }
        found.append(
            {
                "case": case.name,
                "metric": goal.metric,
                "goal": goal.words(),
                "bound": goal.at_most if goal.at_most is not None else goal.at_least,
                "to": goal.to,
                "value": vars(value),
                "control": control,
                "rounds": len(ours),
                "medians": medians,
                "verdict": verdict(value, goal.at_most, goal.at_least, control),
                "note": case.note,
            }
        )
    return found
