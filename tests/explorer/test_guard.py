"""Nobody asks without the token, nothing harmful comes in or goes out, and no value of a patient is written down."""

import asyncio
import json
import logging

import pytest
from starlette.testclient import TestClient

from counterpath.explorer.guard import COOKIE, Guard
from counterpath.explorer.limits import Limits

TOKEN = "a-token-of-some-length"
LIMITS = Limits(body_bytes=100, read_seconds=0.05)


async def inner(scope, receive, send):
    """Says what it was sent; fails on demand, with a secret in its message."""
    body = (await receive())["body"]
    if scope["path"] == "/fails":
        raise ValueError("the pressure of patient 17 is 93.5")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"got " + body})


JSON = {"Content-Type": "application/json"}


def client(*, token=None, local_only=True, base_url="http://127.0.0.1:8765", **options):
    return TestClient(Guard(inner, limits=LIMITS, token=token, local_only=local_only), base_url=base_url, **options)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic " + TOKEN},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": "a=b; ]]["},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/card", "/explorer.js", "/?token=wrong", "/api/card?token=" + TOKEN])
def test_without_the_token_nothing_is_answered(headers, path):
    answer = client(token=TOKEN).get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_token_opens():
    guarded = client(token=TOKEN, follow_redirects=False)
    assert guarded.get("/api/card", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    opened = guarded.get(f"/?token={TOKEN}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/").status_code == 200  # by the cookie


def test_a_token_may_have_any_signs():
    token = 'ключ; "quoted", ünd % more'
    guarded = client(token=token, follow_redirects=False)
    assert guarded.get("/api/card", headers={"Authorization": f"Bearer {token}".encode()}).status_code == 200
    assert guarded.get("/", params={"token": token}).status_code == 303
    assert guarded.get("/").status_code == 200  # by the cookie
    fresh = client(token=token)
    assert fresh.get("/", headers={"Cookie": f"{COOKIE}={token}".encode()}).status_code == 401


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_that_is_not_said_to_be_json_is_refused(kind):
    """Pages elsewhere can send such bodies without asking first."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client().post("/", content=b"{}", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (415, "application/problem+json")
    assert client().post("/", content=b"{}", headers={"Content-Type": "application/json; charset=utf-8"}).is_success
    assert client().post("/").is_success  # nothing is sent


def test_other_names_of_this_machine_are_refused():
    """A page elsewhere could otherwise have its name point here."""
    assert client(base_url="http://evil.example").get("/").status_code == 400
    assert client(base_url="http://127.0.0.1.evil.example").get("/").status_code == 400
    for own in ("http://localhost:8765", "http://127.0.0.1", "http://[::1]:8765"):
        assert client(base_url=own).get("/").status_code == 200
    assert client(base_url="http://ward.example", local_only=False).get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/fails"])
def test_every_answer_is_strict(path):
    answer = client().get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_a_body_that_is_too_long_is_refused():
    assert client().post("/", content=b"x" * 100, headers=JSON).text == "got " + "x" * 100
    assert client().post("/", content=b"x" * 101, headers=JSON).status_code == 413
    chunks = iter([b"x" * 60, b"x" * 60])
    assert client().post("/", content=chunks, headers=JSON).status_code == 413  # without saying how long
    assert client().post("/", content=b"x", headers={"Content-Length": "-1"}).status_code == 413


def test_who_sends_too_slowly_is_left():
    sent = []

    async def never():
        await asyncio.sleep(10)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "method": "POST", "query_string": b"", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(inner, limits=LIMITS, token=None, local_only=True)(scope, never, send))
    assert sent[0]["status"] == 408


def test_who_has_gone_is_not_worked_for():
    cancelled = []

    async def works(scope, receive, send):
        await receive()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        return messages.pop()

    async def send(message):
        raise AssertionError(message)

    async def ask():
        scope = {
            "type": "http",
            "path": "/",
            "method": "GET",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await Guard(works, limits=LIMITS, token=None, local_only=True)(scope, receive, send)
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(ask(), 5))
    assert cancelled == [True]


def test_what_went_wrong_is_written_down_without_values(caplog):
    with caplog.at_level(logging.DEBUG):
        answer = client().get("/fails")
    assert answer.status_code == 500
    assert "93.5" not in answer.text + caplog.text
    assert "ValueError while answering /fails" in caplog.text
    assert json.loads(answer.text)["title"] == "Our fault"
