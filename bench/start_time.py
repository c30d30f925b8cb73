#!/usr/bin/env python3
"""How long `octavo serve` takes until it is ready, and what memory it holds, with and without packed weights.

    bench/start_time.py --octavo build/release/src/cli/octavo MODEL [options of serve...]

Starts without a pack, with --no-cache, then five times with the pack; then two servers at once, each of which has
answered a request. Packs go to a temporary folder (--folder, by default beside the system's temporary files).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request


class Server:
    def __init__(self, octavo, model, *flags):
        begin = time.monotonic()
        self.process = subprocess.Popen([octavo, "serve", model, "--port", "0", *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url = next(m.group(1) for line in self.process.stdout if (m := re.search(r"is ready: (\S+)", line)))
        self.ready_s = time.monotonic() - begin

    def first_token_s(self):
        body = {"prompt": list(range(1, 9)), "max_tokens": 1, "temperature": 0}
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        begin = time.monotonic()
        urllib.request.urlopen(request, timeout=600).read()
        return time.monotonic() - begin

    def megabytes(self):
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            lines = dict(line.split(":") for line in file.read().splitlines()[1:])
        return {key: int(lines[key].split()[0]) / 1000 for key in ("Rss", "Pss", "Pss_Anon", "FilePmdMapped")}

    def stop(self):
        self.process.terminate()
        self.process.wait()
        return self


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octavo", required=True)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("model")
    options, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="octavo-packs-", dir=options.folder) as packs:
        os.environ["OCTAVO_CACHE"] = packs
        start = lambda *more: Server(options.octavo, options.model, *flags, *more)
        print(f"ready without a pack   {start().stop().ready_s:.2f} s")
        print(f"ready with --no-cache  {start('--no-cache').stop().ready_s:.2f} s")
        times = [start().stop().ready_s for _ in range(5)]
        print(f"ready with the pack    {statistics.median(times):.3f} s (worst of 5: {max(times):.3f} s)")
        first = start()
        print(f"first token            {first.ready_s + first.first_token_s():.3f} s after the process began")
        second = start()
        second.first_token_s()
        time.sleep(5)  # for the background check, which reads what no request has
        for server in (first, second):
            print("memory                 " + ", ".join(f"{k} {v:.0f} MB" for k, v in server.megabytes().items()))
        first.stop(), second.stop()


if __name__ == "__main__":
    main()
