import pytest


@pytest.fixture
def timing(load):
    return load("study.timing")


class Clocked:
    """A quarter of a second per sweep; the first turn after two calls compiles."""

    def __init__(self, name="a", calls=None):
        self.name, self.calls, self.sweeps, self.compiled, self.turns = name, calls, 0, False, 0

    def advance(self, num_sweeps):
        if self.calls is not None:
            self.calls.append(self.name)
        self.turns += 1
        self.sweeps += num_sweeps
        self.compiled = self.name == "b" and self.turns == 1
        return 100.0 if self.compiled else 0.25 * num_sweeps

    def topics(self):
        return [7]


def test_turns_alternate_and_compiling_turns_are_repeated(timing):
    calls = []
    running = {name: Clocked(name, calls) for name in "ab"}
    found = timing.take_turns(running, {"a": 8, "b": 4}, turns=3)
    assert calls == [*["a", "b", "b"], *["b", "a"], *["a", "b"]]
    assert found["a"] == {"seconds": [2.0] * 3, "topics": [7] * 3}
    assert found["b"] == {"seconds": [1.0] * 3, "topics": [7] * 3}


def test_scores_are_taken_on_the_way(timing):
    moving = Clocked()
    found = timing.until(moving, lambda: {"score": moving.sweeps}, seconds=64.0, points=5)
    # marks at 1/4, 1, 4, 16, 64 seconds, four sweeps a second
    assert found["seconds"] == pytest.approx([0.25, 1.0, 4.0, 16.0, 64.0], rel=0.02)
    assert found["sweeps"] == found["score"] == [4 * t for t in found["seconds"]]


def test_marks_that_are_passed_together_count_once(timing):
    marks = timing.Marks(256.0, 3)  # 1, 16, 256
    assert not marks.passed(0.5)
    assert marks.passed(20.0)
    assert not marks.passed(30.0)
    assert marks.next() == pytest.approx(256)
    assert marks.passed(255.0)  # all but
    assert marks.next() is None


def test_time_of_arrival_is_read_off_the_curve(timing):
    seconds, scores = [1.0, 4.0, 16.0, 64.0], [900.0, 800.0, 850.0, 700.0]
    assert timing.arrival(seconds, scores, 1000) == 1
    assert timing.arrival(seconds, scores, 850) == pytest.approx(2)
    assert timing.arrival(seconds, scores, 775) == pytest.approx(32)
    assert timing.arrival(seconds, scores, 699) is None
