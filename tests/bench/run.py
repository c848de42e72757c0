#!/usr/bin/env python3
"""`make bench`: measures Berth side by side with the best, row by row. See README.md here.

    run.py [--row NAME]... [--rounds N] [--full] [--out FOLDER]
"""

import argparse
import contextlib
import datetime
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import report  # noqa: E402
import rows  # noqa: E402, F401
from berth import Berth  # noqa: E402
from row import ROWS, NotMeasured, figures, measure  # noqa: E402


# Longer words for the same.
ALIASES = {"ssh-download": "ssh-down", "ssh-upload": "ssh-up"}


class Lab:
    """What all rows share."""

    def __init__(self, stack, full, rounds):
        self.full, self._rounds, self._stack, self._berth = full, rounds, stack, None

    def rounds(self, few=False):
        """How often each case is measured; `few` for what takes seconds each time."""
        if self._rounds:
            return self._rounds
        return (9 if few else 21) if self.full else (3 if few else 5)

    def berth(self):
        if self._berth is None:
            self._berth = Berth()
            self._stack.callback(self._berth.stop)
        return self._berth


def run_row(lab, name):
    what, cases = ROWS[name]
    begun = time.monotonic()
    print(f"== {name}: {what}", file=sys.stderr)
    found = {"row": name, "what": what, "figures": [], "samples": {}}
    try:
        for case in cases(lab):
            measure(case, lab.rounds())
            found["figures"] += figures(case)
            found["samples"][case.name] = case.samples
    except NotMeasured as why:
        found["not_measured"] = str(why)
    except Exception as error:  # one row that fails leaves the others their figures
        traceback.print_exc()
        found["not_measured"] = f"it failed: {error}".replace("\n", " ")[:300]
    found["seconds"] = round(time.monotonic() - begun, 1)
    return found


def main():
    # Whoever ends it by a signal finds nothing left behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", action="append", type=lambda name: ALIASES.get(name, name), choices=list(ROWS), metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--rounds", type=int, help="how often each case is measured")
    parser.add_argument("--full", action="store_true", help="more rounds, larger data, longer runs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where results.json, the table and plots go")
    parser.add_argument("--record", action="store_true", help="add the table to RESULTS.md")
    chosen = parser.parse_args()
    results = {
        "begun": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "profile": "full" if chosen.full else "quick",
        "machine": report.machine(),
        "commit": report.first_line("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
        "load": {"before": report.load()},
        "rows": [],
    }
    with contextlib.ExitStack() as stack:
        lab = Lab(stack, chosen.full, chosen.rounds)
        for name in chosen.row or ROWS:
            results["rows"].append(run_row(lab, name))
            results["load"]["after"] = report.load()
            report.write(chosen.out, results)
    print(report.table(results))
    print(f"\n{chosen.out}/results.json, table.md and a plot for each row", file=sys.stderr)
    if chosen.record:
        path = HERE / "RESULTS.md"
        path.write_text(path.read_text().rstrip() + "\n\n" + report.dated(results))
    return 1 if any(one.get("not_measured", "").startswith("it failed") for one in results["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
