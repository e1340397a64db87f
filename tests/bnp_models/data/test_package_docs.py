"""The corpus of package documentation: it is there, it reads as language, it repeats."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from bnp_models.data.package_docs import PLACES, load_package_docs, public_docstrings, sentences


@pytest.fixture(scope="module")
def corpus():
    return load_package_docs()


def test_size(corpus):
    assert 1500 <= corpus.num_docs <= 4500
    assert 100_000 <= corpus.num_tokens <= 300_000
    assert 2500 <= corpus.num_words <= 6000
    assert set(corpus.group_names) == set(PLACES)
    assert min(Counter(corpus.group.tolist()).values()) > 50


def test_documents_are_what_they_are_called(corpus):
    assert len(set(corpus.doc_names)) == corpus.num_docs
    for name, words in {
        "scipy.stats.kruskal": {"hypothesis", "median", "samples"},
        "numpy.linalg.svd": {"singular", "matrix"},
        "sklearn.cluster.KMeans": {"centroids", "clusters"},
        "pandas.DataFrame.merge": {"join", "columns"},
    }.items():
        d = corpus.doc_names.index(name)
        assert words <= set(corpus.words(d))
        assert corpus.group_names[corpus.group[d]] == name.split(".")[0]


def test_code_is_left_out(corpus):
    vocabulary = set(corpus.vocabulary)
    assert not vocabulary & {"plt", "kwargs", "dtype", "ndarray", "doi", "https"}
    assert all(word.isalpha() and word.islower() for word in vocabulary)


def test_parts_repeat_and_missing_packages_do_not_matter(monkeypatch):
    monkeypatch.setitem(PLACES, "no_such_package", ("module",))
    some = load_package_docs(("no_such_package", "optax"))
    assert some == load_package_docs(["optax"])
    assert some.group_names == ("optax",)
    with pytest.raises(ValueError, match=r"none of \['no_such_package'\] is installed"):
        load_package_docs(["no_such_package"])


@pytest.mark.parametrize("packages", [["torch"], "numpy"])
def test_unknown_packages_are_refused(packages):
    with pytest.raises(ValueError, match=f"packages must be .*got '{packages[0][0]}"):
        load_package_docs(packages)


@pytest.mark.slow
def test_what_one_package_hangs_into_another_is_left_out(monkeypatch):
    """As ArviZ does with accessors: the corpus must not depend on what has been imported."""

    class Accessor:
        """Say something about a data set."""

    assert not Accessor.__module__.startswith("xarray")
    places = {"xarray": ["Dataset"]}
    before = public_docstrings(places)
    monkeypatch.setattr("xarray.Dataset.accessor", Accessor, raising=False)
    assert public_docstrings(places) == before
    monkeypatch.setattr(Accessor, "__module__", "xarray.accessors")
    assert "xarray.Dataset.accessor" in public_docstrings(places)


@pytest.mark.slow
def test_nothing_is_printed_and_nothing_heavy_imported(corpus):
    code = (
        "import sys; from bnp_models.data.package_docs import load_package_docs;"
        "before = set(sys.modules); digest = load_package_docs().digest;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(digest, *new & {'matplotlib', 'torch', 'tensorflow', 'flax', 'haiku', 'dask'})"
    )
    environment = os.environ | {"PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert run.stdout.strip() == corpus.digest
    assert run.stderr == ""


NUMPYDOC = """
    smooth(x, *, width=3)

    Smooth a signal by a moving window, see `numpy.convolve`.

    .. versionadded:: 1.2
       Fast path.

    Parameters
    ----------
    x, y : array_like, optional
        The noisy signal. If ``None``, a :class:`Signal` is drawn.
    width : {3, 5}
        Number of neighbours; :math:`w > 1`.

    Returns
    -------
    out : ndarray
        Averages of neighbours.

    See Also
    --------
    rough : The opposite.

    Notes
    -----
    The window is *flat* [1]_ and ends are padded as in::

        y = [0, x, 0]

    .. math::

        y_t = \\sum_s x_s

    After that the `moving average <https://example.org>`_ stays.

    References
    ----------
    .. [1] A. Author, "Windows", 1999.

    Examples
    --------
    Smooth a step:

    >>> smooth([0, 1])
    array([0, 1])
"""

GOOGLE = """Rescale the gradients.

  Args:
    updates: a tree of gradients.
    scale (float): the factor, `0.5` by default,
      for every leaf.

  Returns:
    The rescaled tree.

  Example:
    >>> rescale(g)

  Note:
    Momentum is kept.
"""

SPHINX = """
    Draw from the posterior.

    :param model: Program of the model.
    :param int seed: Start of the stream.
    :return: Samples.
"""


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (
            NUMPYDOC,
            [
                "Smooth a signal by a moving window, see .",
                "The noisy signal.",
                "If , a is drawn.",
                "Number of neighbours;",
                ".",
                "Averages of neighbours.",
                "The window is *flat* and ends are padded as in::",
                "After that the moving average stays.",
            ],
        ),
        (
            GOOGLE,
            [
                "Rescale the gradients.",
                "a tree of gradients.",
                "the factor, by default, for every leaf.",
                "The rescaled tree.",
                "Momentum is kept.",
            ],
        ),
        (
            SPHINX,
            [
                "Draw from the posterior.",
                "Program of the model.",
                "Start of the stream.",
                "Samples.",
            ],
        ),
        ("", []),
        ("f(x)", []),
    ],
    ids=["numpydoc", "google", "sphinx", "empty", "signature"],
)
def test_sentences(docstring, expected):
    assert sentences(docstring) == expected
