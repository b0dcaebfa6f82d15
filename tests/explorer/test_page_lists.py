"""On the page: patients are searched and sorted, plans and doses are taken away, and advice stands where it is due."""

from browsed_page import IN_A_BROWSER, changing, lane, open_patient, state

pytestmark = IN_A_BROWSER


def names(page):
    return page.locator("#patients .who").all_inner_texts()


def test_patients_are_searched_for(page):
    everybody = names(page)
    assert len(everybody) == 12
    with page.expect_response("**/api/patients?search=p%2F1*"):
        page.fill("#search", "p/1")
    page.wait_for_function("() => document.querySelectorAll('#patients li').length === 3")
    assert names(page) == ["P/1", "P/10", "P/11"]
    assert page.locator("#more").inner_text() == "3 patients"
    page.fill("#search", "")
    page.wait_for_function("() => document.querySelectorAll('#patients li').length === 12")
    assert names(page) == everybody


def test_patients_are_sorted(page):
    loaded = names(page)
    with page.expect_response("**/api/patients?*sort=name*"):
        page.select_option("#sort", "name")
    page.wait_for_function("first => document.querySelector('#patients .who').textContent === first", arg=min(loaded))
    assert names(page) == sorted(loaded)
    with page.expect_response("**/api/patients?*sort=uncertainty*") as answered:
        page.select_option("#sort", "uncertainty")
    lines = answered.value.json()["patients"]
    page.wait_for_function(
        "first => document.querySelector('#patients .who').textContent === first", arg=lines[0]["patient"]
    )
    assert names(page) == [line["patient"] for line in lines]
    widths = [float(text.removeprefix("± ")) for text in page.locator("#patients .how").all_inner_texts()]
    assert widths == sorted(widths, reverse=True)


def test_doses_and_plans_are_taken_away(page):
    open_patient(page, "P/1")
    changing(page, lambda: page.get_by_role("button", name="Add chemotherapy now").click())
    changing(page, lambda: page.get_by_role("button", name="Add radiotherapy now").click())
    row = page.locator("#events tbody tr", has_text="chemotherapy")
    changing(page, lambda: row.get_by_role("button", name="Remove").click())
    assert [dose["treatment"] for dose in state(page)["plans"][0]["doses"]] == ["radiotherapy"]
    changing(page, lambda: page.click("#remove"))
    assert [plan["name"] for plan in state(page)["plans"]] == ["B"]
    assert page.locator(".card").count() == 1
    assert page.locator("#remove").count() == 0  # the last one stays


def test_of_a_plan_like_nobodys_one_is_told_to_let_somebody_else_look(page):
    open_patient(page, "P/2")
    page.fill("#at", "50")
    changing(page, lambda: page.keyboard.press("Tab"))
    assert "let somebody else look" not in page.locator("#card-0").inner_text()
    changing(page, lambda: lane(page, "chemotherapy").click(position={"x": 14, "y": 10}))
    row = page.locator("#events tbody tr", has_text="chemotherapy").first
    changing(page, lambda: (row.get_by_title("Dose", exact=True).fill("500"), page.keyboard.press("Tab")))
    card = page.locator("#card-0").inner_text()
    assert "never observed" in card
    assert "Do not lean on this forecast; let somebody else look:" in card
    assert "A dose or rate lies outside what training patients received." in card
    assert "never ⚠" in page.locator("#glance tr").nth(1).inner_text()
    assert "was never seen" in page.locator("#notes").inner_text()
