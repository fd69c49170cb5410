"""CPU of one model call on an endpoint that answers at once, in this process alone.

python perf/model_call.py
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from agentcompass.adapters.models.openai_chat import OpenAIChatModel
from agentcompass.core.model.task import Message

CALLS = 500

SERVER = r"""
import asyncio, json
message = {"role": "assistant", "content": "hello"}
choices = [{"index": 0, "finish_reason": "stop", "message": message}]
usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
body = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage}).encode()
reply = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
            writer.write(reply)
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def measure(port: int) -> None:
    model = OpenAIChatModel("m", f"http://127.0.0.1:{port}/v1", "sk-0123456789abcdef")
    messages = [Message("user", "hi")]
    for concurrency in (1, 16):
        gate = asyncio.Semaphore(concurrency)

        async def call(gate=gate):
            async with gate:
                await model.complete(messages, {"temperature": 0})

        await asyncio.gather(*(call() for _ in range(50)))
        start = time.process_time()
        await asyncio.gather(*(call() for _ in range(CALLS)))
        spent = (time.process_time() - start) / CALLS * 1e3
        print(f"concurrency {concurrency:>3}: {spent:.2f} ms CPU per call (limit 2)")
    await model.close()


def main() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        asyncio.run(measure(int(server.stdout.readline())))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
