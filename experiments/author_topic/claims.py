"""Claims of the study of author-topic models; none is left out.

Models that see different things are two conditions and do not compete: between these the question
is how many words the authors are worth. A difference is the logarithm of a ratio of perplexities:
below zero the first method is better.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from study.cells import of_part
from study.claims import Chains, Claim, Finding, decided, judge, not_run
from study.frames import DataFrame, frame
from study.gaps import Gap, chains_between, gap_between
from study.scores import Difference, documents_error, mean_of, over_splits
from study.timing import arrival

from author_topic.settings import (
    ALL,
    ALONE,
    ATM,
    AUTHORS,
    GENSIM,
    HDP,
    INFERRED,
    LDA,
    NP,
    PER_TOPIC,
    SEEN_BY,
    TOMOTOPY,
    start_name,
)

__all__ = [
    "CLAIMS", "Best", "Which", "best_of", "judged", "perplexity", "scored", "tried", "words_worth",
]  # fmt: skip

NEAR = 0.02  # how much worse a model may be that finds the number of topics by itself
CLOSE = 0.01  # how much worse LDA with an alpha for each topic may be than the HDP
SAME = 0.05  # by how much the numbers of topics from two starts may differ
MORE_TOPICS = "fit it with more topics"
NOT_FITTED = "One of the models was not fitted."
Run = dict[str, Any]


# ---- tables of scores, split by split


class Which(NamedTuple):
    """Which scores are meant."""

    method: str
    topics: int | str = INFERRED  # those asked for
    seen: str | None = None  # of a test document; None: what the method's condition says
    alpha: str | None = None
    single: bool = False  # of one state, the mean over states; else of their average
    start: str | None = None  # None: the usual one
    long: bool = False  # of the longer chains

    def starts(self, run: Run) -> list[str | None]:
        """Return the names of the starts of the chains, the usual one first."""
        if self.start is not None:
            return [self.start]
        s = run["settings"]
        if self.method == ALONE:
            return [None, "from first authors"]
        if self.long:
            finite, inferred = s["long_starts"]
            numbers = inferred if self.topics == INFERRED else finite
        else:
            numbers = s["starts"] if self.topics == INFERRED else [0]
        return [start_name(number) if number else None for number in numbers]

    def records(self, run: Run) -> dict[int, Run]:
        """Return the records by split."""
        parts = ("long",) if self.long else ("fit", "peers")
        if not of_part(run, *parts):
            return {}
        found = of_part(
            run, *parts, method=self.method, topics_asked=self.topics, alpha=self.alpha,
            start=self.starts(run)[0],
        )  # fmt: skip
        return {record["split_seed"]: record for record in found}

    def docs(self, run: Run) -> dict[int, np.ndarray]:
        """Return log probabilities of the test documents, by split."""
        seen = self.seen or SEEN_BY[self.method]
        name = "single_doc_log_prob" if self.single else "doc_log_prob"
        found = self.records(run)
        return {n: np.array(r["scores"][seen][name]) for n, r in found.items()
                if seen in r["scores"]}  # fmt: skip

    def draws(self, run: Run) -> dict[int, np.ndarray]:
        """Return the score of each kept state [chains, states] by split, where they were kept."""
        seen = self.seen or SEEN_BY[self.method]
        found = {n: r["scores"].get(seen, {}) for n, r in self.records(run).items()}
        return {n: -np.array(score["draws"]) for n, score in found.items() if "draws" in score}

    def scores(self, run: Run) -> DataFrame:
        """Return the scores."""
        return scored(run, self.docs(run), self.draws(run))

    def of_all_starts(self, run: Run) -> DataFrame:
        """Return the scores from all starts that were tried; `start` is "" for the usual one."""
        tables = [self.scores(run).assign(start="")]
        for start in self.starts(run)[1:] if len(tables[0]) else ():
            # starts have numbers: what the other one is called differs between models
            tables.append(self._replace(start=start).scores(run).assign(start="other"))
        return pd.concat([x for x in tables if len(x)] or tables[:1])

    def topics_used(self, run: Run) -> str:
        """Say how many topics are in use, with the standard error over splits."""
        return _with_error(mean_of([r["topics"] for r in self.records(run).values()]), 0)


def scored(
    run: Run, docs: Mapping[int, np.ndarray], draws: Mapping[int, np.ndarray] = {}
) -> DataFrame:
    """Return the logs of perplexities of documents by split, from their log probabilities.

    `draws` has the logs of perplexities in single states, where they are known.
    """
    tokens = {r["split_seed"]: r["doc_tokens"] for r in of_part(run, "fit", method="unigram")}
    rows = [
        {"split_seed": n, "value": -docs[n].sum() / np.sum(tokens[n]), "docs": -docs[n],
         "tokens": tokens[n], "draws": draws.get(n)}
        for n in sorted(set(docs) & set(tokens))
    ]  # fmt: skip
    return frame(rows, "split_seed", "value", "docs", "tokens", "draws")


def perplexity(scores: DataFrame) -> tuple[float, float] | None:
    """Return the perplexity at the mean over splits of nats, and its error over both."""
    if scores.empty:
        return None
    rows = zip(scores["value"], scores["docs"], scores["tokens"], strict=True)
    mean = over_splits([Difference(x, documents_error(docs, x, n)) for x, docs, n in rows])
    return math.exp(mean.value), math.exp(mean.value) * mean.error


class Best(NamedTuple):
    """The number of topics that is best on average, and whether more may be better still."""

    which: Which
    falling: bool
    largest: int

    def remark(self) -> str:
        """Say that a method gets better up to the greatest number of topics, if so."""
        said = f"{self.which.method} gets better up to the greatest K tried, {self.largest}."
        return said if self.falling else ""


def tried(run: Run, method: str, alpha: str | None = None, *, long: bool = False) -> list[int]:
    """Return the numbers of topics that were asked for in fits of a method."""
    found = of_part(run, "long" if long else "fit", method=method, alpha=alpha)
    return sorted({r["topics_asked"] for r in found} - {INFERRED})


def best_of(run: Run, method: str, alpha: str | None = None, *, long: bool = False) -> Best | None:
    """Return which number of topics is best in the splits in which all of them were tried."""
    every = {
        k: Which(method, k, alpha=alpha, long=long).scores(run)
        for k in tried(run, method, alpha, long=long)
    }
    every = {k: scores for k, scores in every.items() if len(scores)}
    if not every:
        return None
    values = pd.DataFrame({k: x.set_index("split_seed")["value"] for k, x in every.items()})
    means = (values.dropna() if len(values.dropna()) else values).mean()
    best, largest = min(every, key=lambda k: means[k]), max(every)
    before = sorted(every)[-2:][0]
    falling = best == largest
    if falling and before != largest:
        gap = gap_between(every[largest], every[before])
        falling = gap is None or not math.isfinite(gap.error) or gap.value < -2 * gap.error
    return Best(Which(method, best, alpha=alpha, long=long), falling, largest)


def words_worth(run: Run, authors: Which, words: Which) -> Difference | None:
    """Return how many words a model has to see to predict as well as another one by the authors.

    In each split the score is a straight line between two numbers of words, over log(1 + words);
    the error is that over splits. None: in no split is the score of the authors between those of
    no words and all.
    """
    wanted = authors._replace(seen=AUTHORS).scores(run).set_index("split_seed")["value"]
    numbers = [*map(str, run["settings"]["words"]), ALL]
    curves = pd.DataFrame({
        seen: words._replace(seen=seen).scores(run).set_index("split_seed")["value"]
        for seen in numbers
    }).dropna()  # fmt: skip
    found = []
    for record in of_part(run, "fit", method="unigram"):
        n = record["split_seed"]
        if n not in wanted or n not in curves.index:
            continue
        levels, at = -curves.loc[n].to_numpy(), -wanted[n]
        if levels[0] < at < levels[-1]:
            places = np.log1p([*run["settings"]["words"], record["words_of_a_first_half"]])
            after = int(np.argmax(levels >= at))
            pair = slice(after - 1, after + 1)
            found.append(float(np.expm1(np.interp(at, levels[pair], places[pair]))))
    return mean_of(found) if found else None


# ---- what a run says of the claims


def _between(one: DataFrame, other: DataFrame) -> tuple[Gap | None, list[Chains]]:
    """Return by how much two methods differ, on average and in every draw of every chain."""
    return gap_between(one, other), [chains_between(one, other)]


def _decided(
    text: str, gap: Gap, margin: Difference, chains: Sequence[Chains] | None, why: str = ""
) -> Finding:
    """Decide by two standard errors; say over how many splits."""
    text = f"{text}, {gap.splits} split{'s' if gap.splits > 1 else ''}"
    return decided(text, margin, gap.splits, why=why, chains=chains)


def _unless(finding: Finding, opened: str, remark: str, remedy: str) -> Finding:
    """Open a verdict that `remedy` may change; `remark`, if there is any, says why."""
    if not remark:
        return finding
    verdict, why = finding.verdict, f"{finding.why} {remark}"
    if verdict == opened:
        verdict, why = "not decided", f"{why} Open: {remedy}."
    return finding._replace(verdict=verdict, why=why.strip())


def words(run: Run, after: bool) -> Finding:
    """Compare what the authors say with what LDA predicts from no words, or from many."""
    ours, theirs = best_of(run, ATM), best_of(run, LDA)
    if ours is None or theirs is None:
        return not_run(NOT_FITTED)
    number = str(max(run["settings"]["words"]) if after else 0)
    authors, lda = ours.which, theirs.which._replace(seen=number)
    gap, chains = _between(authors.scores(run), lda.scores(run))
    if gap is None:
        return not_run(f"LDA was not scored after {number} words.")
    text = f"ratio of perplexities, authors known to {number} words seen: {gap.ratio}; "
    text += f"K={authors.topics} and {lda.topics}"
    worth = words_worth(run, authors, lda)
    if after and worth:
        text += f"; the authors are worth {_with_error(worth, 1)} words"
    return _decided(text, gap, gap.less(0.0) if after else gap.below(), chains)


def authors_or_half(run: Run) -> Finding:
    """Compare what the authors say with what LDA predicts from all words of the first half."""
    ours, theirs = best_of(run, ATM), best_of(run, LDA)
    if ours is None or theirs is None:
        return not_run(NOT_FITTED)
    gap, chains = _between(ours.which.scores(run), theirs.which.scores(run))
    if gap is None:
        return not_run("The models were not fitted to the same splits.")
    text = f"ratio of perplexities {gap.ratio}, K={ours.which.topics} and {theirs.which.topics}"
    finding = _decided(text, gap, gap.below(), chains)
    finding = _unless(finding, "does not hold", ours.remark(), MORE_TOPICS)
    return _unless(finding, "holds", theirs.remark(), MORE_TOPICS)


def without_topics(run: Run) -> Finding:
    """Compare the author-topic model with a model of authors without topics."""
    best, alone = best_of(run, ATM, long=True), Which(ALONE, long=True)
    if best is None:
        return not_run(NOT_FITTED)
    gap, chains = _between(best.which.of_all_starts(run), alone.of_all_starts(run))
    if gap is None:
        return not_run(NOT_FITTED)
    text = f"ratio of perplexities {gap.ratio}, K={best.which.topics}"
    return _decided(text, gap, gap.below(), chains)


def number_of_topics(run: Run) -> Finding:
    """Compare the numbers of topics that chains from two starts find."""
    starts = [Which(NP, start=start_name(first)) for first in run["settings"]["starts"]]
    found = {which.start: fits for which in starts if (fits := which.records(run))}
    if starts[0].start not in found:
        return not_run("The nonparametric model was not fitted.")
    text = "; ".join(f"{w.topics_used(run)} topics {w.start}" for w in starts if w.start in found)
    both = sorted(set.intersection(*map(set, found.values()))) if len(found) > 1 else []
    if not both:
        return Finding(text, "not decided", f"Open: fit {NP} from another start, too.")
    usual, other, *_ = found.values()
    apart = mean_of([math.log(other[n]["topics"] / usual[n]["topics"]) for n in both])
    margin = Difference(math.log(1 + SAME) - abs(apart.value), apart.error)
    return _decided(text, Gap(*apart, len(both)), margin, ())


def near(run: Run, inferred: str, fixed: str, *, long: bool = False) -> Finding:
    """Compare a model that infers the number of topics with the best finite one."""
    best, mine = best_of(run, fixed, long=long), Which(inferred, long=long)
    if best is None:
        return not_run(NOT_FITTED)
    gap, chains = _between(mine.of_all_starts(run), best.which.of_all_starts(run))
    if gap is None:
        return not_run(NOT_FITTED)
    text = f"{mine.topics_used(run)} topics; ratio of perplexities {gap.ratio} to "
    margin = gap.below(math.log(1 + NEAR))
    finding = _decided(f"{text}K={best.which.topics}", gap, margin, chains)
    return _unless(finding, "holds", best.remark(), MORE_TOPICS)


def same_size(run: Run, inferred: str, fixed: str) -> Finding:
    """Compare a model that infers the number of topics with a finite one of as many topics.

    The score of the latter is a straight line over log K between fewer and more topics.
    """
    mine = Which(inferred)
    by_size = {k: Which(fixed, k) for k in run["settings"]["topics"]}
    docs, draws = ({k: of(x, run) for k, x in by_size.items()} for of in (Which.docs, Which.draws))
    line, line_draws, used = {}, {}, set()
    for n, record in mine.records(run).items():
        topics, known = record["topics"], sorted(k for k in by_size if n in docs[k])
        for low, high in itertools.pairwise(known):
            if low <= topics <= high and n not in line:
                share = math.log(topics / low) / math.log(high / low)
                line[n] = (1 - share) * docs[low][n] + share * docs[high][n]
                if n in draws[low] and n in draws[high]:
                    line_draws[n] = (1 - share) * draws[low][n] + share * draws[high][n]
                used |= {low, high}
    gap, chains = _between(mine.of_all_starts(run), scored(run, line, line_draws))
    if gap is None:
        return not_run(f"No fits of {fixed} have fewer and more topics than {inferred}.")
    text = f"{mine.topics_used(run)} topics; ratio of perplexities {gap.ratio} to what lies "
    return _decided(f"{text}between K={min(used)} and {max(used)}", gap, gap.below(), chains)


def alpha_per_topic(run: Run, inferred: str, fixed: str) -> Finding:
    """Ask whether an alpha for each topic explains what the model with inferred topics gains."""
    gains = []
    for k in run["settings"]["per_topic"]:
        one = Which(fixed, k)
        each = one._replace(alpha=PER_TOPIC)
        if gain := gap_between(each.scores(run), one.scores(run)):
            gains.append(f"K={k}: {gain.ratio}")
    best, mine = best_of(run, fixed, PER_TOPIC), Which(inferred)
    missing = not_run(f"{fixed} with an alpha for each topic or {inferred} was not fitted.")
    if best is None:
        return missing
    gap, chains = _between(best.which.scores(run), mine.of_all_starts(run))
    if gap is None:
        return missing
    text = f"ratio of perplexities {gap.ratio} to {inferred}, K={best.which.topics}; to one alpha "
    margin = gap.below(math.log(1 + CLOSE))
    return _decided(f"{text}for all topics {', '.join(gains)}", gap, margin, chains)


# ---- beside peers


def gensim_with_every_k(run: Run, single: bool) -> Finding:
    """Compare our author-topic model with gensim's, with each number of topics that both have."""
    gaps: dict[int, Gap] = {}
    chains: dict[int, list[Chains]] = {}
    for k in run["settings"]["gensim_topics"]:
        ours, theirs = (Which(m, k, single=single).scores(run) for m in (ATM, GENSIM))
        gap, chains[k] = _between(ours, theirs)
        if gap:
            gaps[k] = gap
    if not gaps:
        return not_run("gensim's model and ours were not fitted with the same K.")
    worst = max(gaps, key=lambda k: gaps[k].value / gaps[k].error)
    deciding = gaps if gaps[worst].value < 0 else [worst]  # one that is worse decides alone
    text = "ratios of perplexities " + ", ".join(f"K={k}: {gap.ratio}" for k, gap in gaps.items())
    why = "One state of ours against gensim's." if single else "Our score averages many states."
    of_all = [quantity for k in deciding for quantity in chains[k]]
    finding = _decided(text, gaps[worst], gaps[worst].below(), of_all, why)
    return finding._replace(margin=min(abs(gaps[k].value) for k in deciding))


def one_state_after_seconds(run: Run) -> Finding:
    """Compare the last state of one chain of ours with gensim's model where it was stopped."""
    k = run["settings"]["curve_topics"]
    chains = of_part(run, "curve", chains=1)
    ours = {r["split_seed"]: np.array(r["scores"][SEEN_BY[ATM]]["doc_log_prob"]) for r in chains}
    gap = gap_between(scored(run, ours), Which(GENSIM, k).scores(run))
    if gap is None:
        return not_run("No curve of one chain, or gensim's model was not tuned with its K.")
    text = f"ratio of perplexities {gap.ratio} after {run['settings']['curve_seconds']:g} s, K={k}"
    why = "gensim stops where validation says; the seconds of its tuning are not counted."
    return _decided(text, gap, gap.below(), None, why)  # about a time, not about a posterior


def sooner(run: Run) -> Finding:
    """Compare when one chain of ours and gensim have the score at which gensim is stopped.

    Where ours is never there, its last second is a lower bound.
    """
    gensim = Which(GENSIM, run["settings"]["curve_topics"]).records(run)
    ratios, said, never = [], [], False
    for record in of_part(run, "curve", chains=1):
        if (peer := gensim.get(record["split_seed"])) is None:
            continue
        curve = record["curve"]
        ours = arrival(curve["seconds"], curve["perplexity"], peer["perplexity"])
        never |= ours is None
        said.append(f"{'never' if ours is None else f'{ours:.1f} s'} against {peer['seconds']:.1f}")
        ratios.append(math.log((ours or curve["seconds"][-1]) / peer["seconds"]))
    if not ratios:
        return not_run("No curve of one chain, or gensim's model was not tuned with its K.")
    gap = Gap(*mean_of(ratios), len(ratios))
    text = f"ratio of seconds {'at least ' if never else ''}{gap.ratio} ({', '.join(said)})"
    why = "Compiling and gensim's tuning are not counted."
    finding = _decided(text, gap, gap.below(), None, why)
    remark = "Some ratios are lower bounds." if never else ""
    return _unless(finding, "holds", remark, "run longer curves")


def tomotopy(run: Run) -> Finding:
    """Compare HDPLDA with tomotopy's HDP, one state each, the latter from its better start."""
    ours = Which(HDP, single=True)
    starts = [Which(TOMOTOPY, start=start_name(n)) for n in run["settings"]["tomotopy_starts"]]
    levels = {which: which.scores(run)["value"].mean() for which in starts if which.docs(run)}
    if not levels or not ours.docs(run):
        return not_run(NOT_FITTED)
    peer = min(levels, key=lambda which: levels[which])
    gap, chains = _between(ours.of_all_starts(run), peer.scores(run))
    if gap is None:
        return not_run("The models were not fitted to the same splits.")
    text = f"ratio of perplexities {gap.ratio}, {ours.topics_used(run)} topics against "
    text += f"{peer.topics_used(run)} {peer.start}"
    if average := gap_between(ours._replace(single=False).scores(run), peer.scores(run)):
        text += f"; average of our states: {average.ratio}"
    return _decided(text, gap, gap.below(), chains)


def _with_error(mean: Difference, digits: int) -> str:
    error = f" ± {mean.error:.{digits}f}" if math.isfinite(mean.error) else ""
    return f"{mean.value:.{digits}f}{error}"


# ---- the claims

ROSEN_ZVI = ("Rosen-Zvi et al., UAI 2004", "perplexity by words observed")
BLEIER, BLEIER_LDA = ("Bleier", "section 3"), ("Bleier", "section 3, for LDA")
OWN = ("own question", "-")
OPEN = "not given: section 3 leaves performance open"
PAIRS = ((BLEIER, NP, ATM), (BLEIER_LDA, HDP, LDA))
CLAIMS = (
    Claim(*ROSEN_ZVI, "Before a word is seen, the authors predict a document better than LDA does",
          "ratio below 1", partial(words, after=False)),
    Claim(*ROSEN_ZVI, "After many words LDA predicts the rest better than the authors do",
          "ratio above 1", partial(words, after=True)),
    Claim(*ROSEN_ZVI, "The author-topic model predicts better than a model of authors without "
          "topics", "lower perplexity", without_topics),
    Claim(*BLEIER, "The model estimates the number of topics that the data need",
          f"no number given; two starts within {SAME:.0%}", number_of_topics),
    *(Claim(*source, f"{inferred} is at most {NEAR:.0%} worse than {fixed} with its best K", OPEN,
            partial(near, inferred=inferred, fixed=fixed))
      for source, inferred, fixed in PAIRS),
    *(Claim(*source, f"On longer chains {inferred} is at most {NEAR:.0%} worse than {fixed} with "
            "its best K", OPEN, partial(near, inferred=inferred, fixed=fixed, long=True))
      for source, inferred, fixed in PAIRS),
    *(Claim(*source, f"{inferred} predicts better than {fixed} with as many topics", OPEN,
            partial(same_size, inferred=inferred, fixed=fixed))
      for source, inferred, fixed in PAIRS),
    *(Claim(*OWN, f"An alpha for each topic brings {fixed} to the score of {inferred}",
            f"at most {CLOSE:.0%} worse",
            partial(alpha_per_topic, inferred=inferred, fixed=fixed))
      for _, inferred, fixed in PAIRS),
    Claim(*OWN, "The authors are worth more than all words of a first half: with them "
          f"{ATM} predicts better than LDA does, each with its best K", "not known",
          authors_or_half),
    Claim(*OWN, "Our author-topic model predicts better than gensim's, tuned on validation "
          "documents, with every K", "ratio below 1",
          partial(gensim_with_every_k, single=False)),
    Claim(*OWN, "So does one state of ours, with every K", "ratio below 1",
          partial(gensim_with_every_k, single=True)),
    Claim(*OWN, "So does the last state of one chain on the clock", "ratio below 1",
          one_state_after_seconds),
    Claim(*OWN, "One chain of ours is at gensim's score sooner than gensim", "fewer seconds",
          sooner),
    Claim(*OWN, f"One state of {HDP} predicts better than tomotopy's HDP with its hyperparameters "
          "optimised", "ratio below 1", tomotopy),
)  # fmt: skip


def judged(run: dict[str, Any]) -> list[dict[str, str]]:
    """Return the table of claims."""
    return judge(CLAIMS, run)
