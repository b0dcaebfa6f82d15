"""What every request passes: who asks, from where, and how much; and what every answer carries."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Awaitable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterpath.explorer.limits import Limits
from counterpath.explorer.problems import MEDIA_TYPE, ProblemError

COOKIE = "counterpath-token"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
# The plotting script writes styles of its own into the page, and pictures are made from data.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
log = logging.getLogger("counterpath.explorer")


class Guard:
    """Around the application.

    Attributes:
        app: Within.
        limits: Of a body, and of the time until it is there.
        token: Without which nothing is answered; None where anybody on this machine may ask.
        local_only: Whether only names of this machine are answered, so that no page elsewhere can pretend to be it.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, token: str | None, local_only: bool):
        self.app = app
        self.limits = limits
        self.token = token
        self.local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks another protocol
        answer = _WithHeaders(send)
        try:
            self._check_host(scope)
            if self._brings_token(scope):
                await self._remember()(scope, receive, answer)
                return
            self._check_token(scope)
            body = await self._body(scope, receive)
            _check_kind(scope, body)
            await _unless_gone(self.app(scope, _replay(body), answer), receive)
        except ProblemError as error:
            await _as_response(error)(scope, receive, answer)
        except Exception as error:
            # Its message may hold a patient's values, so only its kind is written down.
            log.error("%s while answering %s", type(error).__name__, scope["path"])
            if not answer.started:
                problem = ProblemError(500, "Our fault", "Something went wrong here. It was written down.")
                await _as_response(problem)(scope, receive, answer)

    def _check_host(self, scope: Scope) -> None:
        host = Headers(scope=scope).get("host", "")
        if self.local_only and host.rsplit(":", 1)[0] not in LOCAL_NAMES and host not in LOCAL_NAMES:
            raise ProblemError(400, "Wrong address", "This server answers on this machine only.")

    def _brings_token(self, scope: Scope) -> bool:
        """A link with the token in it, which opens the page once and is then out of sight."""
        if self.token is None or scope["path"] != "/" or scope["method"] != "GET":
            return False
        brought = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        return brought is not None and self._is_right(_fingerprint(brought[0].encode()))

    def _remember(self) -> Response:
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(COOKIE, _fingerprint((self.token or "").encode()), httponly=True, samesite="strict")
        return response

    def _check_token(self, scope: Scope) -> None:
        if self.token is None:
            return
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "")
        # A header's text is its bytes, one by one.
        brought = [_fingerprint(bearer[7:].encode("latin-1"))] if bearer.startswith("Bearer ") else []
        brought += [morsel.value for name, morsel in _cookies(headers.get("cookie", "")).items() if name == COOKIE]
        if not any([self._is_right(one) for one in brought]):  # noqa: C419 (each is looked at, whichever is right)
            raise ProblemError(401, "Who asks?", "Open the link with the token, or send `Authorization: Bearer …`.")

    def _is_right(self, brought: str) -> bool:
        return hmac.compare_digest(brought.encode("latin-1"), _fingerprint((self.token or "").encode()).encode())

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it, if it is not too long and there in time."""
        most = self.limits.body_bytes
        too_long = ProblemError(413, "Too much", f"A request may have {most:,} bytes.")
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > most:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.read_seconds):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_long
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise ProblemError(408, "Too slow", "The request did not arrive in time.") from None


def _fingerprint(token: bytes) -> str:
    """What a browser keeps instead of the token; it fits into a cookie, whatever the token is."""
    return hashlib.sha256(token).hexdigest()


def _check_kind(scope: Scope, body: bytes) -> None:
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise ProblemError(415, "Not JSON", "Send JSON, with `Content-Type: application/json`.")


def _replay(body: bytes) -> Receive:
    """What has arrived, as if it came now; after it nothing comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    return again


async def _unless_gone(answering: Awaitable[None], receive: Receive) -> None:
    """An answer that nobody waits for any more is not worked on."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = asyncio.ensure_future(answering), asyncio.ensure_future(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()


def _cookies(text: str) -> SimpleCookie:
    found = SimpleCookie()
    try:
        found.load(text)
    except Exception:  # whatever a stranger sends is no cookie of ours
        return SimpleCookie()
    return found


def _as_response(error: ProblemError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.details.status == 401 else None
    return Response(error.details.model_dump_json(), error.details.status, headers, MEDIA_TYPE)


class _WithHeaders:
    """An answer, with what every answer carries."""

    def __init__(self, send: Send):
        self.send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self.send(message)
