"""A server that speaks /v1/chat/completions and writes with a model of sentloom, one text at a time, greedily.

It stands in for a real endpoint: the same model with the same prompts has to write the same texts through it.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import TransformersWriter
from sentloom.writing.writer import SourceText


class Handler(BaseHTTPRequestHandler):
    """Answers one request after another: a model is not shared by threads."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.turn:
            answer = json.dumps(self.server.answer(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        """Be quiet."""


def answering(model, kind, prompts):
    """A function from a request to its answer. The shots of a request tell which of the prompts it has."""

    def answer(asked):
        *shown, last = asked["messages"]
        prompt = next(one for one in prompts if one.messages("")[:-1] == shown)
        writer = TransformersWriter(model, Sampling(greedy=True, length=asked["max_tokens"]))
        (one,) = writer.write([SourceText(0, last["content"])], kind, prompt)
        choice = {
            "message": {"role": "assistant", "content": one.text},
            "finish_reason": "stop" if one.finished else "length",
        }
        return {
            "choices": [choice],
            "usage": {"prompt_tokens": one.tokens_read, "completion_tokens": one.tokens_written},
        }

    return answer


@contextmanager
def served(model, kind, prompts):
    """The address of a server, as long as the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.turn, server.answer = True, threading.Lock(), answering(model, kind, prompts)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
