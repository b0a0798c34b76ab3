"""A training run in the browser: it goes on by itself, stops, and is pulled back and forth through time."""

from __future__ import annotations

from tests.browser.support import Reader, label

STEP = "optimizer.adamw.step[]"
LOSS = "loss[]"
MATS = "lm_head.weight[90,1]"
DIAL = ".gb-dial output"


def press(reader: Reader, key: str) -> None:
    reader.page.get_by_role("button", name=label(key, "en"), exact=True).click()


def where(reader: Reader) -> list[int]:
    """The step that is looked at, and the last."""
    return [int(part) for part in reader.page.inner_text(DIAL).split("/")]


def wait_until_past(reader: Reader, step: int) -> None:
    reader.page.wait_for_function(
        "([dial, step]) => Number(document.querySelector(dial)?.textContent.split('/')[1]) > step", arg=[DIAL, step]
    )


def test_a_run_goes_on_until_it_is_stopped_and_is_scrubbed(reader: Reader) -> None:
    reader.open("training")
    start = reader.number(MATS)
    press(reader, "training_run_on")
    wait_until_past(reader, 40)
    press(reader, "training_stop")
    reader.page.get_by_role("button", name=label("training_run_on", "en"), exact=True).wait_for()
    now, end = where(reader)
    assert now == end
    reader.wait_for_number(STEP, end + 1)
    reader.page.wait_for_timeout(1000)
    assert where(reader) == [end, end]
    loss = reader.number(LOSS)
    slider = reader.page.locator(".gb-dial input")
    slider.focus()
    reader.press(*["ArrowLeft"] * 5)
    reader.wait_for_number(STEP, end - 4)
    assert reader.number(LOSS) > loss
    reader.wait_for_address(has=f"time={end - 5}")
    reader.press("Home")
    reader.wait_for_number(STEP, 1)
    assert reader.number(MATS) == start
    # the chart follows after a moment
    reader.page.wait_for_function("document.querySelector('.js-plotly-plot')?.layout?.shapes[0].x0 === 0")
    reader.wait_for_address(has="time=0")
    reader.page.reload()
    wait_until_past(reader, end - 1)
    reader.wait_for_number(STEP, 1)
    reader.page.locator(".gb-dial input").press("End")
    reader.wait_for_number(STEP, end + 1)
    assert reader.number(LOSS) == loss


def test_leaving_the_page_stops_the_run(reader: Reader) -> None:
    reader.open("training")
    press(reader, "training_run_on")
    wait_until_past(reader, 10)
    reader.go("optimizer", "optimizer.adamw.lm_head.weight.ratio[90,0]")
    reader.go("training", STEP)
    before = where(reader)
    reader.page.wait_for_timeout(1000)
    assert where(reader) == before
