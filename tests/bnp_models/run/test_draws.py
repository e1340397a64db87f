"""What a run has drawn: collected, saved in blocks, and turned into ArviZ data."""

import json

import jax
import numpy as np
import pytest

from bnp_models.run.draws import Draws, smallest_integers, versions
from bnp_models.run.runner import Runner

RECORD = ("z", "topic_tokens", "noise", "topic_tokens_mean")


@pytest.mark.parametrize(
    ("largest", "dtype"),
    [(0, np.uint8), (255, np.uint8), (256, np.uint16), (65535, np.uint16), (65536, np.uint32)],
)
def test_smallest_integers(largest, dtype):
    stored = smallest_integers(np.array([0, largest], np.int32))
    assert stored.dtype == dtype
    assert stored[1] == largest
    assert smallest_integers(np.zeros((2, 0), np.int32)).shape == (2, 0)
    assert smallest_integers(np.array([-1, largest], np.int32)).tolist() == [-1, largest]


def test_versions_are_plain():
    assert json.loads(json.dumps(versions())) == versions()
    assert {"jax", "jaxlib", "numpyro", "backend", "random"} <= set(versions())


def collect(runner, lengths, keep_states=3):
    """Run through these stretches as `fit` does."""
    draws = Draws(keep_states, runner)
    state = runner.init(jax.random.split(jax.random.key(0), 2))
    for length in lengths:
        stretch = runner.stretch(state, length)
        state = stretch.state
        draws.add(stretch.kept, state)
    return draws, state


class TestDraws:
    @pytest.fixture
    def runner(self, toy, tiny):
        return Runner(toy(max_topics=40).gibbs(record=RECORD[:3]), tiny, 2, 7, 2)

    def test_states_are_evenly_spaced(self, runner):
        # kept: the sweeps 5, 7, 9
        for keep_states, sweeps in ((0, []), (1, [9]), (2, [7, 9]), (3, [5, 7, 9]), (9, [5, 7, 9])):
            draws = Draws(keep_states, runner)
            stops = [draws.next_snapshot(sweep) for sweep in range(9)]
            assert stops == [min([s for s in sweeps if s > at], default=9) for at in range(9)]

    def test_blocks_are_joined(self, runner):
        draws, _ = collect(runner, [3, 2, 1, 1, 2])
        assert draws.num_kept == 3
        groups, at = draws.take()
        assert at == [0, 1, 2]
        assert groups["posterior"]["z"].shape == (2, 3, 31)
        assert groups["posterior"]["z"].dtype == np.uint8
        assert groups["posterior"]["topic_tokens"].dtype == np.int32  # counts are not packed
        np.testing.assert_array_equal(groups["states"]["z"], groups["posterior"]["z"])
        assert set(groups["sample_stats"]) == {"lp", "num_moved"}

    def test_a_state_is_kept_only_at_its_sweep(self, runner):
        draws, _ = collect(runner, [3, 3, 3])  # the first and second are passed by
        assert draws.take()[1] == [2]

    def test_slots_are_padded(self, toy, tiny):
        runner = Runner(toy(gamma=6.0, max_topics=1).gibbs(record=RECORD[:3]), tiny, 0, 6)
        draws, _ = collect(runner, [1, 1, 4], keep_states=0)
        sizes = {block["posterior/topic_tokens"].shape[-1] for _, block in draws._blocks["draws"]}
        first = draws._blocks["draws"][0][1]
        first["posterior/topic_tokens"] = first["posterior/topic_tokens"][..., :12]  # as if grown
        groups, at = draws.take()
        assert at == []
        assert "states" not in groups
        counts = groups["posterior"]["topic_tokens"]
        assert counts.shape == (2, 6, max(sizes))
        assert (counts.sum(-1)[:, 1:] == 31).all()

    def test_saved_and_read(self, runner, tmp_path):
        draws, _ = collect(runner, [3, 2, 2])
        draws.write(tmp_path)
        draws.write(tmp_path)  # nothing new
        files = {path.name for path in tmp_path.iterdir()}
        assert files == {"draws-00000000.npz", "states-00000000.npz", "states-00000001.npz"}
        again = Draws(3, runner)
        again.read(tmp_path, 2)
        assert again.num_kept == 2
        expected, found = draws.take(), again.take()
        assert found[1] == expected[1] == [0, 1]
        for group, variables in expected[0].items():
            for name, x in variables.items():
                np.testing.assert_array_equal(found[0][group][name], x)
                assert found[0][group][name].dtype == x.dtype

    def test_what_came_after_the_state_is_dropped(self, runner, tmp_path):
        draws, state = collect(runner, [3, 2])
        draws.write(tmp_path)
        for length in (2, 2):
            stretch = runner.stretch(state, length)
            state = stretch.state
            draws.add(stretch.kept, state)
            draws.write(tmp_path)
        again = Draws(3, runner)
        again.read(tmp_path, 1)
        assert again.num_kept == 1
        files = {path.name for path in tmp_path.iterdir()}
        assert files == {"draws-00000000.npz", "states-00000000.npz"}

    @pytest.mark.parametrize(
        "name", ["draws-00000000.npz", "draws-00000001.npz", "states-00000001.npz"]
    )
    def test_missing_files(self, runner, tmp_path, name):
        draws, state = collect(runner, [5])
        draws.write(tmp_path)
        stretch = runner.stretch(state, 2)
        draws.add(stretch.kept, stretch.state)
        draws.write(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(ValueError, match="lacks draws: its state follows 2"):
            Draws(3, runner).read(tmp_path, 2)
