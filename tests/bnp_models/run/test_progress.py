"""The progress line."""

import io
import threading
import time

import numpy as np
import pytest

from bnp_models.base.model import FACTORS
from bnp_models.run.progress import Bar, Lines, Progress, Silent


def test_bar():
    shown = io.StringIO()
    bar = Bar(10, 30, start=0, items=2000, file=shown)
    assert isinstance(bar, Progress)
    assert "compiling" in shown.getvalue()
    bar.update(5, np.array([3, 3]), np.array([-1234.5, -1235.5]))
    line = shown.getvalue().split("\r")[-1]
    assert "warmup" in line
    assert "5/30" in line
    assert "3 topics, lp -1235" in line
    assert "tokens/s" in line
    bar.update(30, np.array([3, 5]), np.array([-1.0, -2.0]), "replayed with 32 slots")
    line = shown.getvalue().split("\r")[-1]
    assert "sample" in line
    assert "30/30" in line
    assert "3-5 topics, lp -1.5" in line
    assert line.rstrip().endswith("replayed with 32 slots]")
    bar.close()


def test_a_resumed_bar_starts_where_the_run_did():
    shown = io.StringIO()
    bar = Bar(10, 30, start=12, items=1, terms=FACTORS, file=shown)
    bar.update(13, np.array([1]), np.array([0.0]))
    assert "13/30" in shown.getvalue()
    assert "1 factors" in shown.getvalue()
    assert "rows/s" in shown.getvalue()
    bar.close()


@pytest.mark.parametrize("good", [0, 1, 3])  # writes before the reader leaves
def test_a_stream_that_is_gone_stops_nothing(good):
    class Pipe(io.StringIO):
        left = good

        def write(self, text):
            self.left -= 1
            if self.left < 0:
                raise BrokenPipeError
            return super().write(text)

    done = []

    def use():
        bar = Bar(10, 30, start=0, items=2000, file=Pipe())
        time.sleep(1.5)  # the thread that shows the seconds meets the broken pipe
        for sweep in (5, 30):
            bar.update(sweep, np.array([3]), np.array([-1.0]))
        bar.close()
        done.append(True)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(60)
    assert done


def test_silence(capsys):
    silent = Silent()
    assert isinstance(silent, Progress)
    silent.update(1, np.array([1]), np.array([0.0]))
    silent.close()
    assert capsys.readouterr() == ("", "")


def test_lines_are_printed_before_the_first_sweep(capsys):
    lines = Lines(30, FACTORS, seconds=0.01)
    lines.begin()
    time.sleep(0.2)
    lines.update(30, np.array([3, 5]), np.array([-1.0, -2.0]))
    shown = capsys.readouterr().err.splitlines()
    assert "s: compiling" in shown[0]
    assert "sweep 30 of 30" in shown[-1]
    time.sleep(0.1)
    lines.close()
    assert not capsys.readouterr().err
