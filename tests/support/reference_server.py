#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a model server: POST /v1/completions with prompt_logprobs and POST /tokenize, as
vLLM serves them, with values that a test can compute, and the ways in which such a server fails.

    reference_server.py [--port N] [--endpoint-file FILE] [--behave NAME[:COUNT] ...] [--die-after N]

It prints its URL as its first line. A behaviour holds for COUNT requests (without COUNT for all),
one after the other; then, and without any, it is honest. POST /control {"behave": ["NAME:COUNT"]}
puts others in their place; GET /control says what was asked: {"completions", "tokenize",
"tokens"}. Both are never misbehaved to. Behaviours:

    die             the process ends, code 9, without an answer
    stall           says nothing until the client goes
    stall_in_answer sends half of the answer, then nothing
    drip            sends the answer a byte at a time, 20 ms apart
    close           ends the connection before it says anything
    cut             ends the connection in the middle of the answer
    error           503; busy: 429; refuse: 404; redirect: 302
    short long      a position fewer or more than the prompt has
    null nan        in place of the last position, or of its logprob
    infinite logit  a logprob of -1e999, or above 0
    other_prompt    as if the prompt had other tokens
    other_id        the id of another of our requests
    twice trailing  a key twice; bytes after the end
    html            another content type
    huge            more bytes than any answer to that prompt can have
    head            a status line without an end
"""
import argparse
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MASK = (1 << 64) - 1


def logprobs(tokens):
    """None for the first token, then what stand_in_logprobs (stand_in_server.cpp) gives."""
    values, state = [], 0
    for token in tokens:
        state = (state * 6364136223846793005 + token + 1442695040888963407) & MASK
        values.append(-((state >> 33) % 8192) / 1024)
    return [None, *values[1:]]


def token_ids(text):
    return [byte + 3 for byte in text.encode()]


def answer_to(prompt, request_id, behaviour):
    """The body of an answer, honest but for what the behaviour changes in it."""
    shown = [token + 1 for token in prompt] if behaviour == "other_prompt" else prompt
    positions = ["null"] + [
        json.dumps({token: {"logprob": value, "rank": 1, "decoded_token": chr(97 + token % 26)}})
        for token, value in list(zip(shown, logprobs(prompt)))[1:]]
    last = shown[-1]
    if behaviour == "short":
        positions.pop()
    elif behaviour == "long":
        positions.append(positions[-1])
    elif behaviour == "null":
        positions[-1] = "null"
    elif behaviour in ("nan", "infinite", "logit"):
        value = {"nan": "NaN", "infinite": "-1e999", "logit": "12.5"}[behaviour]
        positions[-1] = f'{{"{last}": {{"logprob": {value}}}}}'
    elif behaviour == "twice":
        positions[-1] = f'{{"{last}": {{"logprob": -1}}, "{last}": {{"logprob": -2}}}}'
    if behaviour == "other_id":
        request_id += "9"
    text = (f'{{"id": "cmpl-{request_id}", "object": "text_completion", "choices": [{{"index": 0, '
            f'"text": "x", "finish_reason": "length", "prompt_logprobs": [{", ".join(positions)}]}}], '
            f'"usage": {{"prompt_tokens": {len(prompt)}}}}}')
    return text + ("{}" if behaviour == "trailing" else "")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port, die_after):
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.die_after = die_after
        self.plan = []  # [name, requests left or None]
        self.counts = {"completions": 0, "tokenize": 0, "tokens": 0}

    def behave(self, plan):
        with self.lock:
            self.plan = []
            for item in plan:
                name, _, count = item.partition(":")
                self.plan.append([name, int(count) if count else None])

    def next_behaviour(self, kind, tokens):
        with self.lock:
            self.counts[kind] += 1
            self.counts["tokens"] += tokens
            if self.die_after is not None:
                self.die_after -= 1
                if self.die_after < 0:
                    os._exit(9)
            while self.plan:
                name, left = self.plan[0]
                if left is None:
                    return name
                if left > 0:
                    self.plan[0][1] -= 1
                    return name
                self.plan.pop(0)
        return "honest"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, code=200, kind="application/json", extra=()):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in extra:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, length):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def wait_for_client_to_go(self):
        while self.connection.recv(1):
            pass

    def do_GET(self):
        with self.server.lock:
            self.send(json.dumps(self.server.counts).encode())

    def do_POST(self):
        try:
            self.post(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        except OSError:  # the client has gone
            self.close_connection = True

    def post(self, asked):
        if self.path == "/control":
            self.server.behave(asked["behave"])
            self.send(b"{}")
        elif self.path == "/tokenize":
            behaviour = self.server.next_behaviour("tokenize", 0)
            ids = token_ids(asked["prompt"])
            self.act(behaviour, json.dumps({"count": len(ids), "max_model_len": 1 << 20, "tokens": ids}))
        elif self.path == "/v1/completions" and asked.get("prompt_logprobs") is not None:
            prompt = asked["prompt"]
            behaviour = self.server.next_behaviour("completions", len(prompt))
            self.act(behaviour, answer_to(prompt, self.headers.get("X-Request-Id", "none"), behaviour))
        else:
            self.send(b'{"message": "this stand-in knows only prompt_logprobs"}', 404)

    def act(self, behaviour, text):
        body = text.encode()
        half = body[:len(body) // 2]
        statuses = {"error": 503, "busy": 429, "refuse": 404, "redirect": 302}
        self.close_connection = True
        if behaviour == "die":
            os._exit(9)
        elif behaviour == "stall":
            self.wait_for_client_to_go()
        elif behaviour == "stall_in_answer":
            self.begin(len(body))
            self.wfile.write(half)
            self.wait_for_client_to_go()
        elif behaviour == "drip":
            self.begin(len(body))
            for at in range(len(body)):
                self.wfile.write(body[at:at + 1])
                time.sleep(0.02)
        elif behaviour == "cut":
            self.begin(len(body))
            self.wfile.write(half)
        elif behaviour in statuses:
            self.send(b"said so", statuses[behaviour], "text/plain", [("Location", "/elsewhere")])
        elif behaviour == "html":
            self.send(b"<html>", kind="text/html")
        elif behaviour == "huge":
            self.begin(1 << 40)
            while True:
                self.wfile.write(b" " * 65536)
        elif behaviour == "head":
            while True:
                self.wfile.write(b"HTTP/1.1 200 " + b"a" * 65536)
        elif behaviour != "close":
            self.send(body)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--endpoint-file")
    parser.add_argument("--behave", nargs="*", default=[])
    parser.add_argument("--die-after", type=int)
    args = parser.parse_args()
    server = Server(args.port, args.die_after)
    server.behave(args.behave)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    print(url, flush=True)
    if args.endpoint_file:
        written = Path(args.endpoint_file + ".new")
        written.write_text(url + "\n")
        written.rename(args.endpoint_file)  # whoever waits for the file finds it whole
    server.serve_forever()


if __name__ == "__main__":
    main()
