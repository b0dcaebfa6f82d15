"""The server as a process: started from the shell, killed, started again; and what it will not start with."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx2
import pytest
from running_explorer import some_model, some_patients
from shell import MAIN, in_one_line, run

from counterpath.explorer.server import listen

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


def test_it_listens_on_a_socket_that_asyncio_knows_as_tcp():
    with listen("127.0.0.1", 0) as listener:  # otherwise answers wait for Nagle's algorithm, 40 ms each
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.slow
def test_only_with_a_token_it_listens_to_others(folder):
    result = run("explore", folder / "model.safetensors", "--host", "0.0.0.0", "--port", "0")
    assert result.exit_code == 1
    assert "Anybody who reaches 0.0.0.0 could ask. Add --token" in in_one_line(result.stderr)
