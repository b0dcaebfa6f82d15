"""The page in a real browser: doses are dragged, numbers change, and they are the library's."""

import json
import shutil
from urllib.parse import unquote

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from running_explorer import NASTY, served, some_model, some_patients

import counterpath as cp

CHROMIUM = shutil.which("chromium")
QUIET = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: Debian's package `chromium` has it"),
]


@pytest.fixture(scope="module")
def model():
    return some_model()


@pytest.fixture(scope="module")
def cohort():
    return some_patients()


@pytest.fixture(scope="module")
def url(model, cohort):
    with served(model, cohort) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{option}" for option in QUIET])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, url):
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
    with page.expect_response("**/api/compare") as answered:
        page.locator("#patients li", has_text=name).first.click()
    settled(page, answered.value)


def settled(page, response):
    """The page shows this answer."""
    said = response.json()
    page.wait_for_function("said => document.querySelector('#cards').textContent.includes(said)", arg=shown(said))
    return said


def shown(said):
    """The first median of the first plan, as the page writes it."""
    value = next(iter(said["outlooks"].values()))["median"][2]
    return f"{float(f'{value:.3g}'):g}"


def changing(page, action):
    with page.expect_response("**/api/compare") as answered:
        action()
    return settled(page, answered.value)


def state(page):
    return json.loads(unquote(page.evaluate("location.hash").removeprefix("#")))


def lane(page, treatment):
    return page.locator(f'#timeline .lane[data-treatment="{treatment}"]')


def test_a_dose_is_added_and_dragged_and_the_answer_is_the_librarys(page, model, cohort):
    open_patient(page, "P/2")
    before = changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 14, "y": 10}))
    box = page.locator("#timeline .grip").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    width = lane(page, "chemotherapy").bounding_box()["width"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 0.2 * width, y, steps=4)
    after = changing(page, lambda: page.mouse.move(x + 0.4 * width, y, steps=4))
    page.mouse.up()
    (dose,) = state(page)["plans"][0]["doses"]
    assert dose["treatment"] == "chemotherapy"
    assert dose["time"] == pytest.approx(2.0, abs=0.2)
    assert before["outlooks"]["A"]["mean"] != after["outlooks"]["A"]["mean"]
    today = cohort[["P/2"]].until(state(page)["now"])
    plan = cp.Plan.dose("chemotherapy", at=dose["time"], dose=dose["dose"])
    prediction = model.predict(today, plan, horizons=after["elapsed"], progress=False)
    np.testing.assert_allclose(after["outlooks"]["A"]["median"], prediction.median[0], rtol=1e-5)
    assert shown(after) in page.locator("#card-0").inner_text()


def test_plans_stand_side_by_side_with_effect_benefit_and_support(page):
    open_patient(page, "P/2")
    changing(page, lambda: lane(page, "radiotherapy").click(position={"x": 30, "y": 10}))
    changing(page, lambda: page.select_option("#better", "lower"))
    text = page.locator("#card-1").inner_text()
    assert "effect vs A" in text
    assert "P(benefit)" in text
    assert "comparable training windows" in text or "never observed" in text
    changing(page, lambda: page.click("#another"))
    assert page.locator(".card").count() == 3
    told = page.locator("#told").inner_text()
    assert "no unmeasured confounding" in told
    assert "Numbers are: effect of the plan (treatment was randomised)" in told


def test_the_keyboard_is_enough(page):
    open_patient(page, "P/1")
    page.get_by_role("button", name="Add chemotherapy now").focus()
    changing(page, lambda: page.keyboard.press("Enter"))
    page.locator("#timeline .grip").first.focus()
    changing(page, lambda: page.keyboard.press("ArrowRight"))
    assert state(page)["plans"][0]["doses"][0]["time"] == pytest.approx(0.1)
    changing(page, lambda: page.keyboard.press("+"))
    assert state(page)["plans"][0]["doses"][0]["dose"] == pytest.approx(5.5)
    changing(page, lambda: page.keyboard.press("Delete"))
    assert state(page)["plans"][0]["doses"] == []


def test_numbers_are_typed_and_doses_repeated(page):
    open_patient(page, "P/1")
    changing(page, lambda: page.get_by_role("button", name="Add radiotherapy now").click())
    row = page.locator("#events tbody tr").first
    changing(page, lambda: (row.get_by_title("Dose", exact=True).fill("1.25"), page.keyboard.press("Tab")))
    row = page.locator("#events tbody tr").first
    row.get_by_title("Repeat every").fill("1.5")
    row.get_by_title("How many doses in all").fill("3")
    changing(page, lambda: row.get_by_role("button", name="Repeat").click())
    assert [(dose["time"], dose["dose"]) for dose in state(page)["plans"][0]["doses"]] == [
        (0, 1.25),
        (1.5, 1.25),
        (3, 1.25),
    ]


def test_a_link_brings_it_all_back(page, browser):
    open_patient(page, "P/4")
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 200, "y": 10}))
    said = changing(page, lambda: page.select_option("#better", "higher"))
    other = browser.new_page()
    with other.expect_response("**/api/compare") as answered:
        other.goto(page.url)
    assert settled(other, answered.value) == said
    assert state(other) == state(page)
    assert other.locator("#who").inner_text() == "Patient P/4"
    other.close()


def test_what_was_really_given_is_a_plan(page, cohort):
    open_patient(page, "P/5")
    now = state(page)["now"]
    changing(page, lambda: page.click("#followed"))
    events = cohort[["P/5"]].events
    given = events.start[(events.start >= now) & (events.start < now + 5.0)] - now
    assert sorted(dose["time"] for dose in state(page)["plans"][0]["doses"]) == pytest.approx(sorted(given))


def test_ones_own_patient_stays_in_the_page(page, cohort):
    own = cohort[["P/2"]]
    page.click("#own")
    page.fill("#observations", "time,volume\n0,1.5\n")
    page.fill("#static", "subgroup\nA\n")
    page.click("#use")
    flaw = page.locator('.field[data-field="observations"] .flaw')
    flaw.wait_for()
    assert "no column 'tumor_volume'. Did you mean 'volume'?" in flaw.inner_text()
    text = own.observations.drop("patient").write_csv()
    page.locator('.field[data-field="observations"] input').set_input_files(
        files=[{"name": "visits.csv", "mimeType": "text/csv", "buffer": text.encode()}]
    )
    page.wait_for_function("() => document.querySelector('#observations').value.includes('tumor_volume')")
    page.fill("#treatments", own.treatments.drop("patient").write_csv())
    said = changing(page, lambda: page.click("#use"))
    assert page.locator("#who").inner_text() == "Own patient"
    assert said["at"] == own.records.times[-1] or said["at"] > 0
    assert state(page)["patient"] is None
    assert "1.5" not in unquote(page.url)  # a link holds no record


def test_the_comparison_is_saved_for_the_shell(page, tmp_path):
    open_patient(page, "P/2")
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 100, "y": 10}))
    with page.expect_download() as saved:
        page.click("#json")
    saved.value.save_as(tmp_path / "comparison.json")
    from counterpath.cli.arguments import read_plan

    plan = read_plan(f"{tmp_path / 'comparison.json'}#A", None)
    assert [dose.time for dose in plan.doses] == [dose["time"] for dose in state(page)["plans"][0]["doses"]]
    with page.expect_download() as picture:
        page.click("#png")
    picture.value.save_as(tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_dark_is_dark(page):
    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert ground() == "rgb(255, 255, 255)"
    page.click("#theme")
    assert ground() == "rgb(21, 25, 30)"
    assert page.evaluate("document.querySelector('#chart .bg, #chart svg').closest('#chart') !== null")
    page.click("#theme")
    assert ground() == "rgb(255, 255, 255)"


def test_a_patients_name_is_only_a_name(page):
    open_patient(page, NASTY)
    assert page.locator("#who").inner_text() == f"Patient {NASTY}"
    assert page.evaluate("window.harmed") is None
    page.fill("#plan-name", "<img src=x onerror='window.harmed = true'>")
    changing(page, lambda: page.keyboard.press("Tab"))
    assert page.evaluate("window.harmed") is None
