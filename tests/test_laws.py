"""The law matrix, a sample of it: `pytest tests/test_laws.py --full` runs all. See the folder laws."""


def test_law(law, example):
    law.check(example)
