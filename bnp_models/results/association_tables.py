r"""Which words of the groups stand for a common word, in models with a transform.

The common words of a topic are global words. Each table of a topic in a group serves a local word w
and stands for one global word v. The strength of the association of w with v in a topic of a group
is the share of w among the tables that stand for v there (Chen et al. 2015, figure 5):

$$\frac{\mathrm{E}[q_{gkwv}]}{\sum_w \mathrm{E}[q_{gkwv}]}$$

where q counts the tables, and the mean is over kept states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.results.result import Fit

__all__ = ["associations"]


def associations(
    fit: Any, word: str, topic: int | None = None, *, num_words: int = 5
) -> pd.DataFrame:
    """List the words of each group that stand for a common word.

    Parameters
    ----------
    fit
        Fit of a `DifferentialTopicModel` with a transform.
    word
        A global word of the transform.
    topic
        Number of one topic; all together by default.
    num_words
        Words of each group to name at most.

    Returns
    -------
    table
        `group`, `word` (of the group), `strength` (in [0, 1]) and `tables`, the expected number of
        tables of the word that stand for the common word in a state. Words without any are left
        out. The strongest come first in each group.

    Raises
    ------
    ValueError
        If the model has no transform, there is no topic of that number, or the transform has no
        such global word.
    """
    model: Any = fit.model if isinstance(fit, Fit) else None
    if getattr(model, "transform", None) is None:
        raise ValueError(
            "fit must be that of a DifferentialTopicModel with a transform, got "
            f"{arguments.short_repr(fit)}"
        )
    fit = fit.shown
    num_words = arguments.integer("num_words", num_words, 1)
    names = model.common_words(fit.dataset)
    word = arguments.text("word", word)
    if word not in names:
        raise ValueError(
            f"word is {word!r}, which is no global word of the transform; give one of "
            f"{arguments.short_repr(list(names))}"
        )
    number, rng = fit.alignment.number, np.random.default_rng(0)
    if topic is not None:
        topic = arguments.integer("topic", topic)
        if topic >= fit.alignment.num_topics:
            raise ValueError(
                f"topic must be below {fit.alignment.num_topics}, the number of topics, got {topic}"
            )
    total = np.zeros((fit.dataset.num_groups, fit.dataset.num_words))
    for s in range(len(fit.mixtures)):
        state = fit.mixtures.state(s)
        tables = model.tables_for(rng, state, fit.dataset, names.index(word))
        slots = slice(None) if topic is None else np.flatnonzero(number[s] == topic)
        total += tables[:, slots].sum(axis=1)
    total /= len(fit.mixtures)
    rows = []
    for g, name in enumerate(fit.dataset.group_names):
        order = np.argsort(-total[g], kind="stable")[:num_words]
        for v in order[total[g, order] > 0]:
            strength = total[g, v] / total[g].sum()
            rows.append((name, fit.dataset.vocabulary[v], strength, total[g, v]))
    return pd.DataFrame(rows, columns=["group", "word", "strength", "tables"])
