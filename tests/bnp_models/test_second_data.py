"""What is given beside a fit or a corpus: names match by name, rows row by row, nothing hidden.

Looked at, one by one: every public function that takes a second corpus, frame, series or array.

- Words match by name: `coherence(reference=)`, `npmi(reference)`, texts in `transform`,
  `Corpus.with_vocabulary`, and `Fit.match` and `SavedModel.match`, which the command line calls.
  Other words, or the same in another order, are refused by `transform`, `predict`, `predict_proba`,
  `document_completion`, `left_to_right`, `empirical_likelihood`, `document_topics`, `stacked`,
  `group_probabilities`, `infer_author`, `known_authors`, `functionals(test=)` (all by way of
  `check_words`), and by `Transform.check`.
- Features match by name: `FactorFit.predict`, `row_completion`, `transform`, `retrieve`, `evaluate`
  (all by way of `_matched`), `Sources.from_arrays`; `Sources.from_frame` and the readers of tables
  have one table with one header. In estimators scikit-learn refuses columns in another order,
  if their names are strings; `Corpus.from_counts` finds the columns of a frame by name, and
  `Corpus.from_dataframe` those that it is given. `checks.order_by_name` has the one message.
- Sources, groups, labels and authors match by name: `Sources.positions_of`, `select`,
  `Corpus.from_*(group_names=, label_names=, author_names=)`, `Fit.match`, `Fit.load`.
- Rows match row by row, an index of pandas is not used: `effects`, `topics_over_time`,
  `topic_prevalence_by_group(by=)`, `groups=`, `labels=`, `authors=`, `covariates=`, `select`,
  `select_rows`, `retrieve(query_class=, row_class=)`, `calibration`, X and y of the estimators.
- Topics match by number: `with_labels` takes a dictionary or the index of a series.
- Masked entries are refused, or missing in `Sources`; nullable numbers of pandas are numbers;
  NumPy's numbers in lists are numbers, and its dates are dates in every resolution.
"""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import bnp_models as bnp
from bnp_models.data.sources import Sources
from bnp_models.estimators import TopicClassifier, TopicEstimator

FRUIT = ["apple", "pear", "plum", "grape", "peach", "cherry"]
RIDE = ["train", "tram", "bus", "ferry", "plane", "truck"]
NUM_DOCS = 20
SHUFFLED = np.random.default_rng(3).permutation(NUM_DOCS)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(FRUIT if d % 2 else RIDE, 12)) for d in range(NUM_DOCS)]
    return bnp.Corpus.from_texts(texts)


@pytest.fixture(scope="module")
def fit(corpus):
    model = bnp.LDA(2, alpha=0.1, beta=0.1)
    return bnp.fit(model, corpus, num_warmup=10, num_samples=20, num_chains=2, progress=False)


@pytest.fixture(scope="module")
def rows():
    values = np.random.default_rng(1).poisson(3.0, (12, 5))
    frame = pd.DataFrame(values, columns=list("abcde"))
    return Sources.from_arrays([frame[:6], frame[6:]], names=["p", "q"])


@pytest.fixture(scope="module")
def factors(rows):
    model = bnp.PoissonGammaFactorAnalysis()
    return bnp.fit(model, rows, num_warmup=5, num_samples=5, num_chains=1, progress=False)


# --- rows


def test_series_of_covariates_are_taken_row_by_row(fit):
    x = np.arange(NUM_DOCS) % 2 + 0.01 * np.arange(NUM_DOCS)
    z = np.random.default_rng(2).normal(size=NUM_DOCS)
    wanted = fit.effects({"x": x, "z": z})
    series = {"x": pd.Series(x, index=SHUFFLED), "z": pd.Series(z, index=SHUFFLED[::-1])}
    pd.testing.assert_frame_equal(fit.effects(series), wanted)
    frame = pd.DataFrame({"x": x, "z": z}, index=SHUFFLED)
    pd.testing.assert_frame_equal(fit.effects(frame), wanted)
    kinds = pd.Series(np.where(x > 1, "b", "a"), index=SHUFFLED, dtype="category")
    assert fit.effects({"kind": kinds}).attrs["reference"] == {"kind": "a"}


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "string", "category"])
def test_covariates_have_any_dtype_of_pandas(fit, dtype):
    x = np.arange(NUM_DOCS) % 2
    plain = {"boolean": x.astype(bool), "string": x.astype(str), "category": x.astype(str)}
    values = plain.get(dtype, x)
    wanted = fit.effects({"x": values})["effect"]
    found = fit.effects({"x": pd.Series(values).astype(dtype)})["effect"]
    np.testing.assert_allclose(found, wanted)


YEARS = np.arange(2000, 2000 + NUM_DOCS)
DAYS = YEARS.astype(str).astype("datetime64[Y]").astype("datetime64[D]")


@pytest.mark.parametrize(
    "time",
    [
        list(YEARS),
        tuple(YEARS.astype(np.float32)),
        YEARS.astype(np.int16),
        pd.Series(YEARS, dtype="Int64", index=SHUFFLED),
        pd.Index(YEARS),
        [np.float64(year) for year in YEARS],
    ],
    ids=["list", "tuple", "int16", "Int64", "index", "float64"],
)
def test_years_of_numpy_are_years(fit, time):
    wanted = fit.topics_over_time(YEARS.tolist(), bins=4)
    pd.testing.assert_frame_equal(fit.topics_over_time(time, bins=4), wanted)


@pytest.mark.parametrize(
    "time",
    [
        *(DAYS.astype(f"datetime64[{unit}]") for unit in ("D", "s", "ms", "us", "ns")),
        *(list(DAYS.astype(f"datetime64[{unit}]")) for unit in ("D", "ns")),
        pd.Series(DAYS.astype("datetime64[ns]"), index=SHUFFLED),
        pd.DatetimeIndex(DAYS),
        pd.DatetimeIndex(DAYS, tz="Asia/Kolkata"),
        DAYS.astype(str).tolist(),
        [pd.Timestamp(day) for day in DAYS],
        DAYS.tolist(),
        np.ma.array(DAYS),
    ],
    ids=lambda time: f"{type(time).__name__}-{getattr(time, 'dtype', type(time[0]).__name__)}",
)
def test_dates_are_dates_in_every_resolution(fit, time):
    table = fit.topics_over_time(time, bins=4)
    assert table["start"].iloc[0] == pd.Timestamp("2000-01-01")
    assert table["end"].iloc[-1] == pd.Timestamp("2019-01-01")
    wanted = fit.topics_over_time(YEARS.tolist(), bins=4)
    assert table["num_tokens"].tolist() == wanted["num_tokens"].tolist()


def test_dates_long_ago(fit):
    days = [datetime.date(1500 + d, 1, 1) for d in range(NUM_DOCS)]
    table = fit.topics_over_time(np.array(days, "datetime64[s]"), bins=2)
    assert pd.Timestamp(table["start"].iloc[0]).year == 1500


def test_a_mask_of_pandas_selects_documents(corpus):
    mask = pd.Series(np.arange(NUM_DOCS) < 3, index=SHUFFLED, dtype="boolean")
    assert corpus.select(mask).doc_names == ("0", "1", "2")
    numbers = pd.Series([4, 2], dtype="Int64")
    assert corpus.select(numbers).doc_names == ("4", "2")


# --- names


def test_second_corpora_match_by_word_or_are_refused(corpus, fit):
    new = corpus.select([0, 1, 2])
    turned = new.with_vocabulary(corpus.vocabulary[::-1])
    matched, _ = fit.match(new.with_vocabulary(("zebra", *corpus.vocabulary[::-1])))
    np.testing.assert_array_equal(fit.transform(matched), fit.transform(new))
    for score in (fit.transform, fit.document_completion, fit.left_to_right, fit.stacked):
        with pytest.raises(ValueError, match=r"'truck'.*vocabulary"):
            score(turned)
    wider = corpus.with_vocabulary(("zebra", *corpus.vocabulary[::-1]))
    wanted = fit.coherence(reference=corpus, top=4)
    np.testing.assert_allclose(fit.coherence(reference=wider, top=4), wanted)
    np.testing.assert_allclose(fit.npmi(wider), fit.npmi(corpus))


def test_frames_are_put_together_by_the_names_of_their_columns():
    first = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "c"])
    second = pd.DataFrame([[30, 10, 20]], columns=["c", "a", "b"], index=[7])
    both = Sources.from_arrays([first, second, [[5, 6, 7]]])
    assert both.feature_names == ("a", "b", "c")
    assert both.values.tolist() == [[1, 2, 3], [10, 20, 30], [5, 6, 7]]
    turned = Sources.from_arrays([first, second], feature_names=["c", "b", "a"])
    assert turned.values.tolist() == [[3, 2, 1], [30, 20, 10]]
    plain = Sources.from_arrays([first.set_axis(range(3), axis=1)], feature_names=["x", "y", "z"])
    assert plain.feature_names == ("x", "y", "z")
    with pytest.raises(
        ValueError,
        match=r"'c' is in columns of arrays\[0\] but not in .*\[1\]; give both",
    ):
        Sources.from_arrays([first, second.rename(columns={"c": "d"})])
    with pytest.raises(
        ValueError,
        match=r"'d' is in feature_names but not in columns of arrays\[0\]",
    ):
        Sources.from_arrays([first], feature_names=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"columns of arrays\[0\] has 'a' at 0 and again at 1"):
        Sources.from_arrays([first.set_axis(["a", "a", "b"], axis=1)])


def test_numbers_that_are_names_of_columns():
    first = pd.DataFrame([[1, 2, 3]])
    second = pd.DataFrame([[30, 10, 20]], columns=[2, 0, 1])
    for frames in ([first, second], [first, second.rename(columns=str)]):
        both = Sources.from_arrays(frames)
        assert both.feature_names == ("0", "1", "2")
        assert both.values.tolist() == [[1, 2, 3], [10, 20, 30]]
    turned = Sources.from_arrays([first], feature_names=["2", "0", "1"])
    assert turned.values.tolist() == [[3, 1, 2]]


def test_frames_of_other_libraries_are_refused():
    class Frame:
        columns = ("a", "b")

        def __array__(self, dtype=None, copy=None):
            return np.ones((1, 2))

    with pytest.raises(ValueError, match=r"arrays\[0\] is of type Frame; give a pandas frame"):
        Sources.from_arrays([Frame()])


def test_counts_of_a_frame_match_by_word():
    frame = pd.DataFrame([[1, 0, 2], [0, 3, 0]], columns=["cat", "dog", "emu"])
    corpus = bnp.Corpus.from_counts(frame)
    assert corpus.vocabulary == ("cat", "dog", "emu")
    turned = frame[["emu", "cat", "dog"]]
    assert bnp.Corpus.from_counts(turned, vocabulary=corpus.vocabulary) == corpus
    with pytest.raises(ValueError, match="'ape' is in vocabulary but not in columns of counts"):
        bnp.Corpus.from_counts(frame, vocabulary=["cat", "dog", "ape"])


def test_second_sources_match_by_feature(rows, factors):
    frame = pd.DataFrame(np.asarray(rows.values), columns=rows.feature_names)
    turned = frame[["d", "a", "e", "c", "b"]]
    other = Sources.from_arrays([turned[6:], turned[:6]], names=["q", "p"])
    same = other.select(["p", "q"])
    assert same.feature_names != rows.feature_names
    np.testing.assert_array_equal(factors.transform(same), factors.transform(rows))
    assert factors.predict(same).log_prob == factors.predict(rows).log_prob
    assert factors.row_completion(same) == factors.row_completion(rows)
    classes = np.repeat(["p", "q"], 6)
    wanted = factors.retrieve(rows, classes, classes)
    found = factors.retrieve(same, classes, classes)
    assert found.mean_average_precision == wanted.mean_average_precision
    with pytest.raises(ValueError, match="'e' is in those of the training data but not"):
        factors.predict(Sources.from_arrays([frame.rename(columns={"e": "f"})], names=["p"]))


# --- what an array may hide or hold


MASK = np.arange(NUM_DOCS) == 3
HIDDEN = np.ma.array(np.arange(NUM_DOCS) % 2, mask=MASK)


@pytest.mark.parametrize(
    "use",
    [
        lambda corpus, fit: bnp.Corpus.from_counts(HIDDEN[:, None]),
        lambda corpus, fit: bnp.Corpus.from_counts(np.eye(20, dtype=int), labels=HIDDEN),
        lambda corpus, fit: bnp.Corpus.from_counts(np.eye(20, dtype=int), groups=HIDDEN),
        lambda corpus, fit: bnp.Corpus.from_ids([HIDDEN], num_words=2),
        lambda corpus, fit: corpus.select(HIDDEN),
        lambda corpus, fit: fit.effects({"x": HIDDEN}),
        lambda corpus, fit: fit.topics_over_time(np.ma.array(YEARS, mask=MASK)),
        lambda corpus, fit: bnp.LDA(2, alpha=np.ma.array([1.0, 2.0], mask=[0, 1])),
        lambda corpus, fit: TopicEstimator(bnp.LDA(2)).fit(HIDDEN[:, None]),
        lambda corpus, fit: TopicClassifier(bnp.MedLDA(2)).fit(np.eye(20, dtype=int), HIDDEN),
    ],
)  # fmt: skip
def test_masked_entries_are_no_data(corpus, fit, use):
    with pytest.raises(ValueError, match=r"has [13] masked entries, and what they"):
        use(corpus, fit)


def test_masked_rows_in_a_list_are_no_data():
    row = np.ma.array([1, 5], mask=[0, 1])
    for read in (bnp.Corpus.from_counts, lambda rows: Sources.from_arrays([rows])):
        with pytest.raises(ValueError, match="has 1 masked entries"):
            read([row, row.filled(2)])


def test_duplicates_of_small_integers_add_up():
    cells = np.array([200, 100], np.uint8), ([0, 0], [0, 0])
    matrix = scipy.sparse.coo_array(cells, shape=(1, 2))
    assert bnp.Corpus.from_counts(matrix).num_tokens == 300
    assert Sources.from_arrays([matrix]).values.tolist() == [[300, 0]]
    for kind in (bool, np.uint8):
        again = scipy.sparse.coo_array((np.ones(2, kind), cells[1]), shape=(1, 2))
        assert bnp.Corpus.from_counts(again).num_tokens == 2


def test_integers_of_several_widths_are_counts():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "of": ["p", "q"]})
    frame["c"] = pd.Series([1, 2], dtype="Int64")
    assert Sources.from_frame(frame, "of").kind == "counts"


def test_durations_are_no_integers():
    days = pd.to_timedelta([1, 2, 3], unit="D")
    for column in ("groups", "labels"):
        with pytest.raises(ValueError, match=f"{column} must be .*, got durations"):
            bnp.Corpus.from_counts(np.eye(3, dtype=int), **{column: days})


def test_true_is_no_concentration():
    for value in (True, np.True_, np.array(True)):
        with pytest.raises(ValueError, match="alpha must be a positive number or a NumPyro dist"):
            bnp.LDA(2, alpha=value)


def test_masked_entries_of_sources_are_missing():
    hidden = np.ma.array([[1, 999], [3, 4]], mask=[[0, 1], [0, 0]])
    sources = Sources.from_arrays([hidden, [[5, 6]]], allow_missing=True)
    assert sources.kind == "counts"
    assert sources.values.tolist() == [[1, 0], [3, 4], [5, 6]]
    assert sources.observed.tolist() == [[True, False], [True, True], [True, True]]
    with pytest.raises(ValueError, match=r"arrays\[0\]\[0, 1\] is masked; .*allow_missing=True"):
        Sources.from_arrays([hidden])


def test_nullable_numbers_of_pandas():
    counts = pd.DataFrame([[1, 0], [2, 3]], columns=["a", "b"])
    wanted = bnp.Corpus.from_counts(counts.to_numpy(), vocabulary=["a", "b"])
    assert bnp.Corpus.from_counts(counts.astype("Int64")) == wanted
    labels = pd.Series([1, 0], dtype="Int64")
    assert bnp.Corpus.from_counts(counts, labels=labels).label.tolist() == [1, 0]
    assert Sources.from_arrays([counts.astype("Float64")]).kind == "reals"
    labels[0] = None
    with pytest.raises(ValueError, match="labels of document 0 is nan; give a finite number"):
        bnp.Corpus.from_counts(counts, labels=labels)


def test_dates_are_no_numbers_of_groups():
    with pytest.raises(ValueError, match=r"groups of document 0 is .*give strings for all"):
        bnp.Corpus.from_counts(np.eye(20, dtype=int), groups=DAYS.astype("datetime64[ns]"))
