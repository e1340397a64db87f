"""The report in Chromium: nothing overlaps, links and the search work, and the console is silent.

The browser has no network: the page needs none.
"""

import base64
import itertools
import json
import shutil

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import make_data

pytestmark = pytest.mark.slow
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
LONG = "Donaudampfschifffahrtsgesellschaftskapitän"
WORDS = ["vote", "voter", "law", "court", "चुनाव", "选举", LONG, "tax", "bank", "$x_$", "war", "oil"]


@pytest.fixture(scope="module")
def browser():
    paths = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    path, driver = next(filter(None, paths), None), shutil.which("chromedriver")
    if path is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = path
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(driver))
    found.set_page_load_timeout(60)
    yield found
    found.quit()


def made_up(num_topics, **more):
    """A fit of LDA whose topics have a word of their own; small topics come last."""
    rng = np.random.default_rng(0)
    share = 1 / (1 + np.arange(num_topics))
    words = [*WORDS, *(f"word{k}" for k in range(len(WORDS), num_topics))][:num_topics]
    topic = rng.choice(num_topics, (60, 40), p=share / share.sum())
    topic[:, 0] = np.arange(60) % num_topics
    own = np.array([[word, *(f"{i}of{k}" for i in range(13))] for k, word in enumerate(words)])
    which = np.where(rng.random(topic.shape) < 0.5, 0, rng.integers(1, 14, topic.shape))
    texts = [" ".join(row) for row in own[topic, which]]
    groups = [("Hot Air", "Talking Points Memo", "चुनाव")[d % 3] for d in range(60)]
    corpus = bnp.Corpus.from_texts(
        texts, token_pattern=r"\S+", lowercase=False, stop_words=None, keep_texts=True,
        groups=groups, doc_names=[f"article {d}" for d in range(60)],
        vocabulary=own.ravel().tolist(), **more,
    )  # fmt: skip
    z = np.tile(topic.ravel(), (2, 4, 1))
    z = np.where(rng.random(z.shape) < 0.02, rng.integers(0, num_topics, z.shape), z)
    each = np.ones(z.shape[:2])
    groups = {
        "posterior": {"num_topics_used": num_topics * each, "alpha": rng.gamma(2, size=each.shape)},
        "sample_stats": {"lp": rng.normal(-100, 1, each.shape)},
        "states": {"z": z.astype(np.uint8), "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.LDA(num_topics, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest, "num_warmup": 7}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


def fit_of(kind):
    if kind == "many topics":
        return made_up(45)
    fit = made_up(12, covariates={"year": np.arange(60) % 7 + 2000.0, "party": list("ab") * 30})
    if kind == "labels":
        names = {k: f"subject {k}" for k in range(4, 12)}
        names |= {0: f"{LONG} and more of it", 1: "选举与政府的标签", 3: "चुनाव आयोग"}
        return fit.with_labels(names)
    return fit


@pytest.fixture(scope="module", params=["labels", "no labels", "many topics"])
def report(request, tmp_path_factory):
    more = {"title": "Blogs of 2008", "effects": "~ party + year", "time": "year"}
    path = tmp_path_factory.mktemp("page") / "report.html"
    fit_of(request.param).report(path, **(more if request.param == "labels" else {}))
    plt.close("all")
    return request.param, path


@pytest.fixture(params=list(itertools.product(WIDTHS, ("light", "dark"))), ids="-".join)
def page(request, report, browser):
    """The page, at a width and in colours."""
    (width, height), scheme = WIDTHS[request.param[0]], request.param[1]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get("about:blank")
    browser.get(report[1].as_uri())
    yield browser
    assert browser.get_log("browser") == []


BOXES = """
const box = (one) => {
  const r = one.getBoundingClientRect();
  return [r.left, r.top, r.right, r.bottom];
};
document.querySelector(".map").scrollIntoView({block: "center"});
return [Array.from(document.querySelectorAll(".map circle"), box),
        Array.from(document.querySelectorAll(".map .labels text"), box)];
"""
CLICKS = """
const wrong = [];
for (const link of document.querySelectorAll(".map a")) {
  link.querySelector("circle").scrollIntoView({block: "center", inline: "center"});
  const r = link.querySelector("circle").getBoundingClientRect();
  const hit = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
  if (!hit || hit.closest("a") !== link) wrong.push(link.getAttribute("href"));
}
return wrong;
"""


def meets(one, other, slack=0.5):
    return (
        one[0] < other[2] - slack and other[0] < one[2] - slack
        and one[1] < other[3] - slack and other[1] < one[3] - slack
    )  # fmt: skip


def test_the_map_can_be_read_and_clicked(page):
    circles, names = page.execute_script(BOXES)
    assert len(circles) in (12, 30)
    assert len(names) >= 0.9 * len(circles)
    for one, other in itertools.combinations(names, 2):
        assert not meets(one, other)
    middle = [((a + c) / 2, (b + d) / 2, (c - a) / 2) for a, b, c, d in circles]
    for (x, y, r), (x2, y2, r2) in itertools.combinations(middle, 2):
        assert np.hypot(x - x2, y - y2) > r + r2
    for (x, y, r), (left, top, right, bottom) in itertools.product(middle, names):
        # boxes of a text are higher than its signs
        near = min(max(x, left), right), min(max(y, top + 2), bottom - 3)
        assert np.hypot(near[0] - x, near[1] - y) > r - 1
    assert page.execute_script(CLICKS) == []


def test_nothing_is_wider_than_the_page(page):
    width = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


def rows(page):
    return page.execute_script(
        "return Array.from(document.querySelectorAll('#documents-list tbody tr:not([hidden])'),"
        "(row) => row.querySelector('th [dir]').textContent)"
    )


def typed(page, what):
    box = page.find_element("id", "documents-search")
    box.clear()
    box.send_keys(what)
    return rows(page)


def test_search(report, page):
    status = "return document.querySelector('#documents-list .status').textContent"
    assert len(rows(page)) == 25
    assert typed(page, "article 7")[0] == "article 7"
    assert "The best matches come first" in page.execute_script(status)
    assert typed(page, "nothing like this") == []
    assert "None of the 60 documents" in page.execute_script(status)
    found = typed(page, "law")
    assert len(found) == 25
    if report[0] != "many topics":  # by the share of the topic, whose first word it is
        shares = page.execute_script(
            "const k = Array.from(document.querySelectorAll('article.topic')).find((card) => "
            "card.querySelector('.words').textContent.startsWith('law')).id.slice(6);"
            "return Array.from(document.querySelectorAll('#documents-list tbody tr:not([hidden])'),"
            "(row) => Number((row.dataset.topic.split(' ').find((part) => part.startsWith(k + ':'))"
            " || ':-1').split(':')[1]))"
        )
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > 0


def test_menus_and_links(page):
    page.execute_script("location.hash = '#documents&topic=1'")
    page.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    shares = page.execute_script(
        "return Array.from(document.querySelectorAll('#documents-list tbody tr:not([hidden])'),"
        "(row) => Number(row.dataset.topic.match(/(?:^| )1:([0-9.]+)/)[1]))"
    )
    assert shares
    assert shares == sorted(shares, reverse=True)
    last = page.execute_script(
        "return Array.from(document.querySelectorAll('article.topic'), (card) => card.id).pop()"
    )
    page.execute_script(f"location.hash = '#{last}'")  # may be folded away
    page.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    top = page.execute_script(
        f"const r = document.getElementById('{last}').getBoundingClientRect();"
        "return [r.top, r.height, innerHeight]"
    )
    assert top[1] > 0
    assert -1 < top[0] < top[2]


def test_print(report, browser):
    """The page fits on paper: no page is scaled or cut off at the side."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get(report[1].as_uri())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # the width of A4 without its margins, in pixels of 1/96 inch
    size = {"width": 718, "height": 1047, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = browser.execute_script(
        "return Array.from(document.querySelectorAll('main *')).filter((one) => "
        "one.getBoundingClientRect().right > innerWidth + 1 && one.offsetParent !== null)"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    assert wide == []
    shown = browser.execute_script("return getComputedStyle(document.querySelector('nav')).display")
    assert shown == "none"
    made = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert browser.get_log("browser") == []
