#!/usr/bin/env python3
"""The server under mixed traffic, good and hostile, for a long time: script/nightly soak.

    serve_soak.py PROGRAM MODEL SECONDS

Good clients translate sentences whose answers they know; others send what they should not and leave half-way. Every few
seconds memory, open files and the slowest answers are looked at. After the first sixth nothing may grow any more: memory
by less than 1 MB an hour beyond what the noise of the samples explains, files not at all. The last line has the figures.
"""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

PROGRAM, MODEL, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
SENTENCES = ["他们在看。", "医生昨天在图书馆看了三本书。", "你们喜欢茶吗？", "我不知道。", "老师明天会来。"]
HOSTILE = [
    b"GET / HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
    b"POST /translate HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n\xff\xff\xff\xff\xff",
    b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nContent-Le",
    bytes(range(256)) * 8,
]

server = subprocess.Popen([PROGRAM, "serve", "-m", MODEL, "--port", "0", "--read-seconds", "2", "--queue", "8"],
                          stdout=subprocess.PIPE, text=True)
port = int(server.stdout.readline().rsplit(":", 1)[1])
stop = threading.Event()
lock = threading.Lock()
counts = {"good": 0, "refused": 0, "wrong": 0, "hostile": 0, "left": 0}
times = []
expected = {}


def count(what):
    with lock:
        counts[what] += 1


def translate(connection, sentence):
    connection.request("POST", "/translate", json.dumps({"q": sentence}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def good():
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while not stop.is_set():
        sentence = random.choice(SENTENCES)
        begin = time.monotonic()
        status, body = translate(connection, sentence)
        if status == 200:
            count("good" if json.loads(body)["translatedText"] == expected[sentence] else "wrong")
            with lock:
                times.append((begin, time.monotonic() - begin))
        else:
            count("refused" if status == 503 else "wrong")
        time.sleep(random.random() * 0.02)


def hostile():
    while not stop.is_set():
        with socket.create_connection(("127.0.0.1", port)) as client:
            try:
                client.sendall(random.choice(HOSTILE))
                if random.random() < 0.5:
                    client.settimeout(3)
                    client.recv(4096)
            except OSError:
                pass
        count("hostile")
        time.sleep(random.random() * 0.05)


def leaving():
    while not stop.is_set():
        body = json.dumps({"q": SENTENCES * 20}).encode()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(body), body))
            time.sleep(random.random() * 0.02)
        count("left")
        time.sleep(random.random() * 0.1)


def memory():
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def slope(points):  # of a line of least squares, and its standard error
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in points)
    return rise, (rest / max(1, n - 2) / spread) ** 0.5


first = http.client.HTTPConnection("127.0.0.1", port)
for each in SENTENCES:
    expected[each] = json.loads(translate(first, each)[1])["translatedText"]
first.close()
threads = [threading.Thread(target=work, daemon=True) for work in [good] * 4 + [hostile] * 3 + [leaving] * 1]
for thread in threads:
    thread.start()
begin = time.monotonic()
samples = []
while time.monotonic() - begin < SECONDS and server.poll() is None:
    time.sleep(min(5, SECONDS / 30))
    samples.append((time.monotonic() - begin, memory()))
stop.set()
for thread in threads:
    thread.join(10)
time.sleep(3)  # for half-open requests to end
files = len(os.listdir(f"/proc/{server.pid}/fd")) if server.poll() is None else -1
server.send_signal(signal.SIGTERM)
status = server.wait(60)

late = [each for each in samples if each[0] > SECONDS / 6]
rise, error = slope(late)
per_hour, noise = rise * 3600 / 1024, error * 3600 / 1024
ordered = sorted(seconds for _, seconds in times)
print(" ".join(f"{x:.0f}:{y}" for x, y in samples[:: max(1, len(samples) // 40)]))
flat = per_hour - 3 * noise < 1
fine = flat and status == 0 and counts["wrong"] == 0 and counts["good"] > 0 and 0 < files < 40
print(f"{SECONDS:.0f} s: {counts['good']} good, {counts['refused']} refused, {counts['wrong']} wrong, "
      f"{counts['hostile']} hostile, {counts['left']} left half-way; memory {samples[-1][1] / 1024:.1f} MB, "
      f"{per_hour:+.2f} ± {noise:.2f} MB an hour; {files} files at the end; "
      f"p50 {1000 * ordered[len(ordered) // 2]:.1f} ms, p99 {1000 * ordered[len(ordered) * 99 // 100]:.1f} ms; "
      f"status {status}")
sys.exit(0 if fine else 1)
