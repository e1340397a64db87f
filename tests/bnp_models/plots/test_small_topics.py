"""Topics whose share rounds to 0.00%, and the table of topics as text."""

import numpy as np
import pandas as pd
import pytest

from bnp_models.plots.small_topics import MIN_SHARE, small, small_text
from bnp_models.report.text import topics_text


def test_small_shares_are_those_that_round_to_nothing():
    share = np.array([0.3, MIN_SHARE, 0.0000499, 0.0, np.nan])
    assert small(share).tolist() == [False, False, True, True, False]
    assert [f"{x:.2%}" == "0.00%" for x in share] == [False, False, True, True, False]
    assert not small([0.00001, 0.0]).any()  # nobody else is there
    assert not small([]).any()


@pytest.mark.parametrize(
    ("count", "share", "where", "said"),
    [
        (3, 0.00007, "", "3 topics below 0.005%, together 0.007%"),
        (1, 0.00004, "", "1 topic below 0.005%: 0.004%"),
        (2, 1e-9, "", "2 topics below 0.005%, together less than 0.0005%"),
        (2000, 0.0123, "", "2,000 topics below 0.005%, together 1.2%"),
        (2, 0.0, " in all", "2 topics below 0.005% in all, together at most 0%"),
    ],
)
def test_what_is_said_of_small_topics(count, share, where, said):
    assert small_text(count, share, where) == said


def test_the_text_of_topics_loses_nothing():
    share = np.array([0.6, 0.00002, 0.3, 0.00003, 0.09])
    table = pd.DataFrame(
        {
            "words": [f"word{k}" for k in range(5)],
            "prevalence": share,
            "lower": share / 2,
            "upper": share * 1.1,
            "other_chains": [1, 0, 1, 1, 1],
            "similarity": [0.9, np.nan, 0.9, 0.9, 0.9],
            "lowest_share": 0.1,
            "highest_share": 0.2,
        }
    )
    table.attrs["unmatched"] = 0.01
    text = topics_text(table, num_others=1)
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["0", "2", "4"]
    assert "and 2 topics below 0.005%, together 0.005% of the tokens" in text.splitlines()[4]
    assert "smaller topics" not in text
    assert "1.0% of the tokens are in topics of some draws" in text
    text = topics_text(table, num_others=1, num_rows=1)
    assert text.splitlines()[2:4] == [
        "and 2 smaller topics, together 39.0% of the tokens",
        "and 2 topics below 0.005%, together 0.005% of the tokens",
    ]
    assert len(table) == 5
