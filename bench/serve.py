#!/usr/bin/env python3
"""The server's speed: translations over HTTP against the same lines in one `regard translate`, and how long one waits.

    bench/serve.py PROGRAM LINES [-m MODEL] [--clients 16] [--repeat 3] [--seconds 10] [-- SERVE FLAGS…]

Each round: the program translates the file as a whole; then 16 clients, who ask one line after another, have the server
translate the same lines. Then lines arrive at random at half of that rate, and the time from when each was due until its
answer is there is told. The client is one thread of this program and takes a share of the machine.
"""
import argparse
import json
import random
import selectors
import socket
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("lines")
parser.add_argument("-m", "--model")
parser.add_argument("--clients", type=int, default=16)
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--seconds", type=float, default=10)
given = sys.argv[1:]
cut = given.index("--") if "--" in given else len(given)
options, flags = parser.parse_args(given[:cut]), given[cut + 1:]
lines = [line.rstrip("\n") for line in open(options.lines, encoding="utf-8")]
lines = [line for line in lines if line.strip()]
model = ["-m", options.model] if options.model else []


def request(line, **more):
    body = json.dumps({"q": line, "target": "", **more}).encode()
    return b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.got = b""
        self.number = None  # of the line it waits for
        self.due = 0.0

    def ask(self, number, bytes_, due):
        self.number, self.due = number, due
        self.socket.sendall(bytes_)

    def answer(self):
        """The body, or None if it is not all there."""
        self.got += self.socket.recv(1 << 16)
        head = self.got.find(b"\r\n\r\n")
        if head < 0:
            return None
        place = self.got.find(b"Content-Length: ")
        length = int(self.got[place + 16:self.got.find(b"\r\n", place)])
        if len(self.got) < head + 4 + length:
            return None
        assert self.got.startswith(b"HTTP/1.1 200"), self.got
        body, self.got = self.got[head + 4:head + 4 + length], self.got[head + 4 + length:]
        return body


def run(port, asked, due_at):
    """Sends request i when it is due (None: when a client is free); gives answers, waiting times and the whole time."""
    chooser = selectors.DefaultSelector()
    free = [Connection(port) for _ in range(options.clients if due_at is None else 256)]
    for each in free:
        chooser.register(each.socket, selectors.EVENT_READ, each)
    answers, waited = [None] * len(asked), []
    begin, at, done = time.perf_counter(), 0, 0
    while done < len(asked):
        now = time.perf_counter() - begin
        while at < len(asked) and free and (due_at is None or due_at[at] <= now):
            free.pop().ask(at, asked[at], now if due_at is None else due_at[at])
            at += 1
        wait = None if due_at is None or at == len(asked) or not free else max(0.0, due_at[at] - (time.perf_counter() - begin))
        for key, _ in chooser.select(wait):
            body = key.data.answer()
            if body is None:
                continue
            answers[key.data.number] = body
            waited.append(time.perf_counter() - begin - key.data.due)
            free.append(key.data)
            done += 1
    whole = time.perf_counter() - begin
    for each in chooser.get_map().values():
        each.data.socket.close()
    return answers, waited, whole


server = subprocess.Popen([options.program, "serve", "--port", "0", *model, *flags], stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline().rsplit(":", 1)[1])
try:
    asked = [request(line) for line in lines]
    weighted = [request(line, attention={"layer": 0, "head": 0}) for line in lines]
    run(port, asked[:64], None)
    batch, http, maps = [], [], []
    for _ in range(options.repeat):
        begin = time.perf_counter()
        made = subprocess.run([options.program, "translate", *model], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, check=True).stdout.split("\n")[:-1]
        batch.append(time.perf_counter() - begin)
        answers, _, whole = run(port, asked, None)
        http.append(whole)
        same = sum(json.loads(a)["translatedText"] == b for a, b in zip(answers, made))
        maps.append(run(port, weighted, None)[2])
    count = len(lines)
    print(f"batch           {count / min(batch):8.1f} lines/s  (median {count / statistics.median(batch):.1f}), same text {same} of {count}")
    print(f"{options.clients} clients      {count / min(http):8.1f} lines/s  (median {count / statistics.median(http):.1f}), "
          f"ratio {min(batch) / min(http):.2f} (median {statistics.median(batch) / statistics.median(http):.2f}), goal 0.8")
    print(f"with weights    {count / min(maps):8.1f} lines/s, cost {100 * (min(maps) / min(http) - 1):.1f} %, goal 5")
    rate = count / statistics.median(http) / 2
    drawn, now, due = random.Random(1), 0.0, []
    while now < options.seconds:
        now += drawn.expovariate(rate)
        due.append(now)
    _, waited, _ = run(port, [asked[i % count] for i in range(len(due))], due)
    waited.sort()
    print(f"half load       {rate:8.1f} lines/s: median {1e3 * waited[len(waited) // 2]:.1f} ms, "
          f"p99 {1e3 * waited[int(len(waited) * 0.99)]:.1f} ms, most {1e3 * waited[-1]:.1f} ms, goal p99 30")
finally:
    server.terminate()
    status = server.wait(60)
sys.exit(status)
