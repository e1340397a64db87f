"""Numbers of slots: at the start, after an overflow, and for the rest of a run."""

from bnp_models.run import capacity


def test_what_the_user_chose_is_the_start():
    assert [capacity.at_start(128, need) for need in (17, 128)] == [128, 128]


def test_a_larger_need_gets_room():
    assert capacity.at_start(128, 129) == 176


def test_growth_is_for_the_rest_of_the_run():
    sizes = [capacity.larger(128, 140, sweep, 400) for sweep in (0, 5, 50, 200, 399)]
    assert sizes == [352, 352, 288, 192, 192]
    assert all(size % capacity.MARGIN == 0 for size in sizes)


def test_growth_is_never_small():
    assert capacity.larger(1024, 30, 1000, 1000) == 1536
    assert capacity.larger(1, 1, 0, 10) == capacity.MARGIN


def test_need_by_the_end():
    assert capacity.wanted_by_end(160, 50, 400) == 320  # eight times as many sweeps
    assert capacity.wanted_by_end(160, 400, 400) == 160


def test_multiples():
    assert [capacity.at_least(n) for n in (1, 16, 16.5, 17)] == [16, 16, 32, 32]
