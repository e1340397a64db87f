import math

import numpy as np
import pytest


@pytest.fixture
def claims(load):
    return load("study.claims")


@pytest.mark.parametrize(
    ("margin", "error", "verdict"),
    [
        (1.0, 0.4, "holds"),
        (-1.0, 0.4, "does not hold"),
        (1.0, 0.6, "not decided"),
        (1.0, math.inf, "not decided"),
        (math.nan, 0.1, "not decided"),
        (0.0, 0.0, "not decided"),
    ],
)
def test_two_standard_errors_decide(claims, margin, error, verdict):
    assert claims.decide(margin, error) == verdict


def chains(*levels, draws=200):
    """Return two chains from each of two starts, at so many levels."""
    noise = np.random.default_rng(0).normal(size=(len(levels), draws))
    of_all = noise + np.array(levels, float)[:, None]
    return {"usual": of_all[:2], "from 1 topic": of_all[2:]}


def test_chains_that_agree_decide(claims):
    held = claims.Finding("found", "holds", "reason", [chains(0, 0, 0, 0)], margin=1.0)
    assert claims.ruled(held) == held
    not_about_draws = held._replace(chains=None)
    assert claims.ruled(not_about_draws) == not_about_draws


@pytest.mark.parametrize("verdict", ["not decided", "not run"])
def test_an_open_verdict_stays(claims, verdict):
    finding = claims.Finding("found", verdict)
    assert claims.ruled(finding) == finding


@pytest.mark.parametrize("verdict", ["holds", "does not hold"])
@pytest.mark.parametrize(
    ("quantities", "said"),
    [
        ([], "R-hat of what the claim is about was not kept."),
        ([chains(0, 0, 0, 0), {}], "R-hat of what the claim is about was not kept."),
        ([{"usual": chains(0, 0, 0, 0)["usual"]}], "not two chains from each of two starts."),
        ([{n: x[:1] for n, x in chains(0, 0, 0, 0).items()}], "not two chains from each of two"),
        ([chains(0, 0, 0, 2)], "R-hat of what the claim is about is up to 1.3"),
        ([chains(0, 0, 0, 0), chains(0, 2, 0, 2)], "R-hat of what the claim is about is up to 1."),
    ],
)
def test_a_claim_needs_chains_that_came_together(claims, quantities, said, verdict):
    found = claims.ruled(claims.Finding("found", verdict, "reason", quantities))
    assert (found.found, found.verdict) == ("found", "not converged")
    assert said in found.why
    assert found.why.startswith(f"The numbers alone would say '{verdict}'.")
    assert found.why.endswith("reason")


def test_starts_that_differ_by_the_margin_decide_nothing(claims):
    near = [chains(0, 0, 0.1, 0.1, draws=2000)]
    held = claims.Finding("found", "does not hold", "", near, margin=-0.05)
    assert claims.ruled(held).verdict == "not decided"
    assert claims.ruled(held._replace(margin=0.5)).verdict == "does not hold"


def test_another_method_has_to_be_at_its_best(claims):
    said = "It was not tuned."
    held = claims.Finding("found", "holds", "", [chains(0, 0, 0, 0)], baseline=said)
    assert claims.ruled(held).verdict == "other baseline"
    assert said in claims.ruled(held).why
    assert claims.ruled(held._replace(chains=[])).verdict == "not converged"


def test_chains_that_stand_still(claims):
    assert claims.rhat_of(np.ones((4, 10), int)) == 1.0
    assert math.isinf(claims.rhat_of(np.repeat([[0.0], [1.0]], 10, axis=1)))


def test_what_would_decide_a_difference(claims, load):
    gap = load("study.scores").Difference
    said = claims.would_decide(gap(0.1, 0.1), 10, "problems")
    assert said == "Open: about 40 problems would decide a difference of this size."
    assert "too small" in claims.would_decide(gap(0.001, 0.1), 10)
    assert claims.would_decide(gap(0.1, math.inf), 1) == "Open: run at least two splits."
    assert claims.plus(gap(0.1, math.inf)) == "+0.100, error unknown"
    assert claims.plus(gap(-0.1, 0.02), 1) == "-0.1 ± 0.0"


def test_every_claim_has_one_row(claims):
    made = [
        claims.Claim("p", "figure 1", "a is b", "1", lambda run: claims.not_run("no time")),
        claims.Claim("p", "table 2", "b is c", "2", lambda run: run["finding"]),
    ]
    rows = claims.judge(made, {"finding": claims.Finding("2 ± 1", "holds", "", chains=None)})
    columns = ["paper", "where", "claim", "expected", "found", "verdict", "why"]
    assert [list(row) for row in rows] == [columns] * 2
    assert [row["verdict"] for row in rows] == ["not run", "holds"]
    assert rows[0]["why"] == "no time"


def test_other_verdicts_are_refused(claims):
    claim = claims.Claim("p", "", "a is b", "", lambda run: claims.Finding("", "yes", ""))
    with pytest.raises(ValueError, match="verdict of 'a is b' is 'yes'; choose one of holds,"):
        claims.judge([claim], {})


def test_the_weakest_verdict_is_that_of_the_claim(claims):
    assert claims.weakest(["holds", "not decided", "does not hold"]) == "does not hold"
    assert claims.weakest(["holds", "not decided"]) == "not decided"
    assert claims.weakest(["holds"]) == "holds"
