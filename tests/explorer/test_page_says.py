"""The page never says of one what is true of another: whom the picture is about, when now is, what was known then."""

import pytest
from browsed_page import IN_A_BROWSER, changing, drawn, lane, message, open_patient, opened, state

pytestmark = IN_A_BROWSER


def failing(page, action):
    """Something is asked, and there is no answer."""
    page.route("**/api/compare", lambda route: route.fulfill(status=503, json={"title": "Busy", "detail": "Busy."}))
    action()
    assert message(page) == "Busy."
    page.unroute("**/api/compare")


def saved_picture(page):
    page.evaluate("Plotly.downloadImage = async (figure) => { window.saved = figure; }")
    page.click("#png")
    return page.evaluate("window.saved.layout")


def own_patient(page, observations, **others):
    page.click("#own")
    for table, text in {"observations": observations, **others}.items():
        page.fill(f"#{table}", text)
    return changing(page, lambda: page.click("#use"))


def test_the_picture_is_about_whom_it_shows(page):
    open_patient(page, "P/2")
    now = state(page)["now"]
    shown = drawn(page, "A")
    failing(page, lambda: page.locator("#patients li", has_text="P/5").click())
    assert page.locator("#who").inner_text() == "Patient P/5"
    page.get_by_role("tab", name="B").click()  # draws anew what there is
    assert drawn(page, "A") == shown
    layout = saved_picture(page)
    assert layout["title"]["text"] == f"Patient P/2, now at {now:g} days"
    assert layout["shapes"][0]["x0"] == now
    page.faults.clear()  # the browser tells of the answer that failed


def test_a_time_that_cannot_be_is_not_kept(page):
    open_patient(page, "P/2")
    before = page.input_value("#at")
    page.fill("#at", "500")
    page.keyboard.press("Tab")
    assert "not under observation" in message(page)
    assert page.input_value("#at") == before
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 100, "y": 10}))
    assert (page.input_value("#at"), state(page)["now"]) == (before, float(before))


def test_an_emptied_time_is_no_time(page):
    open_patient(page, "P/2")
    before = page.input_value("#at")
    page.fill("#at", "")
    page.keyboard.press("Tab")
    assert page.input_value("#at") == before
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 100, "y": 10}))
    assert state(page)["now"] == float(before)


def test_of_ones_own_patient_one_sees_what_was_known(page):
    own_patient(
        page,
        "time,tumor_volume\n0,1\n2,1.5\n4,2\n6,2.5\n8,3\n20,4",
        treatments="treatment,start,dose\nchemotherapy,1,5\nchemotherapy,5,5\nradiotherapy,7,2",
        static="subgroup\nA",
    )
    page.fill("#at", "5")
    changing(page, lambda: page.keyboard.press("Tab"))
    assert drawn(page, "recorded")["x"] == [0, 2, 4]
    assert drawn(page, "what came later")["x"] == [6, 8]
    lanes = page.evaluate(
        "document.querySelector('#chart').data.filter((one) => one.yaxis === 'y2').map((one) => [...one.x])"
    )
    assert [1, None] in lanes  # the dose at 5 would be given now, and is part of a plan
    assert not any(time > 5 for lane in lanes for time in lane if time is not None)
    page.fill("#at", "-5")
    page.keyboard.press("Tab")
    assert message(page)
    assert page.input_value("#at") == "5"
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 100, "y": 10}))
    assert page.input_value("#at") == "5"


def test_an_infusion_that_ends_before_its_start_is_marked(browser, ward_url):
    with opened(browser, ward_url) as page:
        open_patient(page, "W04")
        changing(page, lambda: page.get_by_role("button", name="Add norepinephrine now").click())
        page.get_by_title("Start from now").fill("2")
        changing(page, lambda: page.keyboard.press("Tab"))
        page.get_by_title("Stop; empty: goes on").fill("1")
        page.keyboard.press("Tab")
        said = "Plan A, norepinephrine: the infusion of 'norepinephrine' stops at 1, not after its start at 2"
        assert message(page) == said
        marks = [
            page.get_by_title(title).get_attribute("aria-invalid")
            for title in ("Start from now", "Stop; empty: goes on", "Rate")
        ]
        assert marks == ["true", "true", "false"]


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
def test_label_and_assumptions_are_always_in_view(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_patient(page, "P/2")
    changing(page, lambda: page.select_option("#better", "lower"))
    changing(page, lambda: page.click("#another"))
    page.locator("#reading").scroll_into_view_if_needed()
    for part, text in (
        ("#notice", "Not a medical device"),
        ("#label", "treatment was randomised"),
        ("#assumptions", "no unmeasured confounding"),
    ):
        box = page.locator(part).bounding_box()
        assert text in page.locator(part).inner_text()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= size[0]
        assert box["y"] + box["height"] <= size[1]
        # Nothing lies above it.
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", middle) == part[1:]
