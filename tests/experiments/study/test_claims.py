import math

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


def fit(*rhats):
    return {"convergence": [{"rhat": rhat} for rhat in rhats]}


def test_a_claim_about_a_posterior_needs_chains_that_came_together(claims):
    held = claims.Finding("found", "holds", "reason")
    lowered = claims.about_posterior(held, [fit(1.0, None), fit(2.5)], starts=2)
    assert lowered.verdict == "not converged"
    assert "R-hat is up to 2.50" in lowered.why
    assert "would say 'holds'" in lowered.why
    assert claims.about_posterior(held, [fit(None)], starts=2).verdict == "not converged"
    assert claims.about_posterior(held, [{}], starts=2).verdict == "not converged"
    assert claims.about_posterior(held, [fit(1.01)], starts=1).verdict == "not decided"
    assert claims.about_posterior(held, [fit(1.01)], starts=2) == held
    open_one = held._replace(verdict="not decided")
    assert claims.about_posterior(open_one, [fit(2.5)]) == open_one


def test_a_start_that_scores_otherwise_lowers_a_verdict(claims):
    held = claims.Finding("found", "holds", "reason")
    assert claims.about_starts(held, 0.1, {"A": [0.01, -0.03], "B": [0.04]}) == held
    untried = claims.about_starts(held, 0.1, {"A": [0.0], "B": []})
    assert untried.verdict == "not decided"
    assert "fit B from another start" in untried.why
    apart = claims.about_starts(held, -0.1, {"A": [0.06, 0.08]})
    assert apart.verdict == "not converged"
    assert "From another start A differs by +0.070" in apart.why
    open_one = held._replace(verdict="not decided")
    assert claims.about_starts(open_one, 0.1, {"A": [9.0]}) == open_one


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
    rows = claims.judge(made, {"finding": claims.Finding("2 ± 1", "holds", "")})
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
