"""What a run keeps of its way from the start: points, checkpoints, and the group of the result."""

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.posterior import arviz_data
from bnp_models.run import progress
from bnp_models.run.progress import History


def filled(sweeps):
    """Return a history of two chains whose values tell the sweep."""
    history = History()
    for sweep in sweeps:
        history.add(sweep, np.array([-1.0, -2.0]) * sweep, np.array([1, 2]) * sweep)
    return history


class TestHistory:
    def test_dataset(self):
        found = filled([1, 3, 7]).dataset("num_topics_used")
        assert found is not None
        assert found["sweep"].to_numpy().tolist() == [1, 3, 7]
        assert found["lp"].to_numpy().tolist() == [[-1, -3, -7], [-2, -6, -14]]
        assert found["num_topics_used"].to_numpy().tolist() == [[1, 3, 7], [2, 6, 14]]
        assert (np.diff(found["seconds"]) >= 0).all()
        assert History().dataset("num_topics_used") is None

    @pytest.mark.parametrize("last", [5, 6, 7, 8, 99, 100])
    def test_the_number_of_points_is_bounded(self, monkeypatch, last):
        monkeypatch.setattr(progress, "MOST", 6)
        found = filled(range(1, last + 1)).dataset("used")
        assert found is not None
        sweeps = found["sweep"].to_numpy()
        assert 3 < len(sweeps) <= 6
        assert sweeps[[0, -1]].tolist() == [1, last]
        assert (np.diff(sweeps) > 0).all()
        assert (found["lp"][1] == -2 * sweeps).all()

    def test_what_follows_the_saved_state_is_dropped(self, tmp_path):
        written = filled([1, 3, 7])
        written.write(tmp_path)
        again = History()
        again.read(tmp_path, 5)
        again.add(6, np.array([-6.0, -12]), np.array([6, 12]))
        found, expected = again.dataset("used"), written.dataset("used")
        assert found is not None
        assert expected is not None
        assert found.isel(sweep=slice(2)).identical(expected.isel(sweep=slice(2)))
        assert found["sweep"].to_numpy().tolist() == [1, 3, 6]
        assert (np.diff(found["seconds"]) >= 0).all()  # the clock went on


class Watch:
    """A progress display that keeps what it is told, and at which a run may die."""

    def __init__(self, last=np.inf):
        self.told, self.last = [], last

    def update(self, sweep, used, lp, note=""):
        self.told.append((sweep, used.tolist(), lp.tolist()))
        if sweep >= self.last:
            raise RuntimeError("dies")

    def close(self):
        pass


def fit(model, corpus, **options):
    sizes = {"num_warmup": 4, "num_samples": 5, "num_chains": 2, "checkpoint_seconds": 0.0}
    return bnp.fit(model, corpus, **{**sizes, "progress": False, **options})


def way_of(found):
    """Return sweep, topics in use and log joint as a progress display is told them."""
    history = arviz_data.group(found.data, "history").transpose("sweep", "chain")
    columns = (history[name].to_numpy().tolist() for name in ("sweep", "num_topics_used", "lp"))
    return list(zip(*columns, strict=True))


class TestFit:
    @pytest.fixture
    def model(self, toy, monkeypatch):
        model = toy(gamma=6.0, max_topics=2)  # it grows
        monkeypatch.setitem(bnp.MODELS, "Toy", toy)
        return model

    def test_result_holds_what_the_progress_line_showed(self, model, tiny, tmp_path):
        watch = Watch()
        found = fit(model, tiny, progress=watch)
        assert way_of(found) == watch.told
        assert watch.told[0][0] < 4  # in the warm-up
        assert watch.told[-1][0] == 9
        seconds = arviz_data.group(found.data, "history")["seconds"].to_numpy()
        assert (np.diff(seconds) >= 0).all()
        assert seconds[-1] <= found.data.attrs["sampling_seconds"]
        assert way_of(found.of_chain(1)) == [(s, k[1:], lp[1:]) for s, k, lp in watch.told]
        again = bnp.Fit.load(found.save(tmp_path / "draws.nc"), tiny)
        names = ("history", "posterior")
        for mine, theirs in ((arviz_data.group(x.data, n) for x in (again, found)) for n in names):
            assert mine.identical(theirs)

    def test_a_run_that_died_goes_on(self, model, tiny, tmp_path):
        first, second = Watch(last=6), Watch()
        with pytest.raises(RuntimeError, match="dies"):
            fit(model, tiny, progress=first, checkpoint=tmp_path)
        found = fit(model, tiny, progress=second, checkpoint=tmp_path)
        start = found.data.attrs["start_sweep"]
        assert 0 < start < 9
        before = [told for told in first.told if told[0] <= start]
        assert way_of(found) == before + second.told
        whole = dict(zip(*arrays_of(fit(model, tiny)), strict=True))
        for sweep, lp in zip(*arrays_of(found), strict=True):
            assert whole.get(sweep, lp) == lp
        read = fit(model, tiny, checkpoint=tmp_path)  # finished: nothing runs
        assert way_of(read) == way_of(found)

    def test_a_finished_run_of_an_older_version_has_none(self, model, tiny, tmp_path):
        fit(model, tiny, checkpoint=tmp_path)
        (tmp_path / "history.npz").unlink()
        found = fit(model, tiny, checkpoint=tmp_path)
        assert not arviz_data.has_group(found.data, "history")
        with pytest.raises(ValueError, match="data must have the group 'history', which"):
            found.plot_history()


def arrays_of(found):
    """Return the sweeps, and the log joint of all chains at each."""
    sweeps, _, lp = zip(*way_of(found), strict=True)
    return sweeps, [tuple(x) for x in lp]
