"""The names of operands and results. One of an op's may begin with a star: it stands for as many arrays as there are."""


def unrounded(name):
    """That of the result which is `name` as it was computed, before it is rounded to the operands' dtype."""
    return f"wide_{name}"


def has_star(names):
    return any(name.startswith("*") for name in names)


def spelled(names, count):
    """Those of so many arrays: "x", "*ys" and 3 give "x", "ys0", "ys1"."""
    many = range(count - len(names) + 1)
    each = lambda name: [f"{name[1:]}{i}" for i in many] if name.startswith("*") else [name]
    return tuple(one for name in names for one in each(name))


def spelled_as(names, others, count):
    """Those of `names` where the star stands for as many arrays as it does in `others`, which are so many arrays."""
    return spelled(names, len(names) + count - len(others))


def spelled_keys(of_name, names, count):
    """{name: value} by the names of so many arrays: what is said of a star's is said of each."""
    some = [name for name in names if name in of_name]
    return {one: of_name[name] for name in some for one in spelled_as((name,), names, count)}
