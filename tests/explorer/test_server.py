"""The server as a process: started from the shell, killed, started again; and what it will not start with."""

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import httpx2
import pytest
import uvicorn
from running_explorer import some_model, some_patients
from shell import MAIN, in_one_line, run

import counterpath as cp
from counterpath.explorer import server
from counterpath.explorer.server import Impatient, demo_model, listen, serve

ASKED = {"patient": "P/2", "at": 50.0, "plan": {"doses": [{"treatment": "chemotherapy", "time": 0.0}]}}


@contextlib.contextmanager
def started(folder, *options):
    """The process and its address, once it is ready."""
    arguments = ["explore", folder / "model.safetensors", "--data", folder / "patients", "--port", "0", *options]
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://[^/]+", process.stdout.readline()).group()
            for _ in range(600):
                with contextlib.suppress(httpx2.TransportError):
                    if httpx2.get(f"{url}/api/ready").status_code != 503:
                        break
                time.sleep(0.1)
            yield process, url
        finally:
            process.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("explorer")
    some_model().save(place / "model.safetensors")
    some_patients().save(place / "patients")
    return place


@pytest.mark.slow
def test_a_server_that_is_killed_while_it_answers_loses_nothing(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with started(folder) as (process, url):
        expected = httpx2.post(f"{url}/api/predict", json=ASKED, timeout=30).json()
        assert "outlook" in expected

        def ask():
            with contextlib.suppress(httpx2.TransportError):
                httpx2.post(f"{url}/api/predict", json=ASKED, timeout=30)

        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
        process.send_signal(signal.SIGKILL)
        for thread in asking:
            thread.join()
    with started(folder) as (process, url):
        assert httpx2.post(f"{url}/api/predict", json=ASKED, timeout=30).json() == expected
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_token_guards_the_process(folder):
    with started(folder, "--token", "a-token-of-some-length") as (_, url):
        assert httpx2.get(f"{url}/api/card").status_code == 401
        assert httpx2.get(url).status_code == 401
        headers = {"Authorization": "Bearer a-token-of-some-length"}
        assert httpx2.get(f"{url}/api/health", headers=headers).json() == {"status": "alive"}
        for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/pyproject.toml", "/page/index.html", "//etc/passwd"):
            assert httpx2.get(url + path, headers=headers).status_code == 404


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Name a model, or say --demo."),
        (["a.safetensors", "--demo"], 2, "Name a model, or say --demo."),
        (["--demo", "--data", "patients"], 2, "--demo has patients of its own. Leave --data out."),
        (["nothing.safetensors"], 1, "nothing.safetensors"),
        (["{broken}"], 1, "broken.safetensors"),
        (["{broken}", "--token", "short"], 2, "A token has at least 16 signs."),
    ],
)
def test_what_it_does_not_start_with(arguments, code, message, tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"no model at all")
    result = run("explore", *(argument.format(broken=broken) for argument in arguments))
    assert result.exit_code == code
    assert message in in_one_line(result.stderr)
    if code == 1:
        assert result.stderr.strip().count("\n") == 0


@pytest.mark.slow
def test_patients_of_another_kind_are_refused_in_one_line(folder, tmp_path):
    cp.load_example_ward().save(tmp_path / "ward")
    result = run("explore", folder / "model.safetensors", "--data", tmp_path / "ward", "--port", "0")
    assert result.exit_code == 1
    assert result.stderr.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("host", "token", "said"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:"),
        ("::1", None, "http://[::1]:"),
        ("127.0.0.1", "a token & more of it", "/?token=a%20token%20%26%20more%20of%20it."),
    ],
)
def test_the_address_that_is_said_can_be_opened(host, token, said, monkeypatch):
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    heard = []
    monkeypatch.setattr(server, "create_app", lambda *_, **__: None)
    monkeypatch.setattr(server, "keep_compiled", lambda: None)
    monkeypatch.setattr(uvicorn.Server, "run", lambda _, sockets: sockets[0].close())
    serve(cp.LastValue(1.0), None, host=host, port=0, token=token, say=heard.append)
    assert said in heard[0]


@pytest.fixture
def fits(monkeypatch, model):
    """A demo that is quickly trained; how often it was."""
    counted = []
    quick = SimpleNamespace(fit=lambda *_, **__: counted.append(1) or model)
    for name, value in {"DEMO_PATIENTS": 10, "DEMO_TRAIN": 20, "BNCDE": lambda *_, **__: quick}.items():
        monkeypatch.setattr(server, name, value)
    return counted


@pytest.mark.slow
def test_a_demo_is_trained_once_and_again_only_if_it_is_spoiled(tmp_path, fits):
    trained, patients = demo_model(tmp_path, progress=False)
    again, _ = demo_model(tmp_path, progress=False)
    assert (trained.max_horizon, len(patients)) == (again.max_horizon, 10)
    assert len(fits) == 1
    path = tmp_path / "tumours.safetensors"
    path.write_bytes(b"half of a mod")
    demo_model(tmp_path, progress=False)
    assert len(fits) == 2
    assert path.read_bytes() != b"half of a mod"


@pytest.mark.slow
def test_where_a_demo_cannot_be_kept_it_is_not_trained(tmp_path, fits, monkeypatch):
    (tmp_path / "counterpath").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = run("explore", "--demo")
    assert result.exit_code == 1
    assert "The model cannot be kept in" in in_one_line(result.stderr)
    assert "Let XDG_CACHE_HOME name a folder to write in." in in_one_line(result.stderr)
    assert result.stderr.strip().count("\n") == 0
    assert not fits


@pytest.mark.slow
def test_the_demo_is_served(tmp_path, fits, monkeypatch):
    served = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(server, "serve", lambda *content, **options: served.append((content, options)))
    for _ in range(2):
        assert run("explore", "--demo", "--port", "0").exit_code == 0
    assert len(fits) == 1
    ((model, patients), options), _ = served
    assert (model.max_horizon, len(patients)) == (5.0, 10)
    assert (options["host"], options["port"], options["token"]) == ("127.0.0.1", 0, None)
    assert list(tmp_path.rglob("tumours.safetensors"))


def test_who_never_ends_the_head_of_a_request_is_left(monkeypatch):
    """However it trickles in; who has asked is not hurried."""
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.3)

    async def answers(scope, receive, send):
        await asyncio.sleep(1)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with (
        impatient(answers) as (address, _),
        socket.create_connection(address) as asks,
        socket.create_connection(address) as trickles,
    ):
        asks.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        trickled = 0
        with contextlib.suppress(ConnectionError):
            while trickled < 40:
                trickles.sendall(b"G")
                trickled += 1
                time.sleep(0.05)
        assert trickled < 40
        assert asks.recv(100).startswith(b"HTTP/1.1 204")


def test_who_takes_no_answer_is_left(monkeypatch):
    """Whoever takes it slowly gets all of it."""
    monkeypatch.setattr(server, "LOOK_SECONDS", 1.0)  # on a busy machine even those who take have to wait
    number, size = 160, 100_000

    async def answers(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        for _ in range(number):
            await send({"type": "http.response.body", "body": b"x" * size, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with (
        impatient(answers) as (address, serving),
        socket.create_connection(address) as slow,
        socket.create_connection(address) as takes_nothing,
    ):
        for client in (slow, takes_nothing):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        taken = 0
        while some := slow.recv(60_000):
            taken += len(some)
            time.sleep(0.01)
        assert taken > number * size
        for _ in range(100):
            if not serving.server_state.connections:
                break
            time.sleep(0.05)
        assert not serving.server_state.connections


@contextlib.contextmanager
def impatient(answers):
    """The address of a server of ours with another application, and the server."""
    with listen("127.0.0.1", 0) as listener:
        serving = uvicorn.Server(uvicorn.Config(answers, http=Impatient, lifespan="off", log_level="error"))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not serving.started:
            time.sleep(0.01)
        yield listener.getsockname(), serving
        serving.should_exit = True
        thread.join(10)


def test_it_listens_on_a_socket_that_asyncio_knows_as_tcp():
    with listen("127.0.0.1", 0) as listener:  # otherwise answers wait for Nagle's algorithm, 40 ms each
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.slow
def test_only_with_a_token_it_listens_to_others(folder):
    result = run("explore", folder / "model.safetensors", "--host", "0.0.0.0", "--port", "0")
    assert result.exit_code == 1
    assert "Anybody who reaches 0.0.0.0 could ask. Add --token" in in_one_line(result.stderr)
