# Puts JupyterLab into a virtual environment of its own, run by the image's Python:
# `python3 -c … TARGET`. Notebooks still see all that the image's Python has, and
# what is installed there later. Nothing of the image is changed.
#
# Exit codes: 71 this Python is too old, 72 there is no pip, else what failed.
# Must at least be readable to a very old Python, so that it can say so.
import os
import subprocess
import sys

OLDEST = (3, 8)

target = sys.argv[1]
python = os.path.join(target, "bin", "python")


def run(*argv):
    print("+ " + " ".join(argv))
    sys.stdout.flush()
    code = subprocess.call(argv)
    if code != 0:
        print("that ended with exit code %d" % code)
        sys.exit(70)


def works(*argv):
    with open(os.devnull, "w") as nothing:
        return subprocess.call(argv, stdout=nothing, stderr=nothing) == 0


def main():
    print("Python %d.%d at %s" % (sys.version_info[0], sys.version_info[1], sys.executable))
    if sys.version_info[:2] < OLDEST:
        sys.exit(71)
    try:
        import venv  # noqa: F401
    except ImportError:
        sys.exit(72)
    # Distributions keep the pip for new environments in a package apart; the one
    # of the system serves as well.
    run(sys.executable, "-m", "venv", "--clear", "--system-site-packages", "--without-pip", target)
    if not works(python, "-m", "pip", "--version") and not works(python, "-m", "ensurepip"):
        sys.exit(72)
    # What the system has may be too old or half there; all of it is brought along.
    run(python, "-m", "pip", "install", "--ignore-installed", "jupyterlab", "ipykernel")
    settings = os.path.join(target, "share", "jupyter", "lab", "settings")
    if not os.path.isdir(settings):
        os.makedirs(settings)
    with open(os.path.join(settings, "overrides.json"), "w") as file:
        file.write(
            '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}\n'
        )
    # Last: an installation that was interrupted is none.
    with open(os.path.join(target, ".complete"), "w"):
        pass


main()
