#!/usr/bin/env python3
"""LibreTranslate's own client against our server: libretranslate.py PROGRAM MODEL. Needs the package libretranslatepy."""
import signal
import subprocess
import sys

from libretranslatepy import LibreTranslateAPI

server = subprocess.Popen([sys.argv[1], "serve", "-m", sys.argv[2], "--port", "0", "--api-key", "open sesame"],
                          stdout=subprocess.PIPE, text=True)
address = server.stdout.readline().rsplit(" ", 1)[1].strip()
client = LibreTranslateAPI(address, api_key="open sesame")
sentence = "他们在看。"
line = subprocess.run([sys.argv[1], "translate", "-m", sys.argv[2], sentence], capture_output=True, text=True, check=True)
translated = client.translate(sentence, "zh", "en")
assert translated == line.stdout.rstrip("\n"), (translated, line.stdout)
assert client.detect(sentence)[0]["language"] == "zh"
assert {"code": "zh", "name": "Chinese", "targets": ["en"]} in client.languages()
server.send_signal(signal.SIGTERM)
assert server.wait(60) == 0
print("translate, detect, languages")
