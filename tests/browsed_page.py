"""The explorer's page in a real browser: a patient is opened, something is changed, and the answer is there."""

import json
import shutil
from contextlib import contextmanager
from urllib.parse import unquote

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium")
QUIET = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync")
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: Debian's package `chromium` has it"),
]


@contextmanager
def launched():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{option}" for option in QUIET])
        yield browser
        browser.close()


@contextmanager
def opened(browser, url):
    """Without a fault of its own, and without a word to anybody else."""
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: faults.append(request.url) if not request.url.startswith((url, "data:", "blob:")) else None,
    )
    page.goto(url)
    page.wait_for_selector("#card-0")
    page.faults = faults
    yield page
    page.close()
    assert [fault for fault in faults if "status of 422" not in fault] == []


def open_patient(page, name):
    changing(page, lambda: page.locator("#patients li", has_text=name).first.click())


def settled(page, answers):
    """The page shows the last of these answers, and waits for no other."""
    page.wait_for_selector("#answers[aria-busy=false]")
    said = answers[-1].json()
    for place, outlook in enumerate(said["outlooks"].values()):
        rows = page.locator(f"#card-{place} table").first.locator("tr").all_inner_texts()[1:]
        medians = [row.split()[1] for row in rows]
        power = page.locator(f"#card-{place} .measure").inner_text().partition(" cm")[0]
        scale = 1e-3 if power == "× 10⁻³" else 1.0
        rounding = 0.51 * scale * 10.0 ** -len(medians[0].partition(".")[2])
        expected = [outlook["median"][said["elapsed"].index(horizon)] for horizon in (1.0, 2.0, 3.0, 4.0, 5.0)]
        np.testing.assert_allclose([scale * float(median) for median in medians], expected, atol=rounding)
    return said


def changing(page, action):
    answers = []
    page.on("response", lambda response: answers.append(response) if response.url.endswith("/api/compare") else None)
    with page.expect_response("**/api/compare"):
        action()
    return settled(page, answers)


def state(page):
    return json.loads(unquote(page.evaluate("location.hash").removeprefix("#")))


def lane(page, treatment):
    return page.locator(f'#timeline .lane[data-treatment="{treatment}"]')


def message(page):
    """What the page says is wrong."""
    page.wait_for_selector("#problem:not([hidden])")
    return page.locator("#problem").inner_text()


def drawn(page, name):
    """The trace of that name in the picture."""
    (trace,) = page.evaluate(
        "name => document.querySelector('#chart').data.filter((one) => one.name === name)"
        ".map((one) => ({ x: [...one.x], y: [...one.y] }))",
        name,
    )
    return trace
