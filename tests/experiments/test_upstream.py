"""Reports for other projects: they still run."""


def test_unrolled_rounds(load, capsys):
    load("upstream.unrolled_rounds").main(["--limit", "0"])
    header, row = capsys.readouterr().out.strip().splitlines()[1:]
    assert header.split() == ["rounds", "seconds"]
    rounds, seconds = row.split()
    assert (rounds, float(seconds) > 0) == ("16", True)
