"""Lets `regard bench NAME` and its peers take turns on the same inputs, the same cores and in the same minute.

Lines taken while other programs were running are repeated, and marked if that did not help.

Per case and peer: both compute the same inputs and their outputs are compared; then at least seven rounds of a few
milliseconds each, ours, peer, limit of the machine, while whoever is not timed is stopped (SIGSTOP). The ratio is the
peer's time over ours: above 1 we are faster. Run by script/bench.
"""

import argparse
import ctypes
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
TURN = 5e-3  # seconds of timed calls in a turn
GROUP = 2e-5  # shorter calls are timed in groups
QUIET = 0.10  # the share of the cores' time beyond which other programs disturb


class Side:
    """A program that takes turns. It runs only between `go` and `halt`."""

    def __init__(self, name, command, cores, threads, keeps_memory=True):
        self.name = name
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        if keeps_memory:
            # Results as large as the caches would otherwise be mapped and unmapped anew by every call of a peer.
            environment |= {
                "MALLOC_MMAP_MAX_": "0",
                "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                "MALLOC_TOP_PAD_": str(1 << 28),
            }

        def before():
            os.sched_setaffinity(0, cores)
            os.setsid()  # Ctrl-C is for the coordinator; and the kernel shares out time by session
            try:  # other programs wait, where we may ask for it
                os.setpriority(os.PRIO_PROCESS, 0, -15)
                with open("/proc/self/autogroup", "w") as file:
                    file.write("-15")
            except OSError:
                pass
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: never outlive the coordinator

        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=before
        )
        self.running = True
        self.halt()

    def go(self):
        if not self.running:
            self.process.send_signal(signal.SIGCONT)
            self.running = True

    def halt(self):
        if self.running:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            self.running = False

    def ask(self, *words):
        """The lines of the answer. The side runs while it answers, and only then."""
        self.go()
        try:
            self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
            self.process.stdin.flush()
            lines = []
            for line in self.process.stdout:
                line = line.rstrip("\n")
                if line == "ok":
                    return lines
                if line.startswith("error "):
                    raise SystemExit(f"{self.name}: {words[0]}: {line[6:]}")
                lines.append(line)
        except BrokenPipeError:
            pass
        finally:
            if self.process.poll() is None:
                self.halt()
        raise SystemExit(f"{self.name} ended during: {' '.join(str(word) for word in words)[:200]}")

    def seconds(self, case, samples, calls):
        return [float(word) for word in self.ask("run", case, samples, calls)[0].split()]

    def turn(self, case):
        """How many samples of how many calls fill a turn."""
        one = max(min(self.seconds(case, 3, 1)), 1e-8)
        calls = max(1, min(10000, int(GROUP / one)))
        return max(1, min(50, int(TURN / (one * calls)))), calls

    def end(self):
        self.process.kill()
        self.process.wait()


def compare(case, ours, theirs):
    """The largest difference, in units of what is allowed."""
    if ours.shape != theirs.shape:
        raise SystemExit(f"{case['case']}: {ours.size} results of ours, {theirs.size} of the peer")
    if case["compare"] == "dropout":  # other zeros; but as many, and what is left is the same
        rates = [float(numpy.mean(each == 0)) for each in (ours, theirs)]
        spread = 5 * math.sqrt(0.1 * 0.9 / ours.size)
        if max(abs(rate - 0.1) for rate in rates) > spread + 1e-3:
            return math.inf
        kept = (ours != 0) & (theirs != 0)
        ours, theirs = ours[kept], theirs[kept]
    if not (numpy.isfinite(ours).all() and numpy.isfinite(theirs).all()):
        return math.inf
    if case["compare"] == "words":  # rounding may decide between words that are as likely: nine sentences of ten agree
        rows = ours.reshape(case["batch"], -1), theirs.reshape(case["batch"], -1)
        return float(numpy.mean(numpy.any(rows[0] != rows[1], axis=1))) / 0.1
    if case["compare"] == "sizes":  # which are equal if we came here
        return 0.0
    if case["compare"] == "random":  # each drew for itself: the sizes of the results have to agree, within 2 %
        return abs(math.log(numpy.linalg.norm(ours) / numpy.linalg.norm(theirs))) / 0.02
    return float(numpy.max(numpy.abs(ours - theirs), initial=0)) / case["tolerance"]


def busy():
    """Seconds that the cores have spent on anything since the machine started, what a hypervisor took away included."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def spent(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_quietly(case, regard, peer, limit, rounds):
    """Measures again, up to twice, when other programs were running; keeps the least disturbed."""
    best = None
    for _ in range(3):
        programs = [os.getpid(), regard.process.pid] + ([peer.process.pid] if peer else [])
        before, own, start = busy(), sum(map(spent, programs)), time.monotonic()
        result = measure(case, regard, peer, limit, rounds)
        others = busy() - before - (sum(map(spent, programs)) - own)
        result["disturbed"] = max(0, others) / ((time.monotonic() - start) * os.cpu_count())
        if best is None or result["disturbed"] < best["disturbed"]:
            best = result
        if best["disturbed"] <= QUIET:
            break
    return best


def measure(case, regard, peer, limit, rounds):
    name = case["case"]
    sides = [(regard, name, regard.turn(name))]
    if peer:
        sides.append((peer, name, peer.turn(name)))
    if limit:
        sides.append((regard, limit["case"], regard.turn(limit["case"])))
    times = [[] for _ in sides]
    for _ in range(rounds):
        for kept, (side, what, turn) in zip(times, sides):
            kept.append(side.seconds(what, *turn))

    def least(which):
        return min(min(turn) for turn in times[which])

    def median(which):
        return statistics.median(each for turn in times[which] for each in turn)

    work = case["flops"] or case["bytes"]
    result = {
        "case": name,
        "peer": None,
        "ours_min": least(0),
        "ours_median": median(0),
        "rate": work / least(0) * 1e-9,
        "unit": "GFLOP/s" if case["flops"] else "GB/s",
    }
    if peer:
        result |= {
            "peer": peer.name,
            "peer_min": least(1),
            "peer_median": median(1),
            "ratio_min": least(1) / least(0),
            "ratio_median": median(1) / median(0),
            "ratio_worst": min(min(theirs) / min(ours) for ours, theirs in zip(times[0], times[1])),
        }
    if limit:
        best = (limit["flops"] or limit["bytes"]) / least(len(sides) - 1) * 1e-9
        result |= {"limit": best, "share": result["rate"] / best}
    return result


def extra_memory(case, name, command, cores, threads, folder, way):
    """Bytes that the first two calls take at their peak, in a process of its own with the memory of a plain program."""
    side = Side(name, command, cores, threads, keeps_memory=False)
    try:
        if name == "regard":
            side.ask("prepare", case["case"], folder)
        else:
            side.ask("case", json.dumps(case))
        return float(side.ask("memory", case["case"], folder, way)[0])
    finally:
        side.end()


def span(seconds):
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:7.2f} {unit}"
    return f"{seconds:7.2f} s "


HEADER = (
    f"{'case':<32} {'peer':<15} {'ours min':>10} {'median':>10} {'peer min':>10} {'median':>10} "
    f"{'ratio':>6} {'median':>6} {'worst':>6} {'rate':>14} {'of limit':>8}"
)


def line(result):
    peer = result["peer"] or "-"
    if result.get("way"):
        peer += " " + result["way"]
    text = f"{result['case']:<32} {peer:<15} {span(result['ours_min'])} {span(result['ours_median'])} "
    if result["peer"]:
        text += f"{span(result['peer_min'])} {span(result['peer_median'])} "
        text += f"{result['ratio_min']:6.2f} {result['ratio_median']:6.2f} {result['ratio_worst']:6.2f} "
    else:
        text += " " * 43
    text += f"{result['rate']:7.1f} {result['unit']:<7}"
    text += f" {result['share']:7.2f}" if "share" in result else " " * 8
    if "memory" in result:
        text += f"  memory {result['memory'] / 2**20:.0f} MB, peer {result['peer_memory'] / 2**20:.0f} MB"
    return text + (f"  disturbed {result['disturbed']:.0%}" if result["disturbed"] > QUIET else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--program", required=True, help="the regard to measure")
    parser.add_argument("--onednn", help="the program onednn_peer")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--peer", default="", help="only this peer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=11, help="rounds, at least 7")
    parser.add_argument("--eager", action="store_true", help="torch without torch.compile: quicker to start")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rounds = max(7, arguments.repeat)
    allowed = sorted(os.sched_getaffinity(0))
    threads = min(arguments.threads, len(allowed))
    cores = set(allowed[:threads])
    commands = {
        "onednn": [arguments.onednn],
        "torch": [sys.executable, os.path.join(HERE, "peers", "torch_peer.py"), "--threads", str(threads)]
        + ["--eager"] * arguments.eager,
        "ctranslate2": [sys.executable, os.path.join(HERE, "peers", "ctranslate2_peer.py"), "--threads", str(threads)],
    }
    sides, results = {}, []

    def side(name, command):
        if name not in sides:
            sides[name] = Side(name, command, cores, threads)
        return sides[name]

    try:
        commands["regard"] = [arguments.program, "bench", arguments.name, "--turns", "--threads", str(threads),
                              *(["--case", arguments.case] if arguments.case else [])]
        regard = side("regard", commands["regard"])
        machine = json.loads(regard.ask("machine")[0])
        cases = [json.loads(each) for each in regard.ask("cases")]
        if not cases:
            raise SystemExit(f"no case of {arguments.name} has '{arguments.case}' in its name")
        limits = {}
        if not arguments.json:
            print(f"# {machine['cpu']}, {machine['target']}, {threads} threads on cores {sorted(cores)}, "
                  f"regard {machine['version']} {machine['commit']}, {rounds} rounds")
            print(HEADER)
        with tempfile.TemporaryDirectory() as folder:
            for case in cases:
                name = case["case"]
                if case["limit"] and case["limit"] not in limits:
                    limits[case["limit"]] = json.loads(regard.ask("describe", case["limit"])[0])
                limit = limits.get(case["limit"])
                peers = [each for each in case["peers"] if arguments.peer in ("", each)]
                if case["peers"] and not peers:
                    continue
                regard.ask("prepare", name, folder)
                gap = float(regard.ask("check", name)[0])
                ours = None
                for peer_name in peers or [None]:
                    peer, way, difference = None, "", 0.0
                    if peer_name:
                        peer = side(peer_name, commands[peer_name])
                        peer.ask("case", json.dumps(case))
                        way = " ".join(peer.ask("prepare", name, folder))
                        mine, theirs = os.path.join(folder, "ours.out"), os.path.join(folder, "theirs.out")
                        peer.seconds(name, 1, 1)
                        peer.ask("output", name, theirs)
                        if ours is None:
                            regard.ask("output", name, mine)
                            ours = numpy.fromfile(mine, dtype="<f4")
                        difference = compare(case, ours, numpy.fromfile(theirs, dtype="<f4"))
                        if not difference <= 1:
                            raise SystemExit(f"{name}: ours and {peer_name}'s results differ by {difference} times "
                                             "the tolerance")
                    result = measure_quietly(case, regard, peer, limit, rounds)
                    result |= {"way": way, "gap": gap, "difference": difference}
                    if case["memory"] and peer:
                        result |= {each: extra_memory(case, of, commands[of], cores, threads, folder, way)
                                   for each, of in (("memory", "regard"), ("peer_memory", peer_name))}
                    results.append(result)
                    print(json.dumps(result | {"machine": machine}) if arguments.json else line(result), flush=True)
    finally:
        for each in sides.values():
            each.end()
    noisy = sum(each["disturbed"] > QUIET for each in results)
    if noisy and not arguments.json:
        print(f"{noisy} of {len(results)} lines were taken while other programs ran: they say little")
    compared = [each for each in results if each["peer"]]
    if compared:
        lowest = min(compared, key=lambda each: each["ratio_min"])
        mean = math.exp(statistics.fmean(math.log(each["ratio_min"]) for each in compared))
        below = sum(each["ratio_min"] < 1 for each in compared)
        if arguments.json:
            print(json.dumps({"cases": len(compared), "lowest": lowest["ratio_min"], "lowest_case": lowest["case"],
                              "lowest_peer": lowest["peer"], "mean": mean, "below_one": below}))
        else:
            print(f"lowest ratio {lowest['ratio_min']:.2f} ({lowest['case']}, {lowest['peer']}), geometric mean "
                  f"{mean:.2f}, {below} of {len(compared)} below 1")


if __name__ == "__main__":
    main()
