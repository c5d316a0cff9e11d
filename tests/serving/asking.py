"""Requests to a service in this process."""

import asyncio

import httpx2

from sentloom.serving.app import build_app


def ask(service, *requests, host="localhost"):
    """The answers to requests (method, path, options) that are made at the same time."""

    async def run():
        transport = httpx2.ASGITransport(build_app(service), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await asyncio.gather(*(client.request(method, path, **given) for method, path, given in requests))

    return asyncio.run(run())


def post(service, path, body, **more):
    """The answer to one POST of JSON."""
    return ask(service, ("POST", path, {"json": body, **more}))[0]


def get(service, path, **more):
    """The answer to one GET."""
    return ask(service, ("GET", path, more))[0]
