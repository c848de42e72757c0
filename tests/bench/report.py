"""Results as JSON, as a table and as plots."""

import html
import json
import os
import pathlib
import platform
import subprocess

from row import UNITS, shown, shown_number


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
        return done.stdout.decode(errors="replace").strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "not there"


def machine():
    """What the figures were taken on."""
    cpu = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = pathlib.Path("/proc/meminfo").read_text().split()[1]
    return {
        "cpu": cpu[0].split(":", 1)[1].strip() if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory": f"{int(memory) / (1 << 20):.0f} GiB",
        "kernel": platform.release(),
        "docker": first_line("docker", "--version"),
        "nginx": first_line("nginx", "-v"),
        "haproxy": first_line("haproxy", "-v"),
        "openssh": first_line("ssh", "-V"),
    }


def load():
    """How busy the machine is: the load average and the share of time in which work waited for a core."""
    pressure = pathlib.Path("/proc/pressure/cpu")
    waited = pressure.read_text().split()[1].removeprefix("avg10=") if pressure.exists() else "unknown"
    return {"load": os.getloadavg()[0], "waiting for a core, %": waited}


def value_words(figure):
    value = figure["value"]
    if figure["to"] is None:
        words = [shown(value[part], figure["metric"]) for part in ("median", "low", "high")]
    else:
        words = [f"{value[part]:.2f}" for part in ("median", "low", "high")]
    return f"{words[0]} [{words[1]}–{words[2]}]"


def table(results):
    lines = [
        "| row | case | figure | goal | found, median [95 %] | control | medians | rounds | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in results["rows"]:
        if one.get("not_measured"):
            lines.append(f"| {one['row']} | | | | | | | | not measured: {one['not_measured']} |")
        for figure in one["figures"]:
            medians = ", ".join(
                f"{name} {shown(value, figure['metric'])}" for name, value in figure["medians"].items()
            )
            control = "–" if figure["control"] is None else f"{figure['control']:.2f}"
            cells = [one["row"], figure["case"], figure["metric"], figure["goal"], value_words(figure)]
            cells += [control, medians, str(figure["rounds"]), f"**{figure['verdict']}**"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(one):
    """Bars of one row: each figure's medians, target by target, on a scale of its own."""
    width, left, line = 760, 230, 18
    parts, y = [], 30
    for figure in one["figures"]:
        top = max(figure["medians"].values()) or 1
        parts.append(
            f'<text x="8" y="{y}" class="head">{html.escape(figure["case"])}: {figure["metric"]}, '
            f'goal {html.escape(figure["goal"])}: {value_words(figure)}, {figure["verdict"]}</text>'
        )
        for name, value in figure["medians"].items():
            y += line
            long = max(1, value / top * (width - left - 110))
            parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>')
            parts.append(
                f'<rect x="{left}" y="{y - 8}" width="{long:.1f}" height="13" class="{"ours" if name == "berth" else "peer"}"/>'
            )
            parts.append(f'<text x="{left + long + 6:.1f}" y="{y + 4}">{shown(value, figure["metric"])}</text>')
        y += 2 * line
    style = (
        "text{font:12px sans-serif;fill:#222}.head{font-weight:bold}.ours{fill:#1769aa}.peer{fill:#9aa5b1}"
        "svg{background:#fff}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" role="img">'
        f"<title>{html.escape(one['row'])}</title><style>{style}</style>{''.join(parts)}</svg>\n"
    )


def write(folder, results):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "table.md").write_text(table(results) + "\n")
    for one in results["rows"]:
        if one["figures"]:
            (folder / f"{one['row']}.svg").write_text(plot(one))
    return folder


def dated(results):
    """The table with the day and the machine, as a part of RESULTS.md."""
    words = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    before, after = results["load"]["before"], results["load"]["after"]
    busy = f"load {before['load']:.1f} before, {after['load']:.1f} after"
    return f"### {results['begun']}, {results['profile']}\n\n{words}; {busy}; commit {results['commit']}.\n\n{table(results)}\n"
