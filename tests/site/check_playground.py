"""The playground in a browser: pointer, keys, links, tables, what it says, and when it stops."""

import json
import re

import pytest
from chapters import ROOT, pages
from check_site import DESKTOP, PHONE, SITE

PAGE = "book/playground.html"
SMALL = [
    str(page.with_suffix(".html"))
    for page in pages()
    if 'data-size="small"' in (ROOT / page).read_text()
]
STATE = "document.querySelector('.playground').playground.state()"
PICTURE = "document.querySelector('.playground').playground.picture()"
LEFT = PICTURE.replace("()", "('left')")
DRAWS = f"({PICTURE}?.how.number ?? 0)"  # of each chain
# how often it has settled since `begun`, whose states are pairs: what was, what is
TIMES = """() => {
  const seen = [...states.filter((_, i) => i % 2 === 0), states.at(-1)];
  return seen.filter((state, i) => state === 'false' && seen[i + 1] === 'true').length;
}"""
OVERLAY = ".playground-stage svg[tabindex]"


def ready(page, selector=".playground"):
    """Scroll to it, and wait until it is there."""
    page.locator(selector).first.evaluate("root => root.scrollIntoView()")
    page.wait_for_selector(f"{selector} .playground-maps")
    return page


def until(page, expression, timeout=60_000):
    """Wait until an expression is true; as a function, since the policy allows no text to be
    run.
    """
    page.wait_for_function(f"() => {expression}", timeout=timeout)


def settled(page):
    """Wait until it says that it has settled."""
    page.wait_for_selector(".playground[data-settled=true]", timeout=120_000)


def begun(page, act):
    """Act, and wait until it has begun anew, however soon it has settled again."""
    page.evaluate(
        "() => { window.states = []; const root = document.querySelector('.playground');"
        "new MutationObserver(seen => seen.forEach(one => states.push(one.oldValue,"
        "root.dataset.settled))).observe(root, {attributeFilter: ['data-settled'],"
        "attributeOldValue: true}) }"
    )
    act()
    until(page, "states.includes('false')")


@pytest.fixture
def playground(open_page):
    """Return ``playground(hash)`` -> its page on a desktop, in sight."""
    return lambda text="": ready(open_page(f"{PAGE}#{text}" if text else PAGE, **DESKTOP))


def test_it_settles_and_says_so_once(playground):
    """The first picture is of stored draws; other points are sampled until chains agree, which is
    announced once; then it rests; a change begins anew.
    """
    page = playground()
    settled(page)
    assert "stored draws" in page.locator(".playground-status").inner_text()
    says = page.locator(".playground-says").all_inner_texts()
    assert all(re.fullmatch(r"says 0\.\d\d, is right 0\.\d\d", text) for text in says)
    page = playground("flip-12")
    settled(page)  # or what it says before Reset is counted with what it says after
    page.evaluate(
        "() => { window.said = []; new MutationObserver(() => said.push(1))"
        ".observe(document.querySelector('.playground-spoken'), {childList: true}) }"
    )
    begun(page, page.get_by_role("button", name="Reset").click)
    settled(page)
    until(page, f"{DRAWS} >= 1000")
    assert "the chains' means differ by" in page.locator(".playground-status").inner_text()
    assert page.evaluate("said.length") == 1
    page.wait_for_timeout(500)
    resting = page.evaluate(DRAWS)
    page.wait_for_timeout(500)
    assert page.evaluate(DRAWS) == resting
    page.locator(OVERLAY).focus()
    begun(page, lambda: page.keyboard.press("f"))
    settled(page)
    until(page, "said.length > 1")
    page.wait_for_timeout(500)
    # chains that agreed may differ once more, and agree again
    assert page.evaluate(TIMES) >= 1
    assert page.evaluate("said.length") == 1 + page.evaluate(TIMES)
    for text in page.locator(".playground-says").all_inner_texts():
        assert "moved by" in text
    assert page.faults == []


def test_a_flip_is_undone_and_done_again(playground):
    """Stored draws come back with the points; a bar runs only meanwhile; methods change by menu."""
    page = playground()
    settled(page)
    before = page.evaluate(f"PlaygroundState.encode({STATE})")
    page.locator(OVERLAY).focus()
    page.keyboard.press("PageDown")
    here = page.locator(".playground-here").all_inner_texts()
    assert all(re.fullmatch(r"here 0\.\d\d|here 1\.00", text) for text in here) and len(here) == 2
    assert "The posterior: here" in page.locator(".playground-spoken").inner_text()
    begun(page, lambda: page.keyboard.press("f"))
    settled(page)
    flipped = page.evaluate(f"PlaygroundState.encode({STATE})")
    page.keyboard.press("Control+z")
    assert page.evaluate(f"PlaygroundState.encode({STATE})") == before
    page.wait_for_selector(".playground-status:has-text('stored draws')")
    page.get_by_role("button", name="Redo").click()
    assert page.evaluate(f"PlaygroundState.encode({STATE})") == flipped
    assert page.get_by_role("button", name="Redo").is_disabled()
    for name in ("ensemble", "laplace", "meanfield", "prior", "posterior"):
        page.get_by_label("Method of the left map").select_option(name)
        until(page, f"{LEFT}?.method === {name!r}")
    settled(page)
    assert page.locator(".playground progress:visible").count() == 0
    page.get_by_label("Truth").check()
    page.get_by_label("Twenty networks").check()
    assert page.evaluate(STATE)["truth"] and page.evaluate(STATE)["twenty"]
    assert page.faults == []


def test_questions_veil_the_maps_until_they_are_answered(playground):
    """Six settings ask; an answer lifts the veil and is spoken; other settings ask nothing."""
    page = playground()
    names = page.evaluate("PlaygroundPresets.rows.of['Predict first']")
    assert len(names) == 6
    for name in names:
        page.locator(f".playground-presets a[href='#{name}']").click()
        quiz = page.evaluate(f"PlaygroundPresets.quizzes[{name!r}]")
        page.wait_for_selector(f".playground-ask:has-text({json.dumps(quiz['title'])})")
        canvas = page.locator(".playground-map canvas").first
        assert canvas.is_visible() != quiz["veil"]
        buttons = page.locator(".playground-options button")
        assert buttons.all_inner_texts() == quiz["options"]
        buttons.nth(quiz["right"] - 1).click()
        assert page.locator(".playground-answer").inner_text().startswith("Yes. ")
        buttons.nth(quiz["right"] % 3).click()
        assert page.locator(".playground-answer").inner_text().startswith("No: ")
        assert canvas.is_visible()
    page.locator(".playground-presets a[href='#start']").click()
    page.wait_for_selector(".playground-quiz", state="hidden")
    assert page.faults == []


def test_nothing_is_shown_of_what_was_before(playground):
    """An answer before the first picture unveils an empty map, not that of another data set."""
    page = playground("signal-or-noise")
    page.get_by_role("button", name="It takes it for noise").click()
    settled(page)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("link", name="Five networks").click()
    page.get_by_role("button", name="At the points").click()
    assert page.evaluate(PICTURE) is None and page.evaluate(LEFT) is None
    seen = page.locator(".playground-map canvas").evaluate_all("all => all.map(c => c.width)")
    assert seen == [0, 0]
    assert page.locator(".playground-says").all_inner_texts() == ["", ""]
    page.get_by_role("button", name="Go on").click()
    settled(page)
    assert all(page.locator(".playground-says").all_inner_texts())


def test_the_first_screen_is_the_playground(open_page):
    """Both maps, what they say and the controls are there without scrolling; on a phone the first
    map is.
    """
    page = open_page(PAGE, viewport={"width": 1440, "height": 900})
    page.wait_for_selector(".playground-maps")
    for one in (".playground-says >> nth=1", "label:text-is('Truth')", "button:text-is('Undo')"):
        box = page.locator(f".playground {one}").bounding_box()
        assert box["y"] + box["height"] < 900
    page = open_page(PAGE, **PHONE)
    page.wait_for_selector(".playground-maps")
    box = page.locator(".playground-stage").first.bounding_box()
    assert box["y"] + box["height"] < 844


def test_points_by_keys(playground):
    """One tab stop; keys choose, move, flip, delete and insert; the table mirrors it, and edits
    there are made here.
    """
    page = playground("flip-12")
    assert page.locator(".playground-stage [tabindex]").count() == 1
    page.locator(".playground summary", has_text="Points as a table").click()
    page.locator(OVERLAY).focus()
    before = page.evaluate(STATE)["points"]
    for key in ("PageDown", "ArrowRight", "ArrowUp", "f"):
        page.keyboard.press(key)
    x, y, label = before[1]
    assert page.evaluate(STATE)["points"][1] == pytest.approx([x + 0.1, y + 0.1, 1 - label])
    chosen = page.locator(OVERLAY).get_attribute("aria-activedescendant")
    assert (
        page.locator(f"#{chosen}")
        .get_attribute("aria-label")
        .startswith(f"Point 2 of 12, class {1 - label}")
    )
    row = page.locator(".playground table tbody tr").nth(1)
    assert row.locator("input").nth(0).input_value() == f"{x + 0.1:g}"
    page.keyboard.press("Delete")
    page.keyboard.press("Insert")
    assert page.evaluate(STATE)["points"] == [before[0], *before[2:], [0, 0, 1]]
    cell = page.locator(".playground table tbody tr").nth(2).locator("input").nth(1)
    cell.fill("-2.5")
    cell.press("Enter")
    assert page.evaluate(STATE)["points"][2][1] == -2.5
    page.locator(".playground table tbody tr").nth(0).get_by_role(
        "button", name="Delete point 1"
    ).click()
    assert len(page.evaluate(STATE)["points"]) == 11
    assert page.faults == []


def test_points_by_pointer(playground):
    """A drag moves a point, a click flips or deletes it; on empty ground it adds one, in either
    map.
    """
    page = playground("flip-12")
    before = page.evaluate(STATE)["points"]

    def middle(k):
        box = page.locator(f"{OVERLAY} g").nth(k).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    x, y = middle(0)
    page.mouse.click(x, y)
    assert page.evaluate(STATE)["points"][0][2] == 1 - before[0][2]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 30, steps=4)
    until(page, f"{STATE}.points[0][0] > {before[0][0] + 0.3}")
    page.mouse.up()
    x_new, y_new = middle(0)
    assert (x_new, y_new) == pytest.approx((x + 60, y + 30), abs=2)
    stage = page.locator(".playground-stage").nth(1).bounding_box()
    page.mouse.click(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] * 0.95)
    points = page.evaluate(STATE)["points"]
    assert len(points) == 13
    assert points[-1] == pytest.approx([0, -2.7, points[0][2]], abs=0.05)
    box = page.locator(".playground-stage").first.bounding_box()  # the left map takes clicks, too
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.95)
    assert page.evaluate(STATE)["points"][-1][2] == 1 - points[0][2]
    page.locator(".playground summary", has_text="Data, network and prior").click()
    page.get_by_label("A click on a point").select_option("delete")
    page.mouse.click(*middle(0))
    assert len(page.evaluate(STATE)["points"]) == 12
    assert page.faults == []


def test_the_link_holds_what_is_shown(playground):
    """What is changed is in the link; links of the page open their settings; a link that is broken
    says so.
    """
    page = playground("group")
    assert page.evaluate(STATE)["kind"] == "groups"
    page.get_by_label("Task 1 loses its labels").check()
    page.get_by_label("Scale σ of the group").fill("5")
    state = page.evaluate(STATE)
    assert (state["without"], state["group"]) == (True, 3)
    link = page.locator(".playground-buttons a").get_attribute("href")
    assert playground(link.removeprefix("#")).evaluate(STATE) == state
    for link in page.locator(".bd-article a[href^='#']:not(.headerlink)").all():
        name = link.get_attribute("href").removeprefix("#")
        if not page.evaluate("name => name in PlaygroundState.presets", name):
            continue
        link.click()
        wanted = f"PlaygroundState.complete(PlaygroundState.presets[{name!r}])"
        until(page, f"PlaygroundState.encode({STATE}) === PlaygroundState.encode({wanted})")
    for broken in ("points=1,2", "%"):
        page = playground(broken)
        page.wait_for_selector(".playground-status:has-text('can not be opened')")
    settled(page)
    page.wait_for_timeout(500)  # at rest it says so, too
    page.evaluate("() => { location.hash = 'width=3' }")
    page.wait_for_selector(".playground-status:has-text('given numbers')")
    assert page.faults == []


def test_controls_do_what_they_say(playground):
    """Every data set and every width runs; sliders speak; the prior's scale keeps the points."""
    page = playground("flip-12")
    page.locator(".playground summary", has_text="Data, network and prior").click()
    slider = page.get_by_label("Prior scale σ of the output weights")
    slider.fill("8")
    assert slider.get_attribute("aria-valuetext") == "24"
    assert page.evaluate(STATE)["sds"] == [1, 1, 24]
    for width in ("1", "2", "10"):
        page.get_by_label("Units a hidden layer").select_option(width)
        assert page.evaluate(STATE)["width"] == int(width)
    page.get_by_label("Units a hidden layer").select_option("5")
    for name in (
        "moons",
        "two spirals",
        "task 18 of the book",
        "six tasks of ten labels",
        "a curve",
    ):
        page.get_by_label("Data set", exact=True).select_option(name)
        until(page, f"PlaygroundState.sets[{STATE}.set].text === {name!r}")
        until(page, f"{PICTURE} !== null")
    for title in ("What is shown, as a table", "How the chains agree: R-hat"):
        page.locator(".playground summary", has_text=title).click()
    page.wait_for_selector(".playground table:has-text('R-hat')", timeout=60_000)
    assert page.locator(".playground table:has-text('sd of the curve') tbody tr").count() == 14
    assert page.faults == []


def test_stored_surfaces_say_that_they_are(playground):
    """Nothing is sampled, points stay, the scale of the group chooses among them; other sets then
    run again.
    """
    page = playground("group-50")
    page.wait_for_selector(
        ".playground[data-settled=stored] .playground-status:has-text('Stored, not sampled here')"
    )
    known = page.evaluate(f"[...{PICTURE}.mean]")
    page.get_by_label("Scale σ of the group").fill("0")
    page.get_by_label("Task 1 loses its labels").check()
    until(page, f"{PICTURE}.mean[80] !== {known[80]}")
    page.locator(OVERLAY).focus()
    for key in ("f", "Delete", "Insert", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate(f"{STATE}.points.length") == 300
    assert page.evaluate(f"{PICTURE}.method") == "stored"
    page.locator(".playground summary", has_text="Data, network and prior").click()
    assert page.get_by_label("Units a hidden layer").count() == 0
    for text in ("A click on a point", "Points as a table"):
        assert not page.get_by_text(text, exact=True).is_visible()
    page.locator(".playground summary", has_text="What is shown, as a table").click()
    page.wait_for_selector(".playground table:has-text('task 6 (stored)')")
    page.get_by_label("Data set", exact=True).select_option("six tasks of ten labels")
    until(page, f"{DRAWS} > 20")
    assert page.faults == []


def test_it_stops_when_told_and_out_of_sight(playground):
    """Pause holds it, Go on lets it go, and it does not run where it is not seen."""
    page = playground("output-scale")
    buttons = page.locator(".playground-buttons")
    reset = buttons.get_by_role("button", name="Reset")

    def begun_anew_it_rests():
        for _ in range(2):  # pictures, after which it knows whether it is seen
            page.evaluate(
                "() => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))"
            )
        page.wait_for_timeout(200)  # what was under way in the Worker
        reset.evaluate("button => button.click()")  # where it is, without scrolling
        page.wait_for_timeout(500)
        return page.evaluate(f"{PICTURE} === null")

    buttons.get_by_role("button", name="Pause").click()
    assert begun_anew_it_rests()
    buttons.get_by_role("button", name="Go on").click()
    until(page, f"{DRAWS} > 0")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert begun_anew_it_rests()
    ready(page)
    until(page, f"{DRAWS} > 0")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_reduced_motion_draws_once(open_page, motion):
    """No posterior is drawn before there are enough draws, if a reader asks for less motion; else
    at once.
    """
    page = ready(open_page(f"{PAGE}#flip-12", reduced_motion=motion, **DESKTOP))
    page.evaluate(
        """() => {
             window.first = null
             document.querySelector('.playground-buttons [data-does=reset]').click()
             const look = () => {
               const picture = document.querySelector('.playground').playground.picture()
               picture ? (window.first = [picture.how.kind, picture.how.draws]) : setTimeout(look)
             }
             look()
           }"""
    )
    settled(page)
    kind, draws = page.evaluate("window.first")
    assert (kind == "fresh" and draws >= 150) == (motion == "reduce")


@pytest.mark.parametrize("path", [PAGE, *SMALL])
def test_without_scripts_there_is_a_picture(open_page, path):
    """Where scripts are off, every playground is a picture that speaks."""
    context = open_page(path, **DESKTOP).context.browser.new_context(
        java_script_enabled=False, **DESKTOP
    )
    page = context.new_page()
    page.goto((SITE / path).as_uri())
    pictures = page.locator(".playground img")
    assert pictures.count() == page.locator(".playground").count() > 0
    for picture in pictures.all():
        assert picture.evaluate("image => image.naturalWidth") > 0
        assert len(picture.get_attribute("alt")) > 60
    context.close()


def test_five_chapters_have_a_small_one():
    """The test below looks at something."""
    assert len(SMALL) == 5


@pytest.mark.parametrize("path", SMALL)
def test_a_small_one_has_one_control_and_leads_on(open_page, path):
    """One control, Reset, and a link that opens just this in the playground; on a phone too."""
    page = ready(open_page(path, **PHONE))
    root = page.locator(".playground")
    assert root.locator("input, select").count() == 1
    until(page, f"{PICTURE} !== null")
    state = page.evaluate(STATE)
    stage = root.locator(OVERLAY)
    touch = stage.evaluate(
        "svg => [svg, svg.firstChild].map(part => getComputedStyle(part).touchAction)"
    )
    assert touch == ["auto", "none"]  # a finger scrolls the page unless it is on a point
    control = root.locator("input")
    control.click() if control.get_attribute("type") == "checkbox" else control.fill("0")
    changed = page.evaluate(STATE)
    assert changed != state
    root.get_by_role("link", name="Open in the playground").click()
    page.wait_for_url("**/playground.html#*")
    ready(page)
    assert page.evaluate(STATE) == changed
    assert page.faults == []


def test_it_works_from_a_folder(browser):
    """Opened from a disk, it samples all the same."""
    context = browser.new_context(offline=True, **DESKTOP)
    page = context.new_page()
    page.goto(f"{(SITE / PAGE).as_uri()}#curve")
    ready(page)
    until(page, f"{DRAWS} > 200")
    context.close()
