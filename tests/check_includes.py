#!/usr/bin/env python3
"""The include-direction test: which folder of src/ may include which. The table is the architecture, written once.

A folder may always include itself and the public value headers. An entry is a folder ("base") or one header
("model/spec.h"). docs/architecture.md explains the picture.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

VALUES = {"result", "ids", "model_info", "model_shape", "tokenizer", "chat_template", "config", "request"}
ENGINE_API = {"engine", "pack", "trace"}  # of a running engine: for the engine itself and the doors
CAPACITY_API = {"kv_bench", "planner", "workload", "simulate"}
PROBE_API = {"probe", "kernel_bench"}
PROFILE = "profile"  # what the probe measured, and the simulator tells time by

MAY_INCLUDE = {
    "base": set(),
    "tensor": {"base"},
    "kernels": {"tensor", "base"},
    "model": {"kernels", "tensor", "base", "kv/layout.h", "kv/kv_store.h"},
    "load": {"tensor", "base", "model/spec.h", "model/checkpoint.h", "model/arch_table.h", "text/vocab.h", "kv/layout.h"},
    "text": {"base"},
    "kv": {"base"},
    "sched": {"kv", "base"},
    "sample": {"kernels", "base"},
    "engine": {"capacity", "sample", "sched", "kv", "model", "load", "text", "kernels", "tensor", "base"},
    "capacity": {"sched", "kv", "model/spec.h", "model/activation_bytes.h", "base"},
    "probe": {"kernels", "tensor", "sample", "base", "kv/layout.h", "model/attention_tasks.h"},
    "server": {"base"},
    "cli": {"base", "server/server.h"},
}
SEES_ENGINE_API = {"engine", "server", "cli"}
SEES_CAPACITY_API = {"capacity", "engine", "cli"}
SEES_PROBE_API = {"probe", "cli"}

# Bytes of the cache (kv/kv_store*) are apart from its bookkeeping: the scheduler and the simulator never see them.
STORE = re.compile(r"kv/(kv_store|kv_host_store|kv_guard|codec|tier)\w*\.(h|cc)$")
STORE_MAY_INCLUDE = {"tensor", "base"}
NEVER_STORE = {"sched", "capacity"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def fault(file, header):
    """Why src/`file` may not include `header`; None if it may."""
    folder = file.split("/")[0]
    target = header.split("/")[0]
    if target == "octavo":
        name = header.removeprefix("octavo/").removesuffix(".h")
        if name in VALUES or (name in ENGINE_API and folder in SEES_ENGINE_API):
            return None
        if name in CAPACITY_API and folder in SEES_CAPACITY_API:
            return None
        if name in PROBE_API and folder in SEES_PROBE_API:
            return None
        if name == PROFILE and folder in SEES_PROBE_API | SEES_CAPACITY_API:
            return None
        return f"{folder} may not see {header}"
    if STORE.search(header) and folder in NEVER_STORE:
        return f"{folder} may not see the bytes of the cache ({header})"
    if STORE.search(header) and folder == "kv" and not STORE.search(file):
        return f"bookkeeping may not see the bytes of the cache ({header})"
    allowed = STORE_MAY_INCLUDE if STORE.search(file) else MAY_INCLUDE[folder]
    if target == folder or target in allowed or header in allowed:
        return None
    return f"{folder} may include {', '.join(sorted(allowed)) or 'nothing else'}, not {header}"


def check_tree(source):
    faults = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        file = path.relative_to(source).as_posix()
        if file.split("/")[0] not in MAY_INCLUDE:
            faults.append(f"src/{file}: a folder without a row in {pathlib.Path(__file__).name}")
            continue
        for header in INCLUDE.findall(path.read_text()):
            if why := fault(file, header):
                faults.append(f"src/{file}: {why}")
    return faults


def check_public(include):
    return [f"include/octavo/{path.name}: public headers may include only octavo/*.h, not {header}"
            for path in sorted(include.glob("*.h"))
            for header in INCLUDE.findall(path.read_text()) if not header.startswith("octavo/")]


def check_itself():
    """The test can fail: includes that must be refused are."""
    forbidden = [("sched/scheduler.cc", "model/forward.h"), ("sched/scheduler.cc", "kv/kv_store.h"),
                 ("kernels/ref/gemm.cc", "model/spec.h"), ("kernels/ref/gemm.cc", "kv/kv_manager.h"),
                 ("kv/kv_manager.cc", "kv/kv_store.h"), ("capacity/simulator.cc", "kernels/kernels.h"),
                 ("engine/engine.cc", "server/server.h"), ("server/http.cc", "engine/executor.h"),
                 ("text/bpe.cc", "octavo/engine.h"), ("cli/chat.cc", "server/openai.h"),
                 ("cli/bench_kv.cc", "capacity/kv_waste.h"), ("sched/scheduler.cc", "octavo/kv_bench.h"),
                 ("cli/bench_kernels.cc", "kernels/kernels.h"), ("engine/engine.cc", "octavo/probe.h")]
    return [f"check_includes would let src/{file} include {header}" for file, header in forbidden
            if fault(file, header) is None]


def main():
    faults = check_itself() + check_tree(ROOT / "src") + check_public(ROOT / "include" / "octavo")
    for line in faults:
        print(line)
    print(f"includes: {len(faults)} against the table")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
