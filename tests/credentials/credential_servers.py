"""Real servers for tokens and secrets, in the loop of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


@asynccontextmanager
async def serve_application(application: web.Application) -> AsyncIterator[str]:
    """The address of a server that ends with the context."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


class Tokens:
    """Gives tokens to the client `ada` with the secret `s3cr3t&x`; each answer may be told beforehand."""

    def __init__(self, *, expires_in: Any = 100) -> None:
        self.expires_in = expires_in
        self.asked: list[dict[str, str]] = []
        self.answers: list[web.Response] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def give(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        form["authorization"] = request.headers.get("Authorization", "")
        self.asked.append(form)
        await self.gate.wait()
        if self.answers:
            return self.answers.pop(0)
        answer: dict[str, Any] = {"access_token": f"token-number-{len(self.asked)}", "token_type": "Bearer"}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        return web.json_response(answer)

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/token", self.give)
        return application


class VaultServer:
    """The part of Vault that keeps secrets in versions, for the token `root`."""

    def __init__(self) -> None:
        self.secrets: dict[str, list[dict[str, Any]]] = {}
        self.sealed = False
        self.asked = 0

    async def read(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.sealed:
            return web.json_response({"errors": ["Vault is sealed"]}, status=503)
        if request.headers.get("X-Vault-Token") != "root":
            return web.json_response({"errors": ["permission denied"]}, status=403)
        versions = self.secrets.get(f"{request.match_info['mount']}/{request.match_info['path']}", [])
        number = int(request.query.get("version", "0")) or len(versions)
        if not 1 <= number <= len(versions):
            return web.json_response({"errors": []}, status=404)
        return web.json_response({"data": {"data": versions[number - 1], "metadata": {"version": number}}})

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/v1/{mount}/data/{path:.+}", self.read)
        return application
