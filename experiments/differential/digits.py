"""Digits: whether one topic carries the shape of the class, and all classes share the others.

Chen et al. (2015), section 6.4 and figure 9, show pictures of three classes. Here this is measured
for all classes. The versions of a topic name the class if the version of each class is nearer to
the mean picture of this class than to that of any other one.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from study.scores import about_fits

import bnp_models as bnp
from bnp_models.posterior.mixtures import one_by_one
from differential.data import of_group
from differential.measures import fits_of, model_of
from differential.settings import POOLED, TII, Sizes

__all__ = [
    "by_class", "by_class_alone", "class_pictures", "names_class", "version_distance",
]  # fmt: skip


def class_pictures(corpus: bnp.Corpus) -> Float[np.ndarray, "G V"]:
    """Return the distribution of the pixels of each class."""
    cell = np.asarray(corpus.group)[np.asarray(corpus.doc)].astype(np.int64)
    cell = cell * corpus.num_words + np.asarray(corpus.word)
    counts = np.bincount(cell, minlength=corpus.num_groups * corpus.num_words)
    counts = counts.reshape(corpus.num_groups, corpus.num_words).astype(float)
    return counts / counts.sum(axis=1, keepdims=True)


def names_class(
    phi: Float[np.ndarray, "G V K"], pictures: Float[np.ndarray, "G V"]
) -> Float[np.ndarray, " K"]:
    """Return the share of classes whose version of a topic is nearest to their own picture."""
    affinity = np.einsum("gvk,hv->kgh", np.sqrt(phi), np.sqrt(pictures))
    return (affinity.argmax(axis=2) == np.arange(len(pictures))).mean(axis=1)


def version_distance(phi: Float[np.ndarray, "G V K"]) -> Float[np.ndarray, " K"]:
    """Return the mean Hellinger distance between the versions of a topic."""
    root = np.sqrt(np.asarray(phi, np.float64)).transpose(2, 0, 1)
    distance = np.sqrt(np.maximum(1 - root @ root.swapaxes(1, 2), 0.0))
    pairs = np.triu_indices(phi.shape[0], 1)
    return distance[:, pairs[0], pairs[1]].mean(axis=1)


def by_class(
    pictures: tuple[Any, tuple[int, int]], *, topics: int, sizes: Sizes, seed: int,
    start: int | None, shown: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    """Fit TII with classes as groups; measure the versions of topics in the last state of chains.

    The versions in a few classes are kept for a picture, the topic that differs most first.
    """
    corpus, shape = pictures
    (fit,) = fits_of(TII, corpus, model_of(TII, topics), sizes, seed=seed, start=start)
    of_class, chains, drawn = class_pictures(corpus), [], None
    per_chain = len(fit.mixtures) // sizes.num_chains
    for s, mixture in enumerate(one_by_one(fit.mixtures)):
        if (s + 1) % per_chain:
            continue
        phi = np.asarray(mixture.phi[0], np.float64)
        distance = version_distance(phi)
        order = np.argsort(-distance)
        tokens = np.bincount(np.asarray(fit.mixtures.state(s)["z"]), minlength=topics)
        chains.append({
            "distance": np.round(distance[order], 4).tolist(),
            "names_class": np.round(names_class(phi, of_class)[order], 4).tolist(),
            "share_of_pixels": np.round(tokens[order] / tokens.sum(), 4).tolist(),
        })  # fmt: skip
        if drawn is None:
            drawn = {
                name: np.round(phi[corpus.group_names.index(name)][:, order].T, 5).tolist()
                for name in shown
            }
    return {
        "chains": chains, "versions": drawn, "shape": list(shape),
        "samples": {name: _first(corpus, name) for name in shown},
        **about_fits(fit),
        "summary": f"names the class: {[chain['names_class'][:3] for chain in chains]}",
    }  # fmt: skip


def by_class_alone(
    pictures: tuple[Any, tuple[int, int]], *, topics: int, sizes: Sizes, seed: int,
    shown: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    """Fit LDA to a few classes, each alone, and keep the topics of the last state for a picture."""
    corpus, shape = pictures
    few = corpus.select(np.isin(np.array(corpus.group_names)[np.asarray(corpus.group)], shown))
    drawn = {}
    for name in shown:
        (fit,) = fits_of(
            POOLED, of_group(few, name), model_of(POOLED, topics), sizes, seed=seed, num_chains=1,
            keep_states=1,
        )  # fmt: skip
        phi = np.asarray(next(one_by_one(fit.mixtures)).phi[0, 0])
        tokens = np.bincount(np.asarray(fit.mixtures.state(0)["z"]), minlength=topics)
        drawn[name] = np.round(phi[:, np.argsort(-tokens)].T, 5).tolist()
    return {"versions": drawn, "shape": list(shape)}


def _first(corpus: bnp.Corpus, name: str) -> list[int]:
    """Return the pixels that are on in the first picture of a class."""
    d = int(np.flatnonzero(np.asarray(corpus.group) == corpus.group_names.index(name))[0])
    return np.asarray(corpus.document(d)).tolist()
