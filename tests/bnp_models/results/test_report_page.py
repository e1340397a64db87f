"""The report as one HTML page: well-formed, escaped, complete; what is left out is said."""

import html
import json
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import make_data
from bnp_models.report import page, sections
from bnp_models.report.pictures import CAPTIONS, run_pictures, topic_map, trace
from bnp_models.report.sections import Section, bars, evenly, percent, shortened, span

EVIL = "<script>alert(1)</script>"
VOID = {"br", "img", "input", "meta"}
HOW = {"num_warmup": 2, "num_samples": 8, "num_chains": 2, "keep_states": 3, "progress": False}


class Page(HTMLParser):
    """Read a page, and fail where it is not well-formed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources, self.text = [], [], [], [], []
        self.tags, self.labelled, self.headings = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attrs):
        given = dict(attrs)
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        self.tags.append((name, given))
        if name not in VOID:
            self.open.append(name)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.sources += [given["src"]] if "src" in given else []
        self.labelled += [given[k] for k in ("for", "aria-labelledby") if k in given]
        if re.fullmatch("h[1-6]", name):
            self.headings.append(int(name[1]))

    def handle_endtag(self, name):
        assert name not in VOID
        assert self.open, f"</{name}> closes nothing"
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def sections(self):
        return [given["id"] for name, given in self.tags if name == "section"]

    @property
    def said(self):
        return " ".join(" ".join(self.text).split())


def read(path):
    """Read a page, after the checks that hold for every page."""
    text = path.read_text("utf-8")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    found = Page(text)
    assert len(set(found.ids)) == len(found.ids), "ids must be unique"
    assert all(source.startswith("data:image/png;base64,") for source in found.sources)
    assert all(link.startswith("#") for link in found.links)  # nothing outside the page
    inside = {link[1:] for link in found.links if "=" not in link}
    assert inside | set(found.labelled) <= set(found.ids)
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//|url\(|@import|<link", text)
    for name, given in found.tags:
        if name == "img":
            assert given["alt"]
        if name == "svg":
            assert given.get("aria-hidden") == "true" or given["aria-label"]
        assert not any(key.startswith("on") for key in given), "no handlers in attributes"
    captions = [name for name, _ in found.tags if name in ("table", "caption")]
    assert captions[::2] == ["table"] * (len(captions) // 2)
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    assert max(np.diff(found.headings)) <= 1, "no level is left out"
    assert found.sections[0] == "convergence"
    assert found.sections[-1] == "about"
    assert "nan" not in re.findall(r"\w+", found.said)
    return found


@pytest.fixture(autouse=True, scope="module")
def one_picture():
    """Draw one picture only, and no others, which have tests of their own and take long."""

    def draw(fit):
        return {
            "traces": fit.plot_traces(),
            "history": plt.subplots()[1],
            "<other>": plt.subplots()[1],
        }

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page, "run_pictures", draw)
        yield


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")  # those of other tests
    yield
    assert not plt.get_fignums()  # they are closed when they are written


def made_up(z, corpus):
    each = np.ones(z.shape[:2])
    groups = {
        "posterior": {"num_topics_used": 3 * each},
        "sample_stats": {"lp": np.arange(each.size, 0.0, -1.0).reshape(each.shape)},
        "states": {"z": z, "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.LDA(4, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest, "num_warmup": 7}
    attrs |= {"seed": 3, "versions": '{"bnp-models": "0.1.0"}', "sampling_seconds": 12.5}
    attrs |= {"compile_seconds": 1.5, "options": '{"schedule": "parallel", "record": []}'}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture(scope="module")
def fit(z, corpus):
    """Three chains of four states of LDA."""
    return made_up(z, corpus)


@pytest.fixture(scope="module")
def path(fit, tmp_path_factory):
    return fit.report(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def found(path):
    return read(path)


class TestTopics:
    def test_sections(self, found):
        expected = ["convergence", "topics", "map", "groups", "documents", "pictures", "about"]
        assert [name for name in found.sections if name != "together"] == expected
        assert {f"#{name}" for name in found.sections} <= set(found.links)  # the list at the start

    def test_the_verdict_comes_first(self, fit, found):
        judged = fit.convergence()
        assert judged.summary in found.said
        assert found.said.index(judged.summary) < found.said.index("R-hat compares the chains")
        assert "Not shown to have converged" in found.said or "Not converged" in found.said
        assert fit._functionals.text().splitlines()[0] in found.said

    def test_topics(self, fit, found):
        table, labels = fit.topics(), fit.topic_labels()
        for k, row in table.iterrows():
            assert f"topic-{k}" in found.ids
            assert row["words"] in found.said
            assert labels[k] in found.said
            assert percent(row["prevalence"]) in found.said
            assert span(row["lower"], row["upper"], ".1%") in found.said
        largest = fit.representative_documents(0, num_documents=1)["name"].iloc[0]
        assert largest in found.said

    def test_a_topic_that_no_other_chain_has(self, fit, tmp_path, monkeypatch):
        nowhere = {"similarity": np.nan, "lowest_share": np.nan, "highest_share": np.nan}
        table = fit.topics()
        table.loc[1, ["other_chains", *nowhere]] = [0, *nowhere.values()]
        monkeypatch.setattr(bnp.TopicFit, "topics", lambda self: table)
        found = read(fit.report(tmp_path / "page.html"))
        cards = re.findall(r"of the documents, (others .*?) words in numbers", found.said)
        assert cards[1] == "others 0/2"
        assert all(re.fullmatch(r"others 2/2 \(.*%\), alike \d\.\d\d", x) for x in cards[::2])

    def test_documents(self, fit, found):
        for name in fit.dataset.doc_names:
            assert name in found.said
        assert "All 24 documents are in this list." in found.said
        rows = [given for name, given in found.tags if name == "tr" and "data-topic" in given]
        assert len(rows) == 24
        shares = fit.document_topics().to_numpy()
        for d, given in enumerate(rows):
            pairs = [pair.split(":") for pair in given["data-topic"].split()]
            assert int(pairs[0][0]) == shares[d].argmax()
            np.testing.assert_allclose(float(pairs[0][1]), shares[d].max(), atol=6e-4)
            assert fit.dataset.group_names[int(given["data-group"])]
        filters = [given["data-filter"] for name, given in found.tags if name == "select"]
        assert filters == ["topic", "group"]

    def test_groups(self, fit, found):
        table = fit.topic_prevalence_by_group()
        for row in table.itertuples():
            assert str(row.group) in found.said
        cells = [given for name, given in found.tags if name == "td" and "style" in given]
        assert len(cells) == len(table)

    def test_the_run(self, fit, found):
        for said in (
            repr(fit.model), "24 documents", "3 chains with 4 kept draws each, after 7 sweeps",
            "12.5 s, of which compiling took 1.5 s", "bnp-models 0.1.0", fit.dataset.digest,
            "schedule='parallel'", 'fit.save("draws.nc")', 'bnp.TopicFit.load("draws.nc", data)',
        ):  # fmt: skip
            assert said in found.said
        assert "record" not in found.said.split("sampler")[1].split("versions")[0]

    def test_the_same_fit_gives_the_same_page(self, fit, path, tmp_path):
        again = fit.report(tmp_path / "again.html")
        assert again.read_bytes() == path.read_bytes()

    def test_no_other_script_can_run(self, path):
        text = path.read_text("utf-8")
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        said = html.unescape(policy[1])
        assert said.startswith("default-src 'none'; img-src data:;")
        assert re.search(r"script-src 'sha256-[\w+/]{43}='", said)
        assert text.count("<script") == 1


class TestOptions:
    def test_title_effects_and_time(self, z, corpus, tmp_path):
        year = np.arange(24) % 4 + 2000.0
        known = {"year": year, "a b": list("xy") * 12, "same": np.arange(24) % 3}
        documents = [corpus.words(d) for d in range(24)]
        numbered = {word: v for v, word in enumerate(corpus.vocabulary)}
        again = bnp.Corpus.from_ids(
            [[numbered[word] for word in words] for words in documents],
            vocabulary=corpus.vocabulary, covariates=known,
        )  # fmt: skip
        one = made_up(z, again)
        path = one.report(
            tmp_path / "page.html", title=f"{EVIL} of 2008", effects="~ year + C(same)", time="year"
        )
        found = read(path)
        assert EVIL not in path.read_text("utf-8")
        assert f"{EVIL} of 2008" in found.said
        assert [part for part in found.sections if part in ("effects", "time", "documents")] == [
            "effects", "time", "documents"
        ]  # fmt: skip
        assert "~ year + C(same)" in found.said
        table = one.effects("~ year + C(same)")
        table = table[table["term"] != "intercept"]
        clear = table[(table["lower"] > 0) | (table["upper"] < 0)]
        assert f"{len(clear)} of {len(table)} effects have a 90% interval" in found.said
        alts = [given["alt"] for name, given in found.tags if name == "img"]
        assert {"Effect of year", "Shares of the largest topics by year"} <= set(alts)
        if len(clear):
            assert "Effects that are not zero, in percentage points" in found.said
        said = read(one.report(tmp_path / "page.html", time=list(year)))
        assert "time" in said.sections
        assert "effects" not in said.sections

    def test_curves_stand_for_the_terms_of_splines(self, z, corpus, tmp_path):
        day, far = np.arange(24.0), np.random.default_rng(0).permutation(24)
        known = {
            "day": day,
            "far off": far,
            "party": list("ab") * 12,
            "df": day % 5,
            "half": day / 2,
        }
        numbered = {word: v for v, word in enumerate(corpus.vocabulary)}
        again = bnp.Corpus.from_ids(
            [[numbered[word] for word in corpus.words(d)] for d in range(24)],
            vocabulary=corpus.vocabulary, covariates=known,
        )  # fmt: skip
        one = made_up(z, again)
        formula = "~ s(day, df=3) + party * bs(`far off`, df=4) + df"
        found = read(one.report(tmp_path / "page.html", effects=formula))
        alts = [given["alt"] for name, given in found.tags if name == "img"]
        assert alts[:4] == [
            "Expected shares by day", "Expected shares by far off and party",
            "Effect of party[b]", "Effect of df",
        ]  # fmt: skip
        said = "The terms of splines say little one by one, so that they are not in the table"
        assert said in found.said
        assert f"of {2 * 3} effects have" in found.said
        assert "]:bs(" not in found.said.replace(formula, "")
        assert "s(day, df=3)[" not in found.said
        only = read(one.report(tmp_path / "page.html", effects="~ s(day, df=3)"))
        assert said in only.said
        assert "effects have a 90% interval" not in only.said
        # between the documents this spline is asked for outside its range, so its terms stay
        outside = "~ s((half - 5.75)**2, df=2)"
        undrawn = read(one.report(tmp_path / "page.html", effects=outside))
        assert "of 6 effects have a 90% interval" in undrawn.said
        assert said not in undrawn.said

    def test_other_chains_are_beside_effects(self, z, corpus, tmp_path, monkeypatch):
        numbered = {word: v for v, word in enumerate(corpus.vocabulary)}
        again = bnp.Corpus.from_ids(
            [[numbered[word] for word in corpus.words(d)] for d in range(24)],
            vocabulary=corpus.vocabulary, covariates={"x": np.arange(24.0)},
        )  # fmt: skip
        one = made_up(z, again)
        table = one.effects("~ x").assign(effect=0.17, lower=0.014, upper=0.32)
        others = {0: (2, 2), 1: (2, 1), 2: (0, 0)}  # chains with the topic, and with the sign
        table["other_chains"] = [others[k][0] for k in table["topic"]]
        table["same_sign"] = [others[k][1] for k in table["topic"]]
        monkeypatch.setattr(bnp.TopicFit, "effects", lambda self, formula: table)
        found = read(one.report(tmp_path / "page.html", effects="~ x"))
        assert (
            "1 of 3 effects have a 90% interval that does not enclose zero and are confirmed by "
            "other chains: at least one has the topic, and the effect has the same sign in all "
            "that have it. 2 more have such an interval, but other chains do not confirm them."
        ) in found.said
        caption = "Effects that are not zero, in percentage points, the largest first"
        listed = found.said.split(caption)[1]
        listed = listed.split("Documents and their largest topics")[0]
        assert "same sign" in listed
        assert "2/2" in listed
        assert not re.search(r"\b[01]/[02]\b", listed)
        assert "+17 +1.4 \N{EN DASH} +32 2/2" in listed

        table = table.drop(columns=["other_chains", "same_sign"])  # there are no other chains
        found = read(one.report(tmp_path / "page.html", effects="~ x"))
        assert "3 of 3 effects have a 90% interval that does not enclose zero." in found.said
        assert "confirm" not in found.said

    def test_refusals(self, fit, factors, tmp_path):
        path = tmp_path / "page.html"
        with pytest.raises(ValueError, match="effects must be None for this fit, got '~ x': only"):
            factors.report(path, effects="~ x")
        with pytest.raises(ValueError, match="time must be None for this fit"):
            factors.report(path, time="x")
        with pytest.raises(ValueError, match="effects '~ year': covariates must be given"):
            fit.report(path, effects="~ year")
        with pytest.raises(ValueError, match="time must be one of"):
            fit.report(path, time="year")
        assert not path.exists()

    def test_many_cells_have_no_intervals_in_them(self, monkeypatch, fit, tmp_path):
        monkeypatch.setattr(sections, "MAX_INTERVALS", 8)
        found = read(fit.report(tmp_path / "page.html"))
        row = fit.topic_prevalence_by_group().iloc[0]
        shown = [given.get("title") for name, given in found.tags if name == "span"]
        assert span(row["lower"], row["upper"], ".1%") in shown


class TestWhatIsLeftOut:
    def test_documents(self, fit, tmp_path):
        found = read(fit.report(tmp_path / "page.html", num_rows=5))
        said = "This list has 5 of the 24 documents, evenly spaced in the order of the data."
        assert said in found.said
        assert "num_rows=24" in found.said
        rows = [given for name, given in found.tags if name == "tr" and "data-topic" in given]
        assert len(rows) == 5
        every = read(fit.report(tmp_path / "page.html", num_rows=None))
        assert "All 24 documents are in this list." in every.said

    def test_comparisons_of_many_topics(self, monkeypatch, fit, tmp_path):
        monkeypatch.setattr(sections, "MAX_COMPARED", 2)
        said = read(fit.report(tmp_path / "page.html")).said
        for method in ("plot_topic_map", "topic_correlation"):
            assert f"so it is left out here; fit.{method}() does it" in said

    def test_rows_are_evenly_spaced(self):
        assert evenly(10, 4).tolist() == [0, 2, 5, 7]
        assert evenly(3, 5).tolist() == evenly(3, None).tolist() == [0, 1, 2]
        for total in (7, 100, 2609):
            assert len(set(evenly(total, 6).tolist())) == 6
            assert evenly(total, 6).max() < total

    def test_one_chain(self, fit, tmp_path):
        found = read(fit.of_chain(2).report(tmp_path / "page.html"))
        assert "Chain 2, one of the chains (3 in all)." in found.said
        assert fit.convergence().summary in found.said  # that of all chains
        assert fit.of_chain(2).topics()["words"].iloc[0] in found.said
        with pytest.raises(ValueError, match=r"chain must be one of \[0, 1, 2\], .*got 9"):
            fit.of_chain(9).report(tmp_path / "other.html")
        assert not (tmp_path / "other.html").exists()

    def test_many_quantities_and_topics(self, monkeypatch, fit, tmp_path):
        monkeypatch.setattr(page, "MAX_ROWS", 1)
        monkeypatch.setattr(page, "MAX_TRACES", 1)
        monkeypatch.setattr(sections, "MAX_TOPICS", 2)
        monkeypatch.setattr(sections, "MAX_GROUPS", 1)
        monkeypatch.setattr(sections, "NUM_OPEN", 1)
        monkeypatch.setattr(sections, "MAX_MAP", 2)
        said = read(fit.report(tmp_path / "page.html")).said
        for part in (
            "The table has 1 of 2 quantities", "the first 1 of 2 quantities", "2 smaller topics",
            "The 2 largest of 3 topics are drawn", "These are the 2 largest of 3 topics",
            "These are the 1 largest of 3 groups",
        ):  # fmt: skip
            assert part in said


def evil_corpus(**more):
    """A corpus in which every name and text is a script."""
    rng = np.random.default_rng(0)
    names = [f"{EVIL}{i}" for i in range(6)]
    texts = [" ".join(rng.choice(names, 12)) + " \x00 & \"quoted\" 'text'" for _ in range(8)]
    return bnp.Corpus.from_texts(
        texts, token_pattern=r"\S+", lowercase=False, stop_words=None, keep_texts=True,
        groups=[f"{EVIL}g{d % 2}" for d in range(8)],
        doc_names=[f"{EVIL}\" onload=\"alert(1)\" {d}" for d in range(8)], **more,
    )  # fmt: skip


def evil_fit(corpus):
    z = np.random.default_rng(1).integers(0, 3, (2, 3, corpus.num_tokens)).astype(np.uint8)
    return made_up(z, corpus)


class TestEscaping:
    def test_texts_of_the_corpus(self, tmp_path):
        fit = evil_fit(evil_corpus()).with_labels({0: f"{EVIL}</title>", 1: "a & b"})
        path = fit.report(tmp_path / "page.html")
        text, found = path.read_text("utf-8"), read(path)
        assert EVIL not in text
        assert text.count("<script") == text.count("</script") == 1
        assert html.escape(EVIL) in text
        assert "a & b" in found.said
        assert "\x00" not in text
        assert "\ufffd" in found.said  # stands for what no HTML may hold
        assert f'{EVIL}" onload="alert(1)" 0' in found.said
        assert [name for name, given in found.tags if "onload" in given] == []

    def test_texts_are_shown_and_cut_visibly(self, tmp_path):
        said = "word " * 200
        corpus = bnp.Corpus.from_texts([said, "a short text", "short"] * 2, keep_texts=True)
        z = np.zeros((2, 2, corpus.num_tokens), np.uint8)
        found = read(made_up(z, corpus).report(tmp_path / "page.html"))
        assert f"{said[:399].rstrip()} \N{HORIZONTAL ELLIPSIS}" in found.said
        assert "a short text" in found.said
        assert said.strip() not in found.said

    def test_shortened(self):
        assert shortened("a\n  b", 10) == "a b"
        assert shortened("abcdef", 3) == "abc \N{HORIZONTAL ELLIPSIS}"
        assert shortened("a" + " " * 99 + "b", 3) == "a \N{HORIZONTAL ELLIPSIS}"


def texts(**more):
    words = (["cat", "dog", "mouse"], ["sun", "moon", "mars"])
    rng = np.random.default_rng(0)
    return bnp.Corpus.from_texts([" ".join(rng.choice(words[d % 2], 9)) for d in range(8)], **more)


GROUPS = list("abababab")
KINDS = {
    "author": (bnp.AuthorTopicModel(2), {"authors": [["Ann"], ["Bob", EVIL]] * 4}, ["authors"]),
    "group": (bnp.MultiTaskHDPLDA(max_topics=16), {"groups": GROUPS}, ["groups", "sharing"]),
    "contrast": (
        bnp.CrossCollectionLDA(2), {"groups": [*"aaa", *"bbb", EVIL, EVIL]},
        ["groups", "sharing", "contrast"],
    ),
    "supervised": (bnp.SupervisedLDA(2), {"labels": ["good", EVIL] * 4}, ["labels"]),
    "count": (
        bnp.SupervisedLDA(2, response="count", dispersion=5.0), {"labels": [1, 7] * 4}, ["labels"],
    ),
    "one-vs-rest": (
        bnp.SupervisedLDA(2, response="one-vs-rest"), {"labels": ["x", EVIL, "y", "x"] * 2}, None,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_topic_fit(name, tmp_path, no_sweeps):
    model, given, own = KINDS[name]
    with no_sweeps():
        fit = bnp.fit(model, texts(keep_texts=True, **given), **HOW)
    path = fit.report(tmp_path / "page.html")
    found = read(path)
    assert EVIL not in path.read_text("utf-8")
    if own is None:
        assert found.sections[1:4] == ["class-0-script-alert-1-script", "class-1-x", "class-2-y"]
        return
    assert [part for part in found.sections if part in own] == own
    assert {"topics", "documents", "pictures"} <= set(found.sections)
    if name == "author":
        assert "All 3 authors are in this list." in found.said
        assert "Ann" in found.said
    if name == "supervised":
        assert "makes the label \u201cgood\u201d probable" in found.said


@pytest.fixture(scope="module")
def factors(made_up_factors):
    values = np.array([[6.0, 0, 0, 8], [3, 0, 0, 4], [3, 6, 0, np.nan], [0, 10, 0, 0]])
    sources = bnp.Sources.from_arrays(
        [values[:2], values[2:]], names=["a", EVIL], feature_names=["p", "q", EVIL, "s"],
        allow_missing=True,
    )  # fmt: skip
    phi, weights = np.array([[3.0, 0, 0, 4], [0, 2, 0, 0]]), [[2.0, 0], [1, 0], [1, 3], [0, 5]]
    model = bnp.GaussianFactorAnalysis(centre=False)
    return made_up_factors(
        model, sources, phi, np.array(weights), sigma2_w=[4.0, 9], sigma2_n=[1e-4, 1e-4]
    )


class TestFactors:
    def test_sections(self, factors, tmp_path):
        path = factors.report(tmp_path / "page.html", num_rows=3)
        found = read(path)
        assert EVIL not in path.read_text("utf-8")
        assert found.sections == [
            "convergence", "number", "factors", "sharing", "missing", "rows", "pictures", "about",
        ]  # fmt: skip
        for said in (
            factors.factors()["features"].iloc[0], "1 entries of the data are missing",
            "This list has 3 of the 4 rows", "4 rows, 4 features and 2 sources",
            'data = bnp.Sources.load("sources.npz")', "75%",
        ):  # fmt: skip
            assert said in found.said

    def test_without_states(self, factors, tmp_path):
        from bnp_models.posterior import arviz_data

        data = arviz_data.with_group(factors.data, "states", None)
        fit = bnp.FactorFit(factors.model, factors.dataset, data)
        found = read(fit.report(tmp_path / "page.html"))
        assert found.sections == ["convergence", "number", "factors", "pictures", "about"]
        assert "No full state was kept" in found.said


def test_without_states(fit, tmp_path):
    from bnp_models.posterior import arviz_data

    data = arviz_data.with_group(fit.data, "states", None)
    bare = bnp.TopicFit(fit.model, fit.dataset, data)
    found = read(bare.report(tmp_path / "page.html"))
    assert found.sections == ["convergence", "topics", "pictures", "about"]
    assert "No full state was kept" in found.said


def test_one_topic_and_one_document(tmp_path):
    corpus = bnp.Corpus.from_ids([[0, 1, 1]], num_words=2)
    fit = made_up(np.zeros((1, 2, 3), np.uint8), corpus)
    found = read(fit.report(tmp_path / "page.html"))
    assert found.sections == ["convergence", "topics", "documents", "pictures", "about"]
    assert "1 chain with 2 kept draws each" in found.said


class TestFiles:
    def test_path(self, fit, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert fit.report().resolve() == tmp_path / "report.html"

    def test_the_old_file_is_replaced(self, fit, tmp_path, monkeypatch):
        path = tmp_path / "page.html"
        path.write_text("old")

        def fail(*given):
            raise RuntimeError("in the middle")

        with monkeypatch.context() as patched:
            patched.setattr(page, "about", fail)
            with pytest.raises(RuntimeError, match="in the middle"):
                fit.report(path)
        assert path.read_text() == "old"
        fit.report(path)
        read(path)
        assert [file.name for file in tmp_path.iterdir()] == ["page.html"]  # nothing beside it

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", "path must be a file, got the folder .*: give .*report.html"),
            ("no/page.html", r"path must be in a folder that is there, got .*: make .*no first"),
        ],
    )
    def test_paths_that_are_refused(self, fit, tmp_path, name, message):
        with pytest.raises(ValueError, match=message):
            fit.report(tmp_path / name)

    def test_other_values_that_are_refused(self, fit, tmp_path):
        with pytest.raises(ValueError, match="num_rows must be an integer of at least 1, got 0"):
            fit.report(tmp_path / "page.html", num_rows=0)
        assert list(tmp_path.iterdir()) == []

    def test_the_folder_of_the_run_is_named(self, fit, tmp_path):
        (tmp_path / "draws.nc").write_text("")
        found = read(fit.report(tmp_path / "page.html"))
        assert f"bnp.load({str(tmp_path)!r})" in found.said


class TestPictures:
    @pytest.mark.slow
    def test_those_of_the_run(self, fit, monkeypatch, tmp_path):
        monkeypatch.setattr(page, "run_pictures", run_pictures)
        found = read(fit.report(tmp_path / "page.html"))
        alts = [given["alt"] for name, given in found.tags if name == "img"]
        names = ["ranks", "num_topics", "topic_words", "topic_similarity", "functionals"]
        assert alts == [CAPTIONS[name] for name in names]  # others have another form here
        assert CAPTIONS["ranks"] in found.said

    def test_names_without_a_caption(self, found):
        assert CAPTIONS["history"] in found.said
        assert "<other>" in found.said
        assert len(found.sources) == 2  # not the traces, which are drawn in another form

    def test_traces_have_gaps_and_constants(self):
        draws = np.array([[1.0, np.nan, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
        made = macro("trace", trace("<x>", draws, [0, 9]))
        Page(made)
        assert made.count("<path") == 3
        assert made.count("M") == 4  # the axis, a line with a gap, and a line
        assert "&lt;x&gt;" in made
        assert 'class="chain-0"' in made
        assert 'stroke="hsl(' in made  # beyond the colours of the style sheet
        for flat in (np.full((1, 3), 2.0), np.full((1, 3), np.nan), np.ones((1, 1))):
            Page(macro("trace", trace("x", flat, [0])))

    def test_long_traces_are_thinned_visibly(self):
        made = macro("trace", trace("lp", np.arange(1200.0)[None], [0]))
        assert "lp, every 3 draws" in made

    def test_labels_of_the_map_do_not_overlap(self):
        rng = np.random.default_rng(0)
        places, shares = rng.normal(size=(20, 2)), rng.dirichlet(np.ones(20))
        drawn = topic_map(places, shares, [f"label {k}" for k in range(20)])
        made = macro("map_section", drawn | {"shares": shares, "total": 20, "explained": 0.5})
        Page(made)
        assert made.count("<circle") == 20
        assert [f'href="#topic-{k}"' in made for k in range(20)] == [True] * 20
        assert "so neighbours in it need not be alike" in made
        flat = topic_map(np.zeros((3, 2)), np.ones(3) / 3, ["a", "b", "c"])
        assert all(np.isfinite([one["x"], one["y"]]).all() for one in flat["circles"])

    def test_percent(self):
        values = (0.0, 0.0004, 0.0123, 0.0996, 0.5, 1.0, np.nan)
        expected = ["0.0%", "< 0.1%", "1.2%", "10%", "50%", "100%", "\N{EN DASH}"]
        assert [percent(value) for value in values] == expected

    def test_bars(self):
        table = pd.DataFrame({"x": [0.1, 0.2], "low": [0.0, 0.1], "high": [0.2, 0.4]})
        assert bars(table, "x", "low", "high") == [
            {"left": 0, "width": 25, "low": 0, "high": 50},
            {"left": 0, "width": 50, "low": 25, "high": 100},
        ]
        table = pd.DataFrame({"x": [-1.0, 2.0], "low": [-4.0, 1.0], "high": [1.0, 3.0]})
        first, second = bars(table, "x", "low", "high", around_zero=True)
        assert first == {"left": 38, "width": 12, "low": 2, "high": 62}
        assert (second["left"], second["width"]) == (50, 24)


def macro(name, *values):
    """What a macro of the template makes of values."""
    empty = dict.fromkeys(["title", "lead", "digest", "style", "script"], "")
    labels = {k: f"label {k}" for k in range(20)}
    made = page._template().make_module(empty | {"labels": labels, "sections": []})
    return getattr(made, name)(*values)


def test_sections_are_put_together():
    sections = [Section("one", "1 < 2", {"parts": "<things>"}, "unknown")]
    text = page.render("A <title>", "<head>", sections)
    found = Page(text)
    assert found.sections == ["one"]
    assert "A &lt;title&gt;</title>" in text
    assert '<a href="#one">1 &lt; 2</a>' in text
    assert '<p class="lead">&lt;head&gt;</p>' in text
    assert "so <things> are not known" in found.said
