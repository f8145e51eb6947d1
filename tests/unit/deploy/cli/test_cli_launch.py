"""`synod launch` before anything runs: what it says of its tables."""

from pathlib import Path

from synod.deploy.cli.launch import find_equal


def test_tables_that_are_the_same_are_found(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("north.csv", "south.csv", "west.csv", "copy.csv")]
    for path, text in zip(paths, ("a\n1\n", "a\n2\n", "a\n3\n", "a\n2\n"), strict=True):
        path.write_text(text)
    north, south, west, copy = paths
    assert find_equal([north, south, west]) == []
    assert find_equal(paths) == [(south, copy)]
    assert find_equal([north, west, north]) == [(north, north)]
    assert find_equal([copy, south, south]) == [(copy, south), (copy, south)]
