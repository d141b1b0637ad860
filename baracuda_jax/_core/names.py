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
