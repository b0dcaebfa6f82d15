"""The page in a real browser: doses are dragged, numbers change, and they are the library's."""

from urllib.parse import unquote

import numpy as np
import pytest
from browsed_page import IN_A_BROWSER, changing, drawn, lane, open_patient, opened, settled, state
from running_explorer import NASTY, served
from small_models import small_tecde

import counterpath as cp

pytestmark = IN_A_BROWSER


def test_a_dose_is_added_and_dragged_and_the_answer_is_the_librarys(page, model, cohort):
    open_patient(page, "P/2")
    before = changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 14, "y": 10}))
    box = page.locator("#timeline .grip").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    width = lane(page, "chemotherapy").bounding_box()["width"]
    page.mouse.move(x, y)
    page.mouse.down()
    changing(page, lambda: page.mouse.move(x + 0.2 * width, y, steps=4))  # before it is let go
    after = changing(page, lambda: page.mouse.move(x + 0.4 * width, y, steps=4))
    page.mouse.up()
    page.mouse.move(x, y)  # it is not held any more
    (dose,) = state(page)["plans"][0]["doses"]
    assert dose["treatment"] == "chemotherapy"
    assert dose["time"] == pytest.approx(2.0, abs=0.2)
    assert float(page.get_by_title("Time from now").input_value()) == dose["time"]
    assert before["outlooks"]["A"]["mean"] != after["outlooks"]["A"]["mean"]
    today = cohort[["P/2"]].until(state(page)["now"])
    plan = cp.Plan.dose("chemotherapy", at=dose["time"], dose=dose["dose"])
    prediction = model.predict(today, plan, horizons=after["elapsed"], progress=False)
    np.testing.assert_allclose(after["outlooks"]["A"]["median"], prediction.median[0], rtol=1e-5)
    curve = drawn(page, "A")
    np.testing.assert_allclose(curve["y"], prediction.median[0], rtol=1e-5)
    np.testing.assert_allclose(curve["x"], state(page)["now"] + np.array(after["elapsed"]))


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


def test_the_tab_key_reaches_everything_and_one_sees_where_it_is(page):
    open_patient(page, "P/1")
    changing(page, lambda: page.get_by_role("button", name="Add chemotherapy now").click())
    page.locator("#search").focus()
    reached, outlines = set(), set()
    for _ in range(60):
        page.keyboard.press("Tab")
        what, outline = page.evaluate(
            """() => {
                const one = document.activeElement;
                const what = one.id || one.className.baseVal || one.title || one.role || one.textContent;
                return [one === document.body ? "search" : what, getComputedStyle(one).outlineStyle];
            }"""
        )
        if what == "search":
            break
        reached.add(what)
        outlines.add(outline)
    wanted = {"sort", "option", "own", "at", "better", "link", "json", "png", "tab", "plan-name", "another", "remove"}
    wanted |= {"followed", "grip", "Time from now", "Dose", "Repeat every", "Repeat", "Remove", "Add radiotherapy now"}
    assert wanted <= reached
    assert outlines <= {"solid", "auto"}


def test_a_wrong_number_is_marked_where_it_stands(page):
    open_patient(page, "P/1")
    changing(page, lambda: page.get_by_role("button", name="Add radiotherapy now").click())
    page.get_by_title("Dose", exact=True).fill("-1")
    page.keyboard.press("Tab")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.locator("#problem").inner_text() == "Plan A, radiotherapy, dose: Input should be greater than 0"
    assert page.get_by_title("Dose", exact=True).get_attribute("aria-invalid") == "true"
    page.wait_for_selector("body.waiting")  # the numbers that stand there are of another plan
    page.get_by_title("Dose", exact=True).fill("1")
    changing(page, lambda: page.keyboard.press("Tab"))
    assert page.locator("#problem").is_hidden()
    assert page.get_by_title("Dose", exact=True).get_attribute("aria-invalid") == "false"


def test_the_picture_offers_to_be_sent_nowhere(page):
    page.hover("#chart")
    assert page.locator(".modebar-btn").count() == 0  # one of plotly's buttons uploads what it shows


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
    assert settled(other, [answered.value]) == said
    assert state(other) == state(page)
    assert other.locator("#who").inner_text() == "Patient P/4"
    other.close()


def test_infusions_go_on_and_are_dragged(browser):
    ward = cp.load_example_ward()
    model = small_tecde(epochs=1).fit(ward[:24], ward[24:], progress=False)
    with served(model, ward) as url, opened(browser, url) as page:
        open_patient(page, "W04")
        page.fill("#at", "9")
        changing(page, lambda: page.keyboard.press("Tab"))
        assert page.locator("#timeline .kept").count() == 1
        assert "What runs now goes on: norepinephrine." in page.locator("#events").inner_text()
        changing(page, lambda: lane(page, "norepinephrine").click(position={"x": 14, "y": 10}, force=True))
        assert page.locator("#timeline .kept").count() == 0  # another rate takes its place
        box = page.locator("#timeline .grip").nth(1).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        said = changing(
            page, lambda: page.mouse.move(x - 0.4 * lane(page, "fluid").bounding_box()["width"], y, steps=4)
        )
        page.mouse.up()
        (infusion,) = state(page)["plans"][0]["infusions"]
        assert (infusion["start"], infusion["rate"]) == (0, 0.1)
        assert infusion["stop"] == pytest.approx(3.0, abs=0.2)
        plan = cp.Plan.infusion("norepinephrine", start=0, stop=infusion["stop"], rate=0.1)
        prediction = model.predict(ward[["W04"]].until(9.0), plan, horizons=said["elapsed"], progress=False)
        np.testing.assert_allclose(said["outlooks"]["A"]["median"], prediction.median[0], rtol=1e-5)


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

    def paper():
        return page.evaluate("document.querySelector('#chart').layout.paper_bgcolor")

    assert (ground(), paper()) == ("rgb(255, 255, 255)", "#fff")
    page.click("#theme")
    assert ground() == "rgb(21, 25, 30)"
    assert paper() == "#15191e"
    page.click("#theme")
    assert (ground(), paper()) == ("rgb(255, 255, 255)", "#fff")


def test_a_patients_name_is_only_a_name(page):
    open_patient(page, NASTY)
    assert page.locator("#who").inner_text() == f"Patient {NASTY}"
    assert page.evaluate("window.harmed") is None
    page.fill("#plan-name", "<img src=x onerror='window.harmed = true'>")
    changing(page, lambda: page.keyboard.press("Tab"))
    assert page.evaluate("window.harmed") is None
