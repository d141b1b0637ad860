"""`patch_jax`: programs get mirrors, JAX and this package get JAX's functions, and everything is undone."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import Example, has_derivative
from jax.experimental import sparse
from plans import calls

import baracuda_jax as bj
from baracuda_jax._core import compat
from baracuda_jax._core.op import OPS
from baracuda_jax._mirror.mirror import MIRRORS

X, IDS = sent.arange(12.0).reshape(4, 3), sent.asarray([0, 1, 1, 0])
PRIMITIVES = {getattr(op, kind) for op in OPS.values() for kind in ("forward", "tangent", "backward")} - {None}


@pytest.fixture(autouse=True)
def unpatched():
    """JAX as it is, and no caches of what another test traced."""
    yield
    bj.unpatch_jax()
    for name, mirror in MIRRORS.items():
        assert getattr(mirror.module, name.rpartition(".")[2]) is mirror.original


def ours_in(fun, *args):
    """The primitives of baracuda_jax's ops in a program."""
    return {e.primitive.name for e in compat.equations(jax.make_jaxpr(fun)(*args)) if e.primitive in PRIMITIVES}


def test_a_program_gets_the_mirror_until_the_context_ends():
    program = lambda: lambda x: jax.ops.segment_sum(x, IDS, 2)  # JAX caches traces of a function
    want = program()(X)
    assert not ours_in(program(), X)
    with bj.patch_jax():
        assert ours_in(program(), X) == {"segment_sum"}
        np.testing.assert_array_equal(program()(X), want)
    assert not ours_in(program(), X)


def test_a_call_patches_until_unpatch():
    bj.patch_jax()
    assert jnp.cumsum is not MIRRORS["numpy.cumsum"].original
    bj.unpatch_jax()
    assert jnp.cumsum is MIRRORS["numpy.cumsum"].original


def test_a_context_ends_after_an_error():
    with pytest.raises(KeyError), bj.patch_jax():
        raise KeyError
    assert jnp.cumsum is MIRRORS["numpy.cumsum"].original


def test_the_stand_in_looks_like_jaxs():
    with bj.patch_jax():
        assert jnp.cumsum.__name__ == "cumsum" and jnp.cumsum.__module__ == MIRRORS["numpy.cumsum"].original.__module__


@pytest.mark.parametrize("only", ["ops", "numpy.linalg", ["lax.cumsum", "nn"], "lax.top_k"])
def test_only_what_is_asked_is_replaced(only):
    patch = bj.patch_jax(only)
    for name, mirror in MIRRORS.items():
        asked = [only] if isinstance(only, str) else only
        inside = any(name.startswith(f"{part}.") for part in asked) and not mirror.differs
        is_replaced = getattr(mirror.module, name.rpartition(".")[2]) is not mirror.original
        assert is_replaced == (name in asked or inside) == (name in patch.names), name


def test_by_default_nothing_that_differs_is_replaced():
    assert set(bj.patch_jax().names) == {name for name, mirror in MIRRORS.items() if not mirror.differs}


def test_patches_may_overlap():
    """Each ends by itself, in any order."""
    has = lambda name: getattr(MIRRORS[name].module, name.rpartition(".")[2]) is not MIRRORS[name].original
    first, second = bj.patch_jax("ops"), bj.patch_jax(["ops.segment_sum", "lax.sort"])
    with first:
        with bj.patch_jax("ops"):
            assert has("ops.segment_max")
        assert has("ops.segment_max")
    assert has("ops.segment_sum") and has("lax.sort") and not has("ops.segment_max")
    with second:
        pass
    assert not has("ops.segment_sum") and not has("lax.sort")


def test_a_stand_in_that_was_kept_is_jaxs_after_the_patch():
    with bj.patch_jax():
        kept = jnp.cumsum
        assert ours_in(lambda x: kept(x), X) == {"cumsum"}
    assert not ours_in(lambda x: kept(x), X)


def test_what_others_put_into_jax_stays(monkeypatch):
    with bj.patch_jax("numpy.cumsum"):
        monkeypatch.setattr(jnp, "cumsum", other := lambda x: x)
    assert jnp.cumsum is other
    monkeypatch.undo()  # puts the stand-in back, which is JAX's function by now
    jnp.cumsum = MIRRORS["numpy.cumsum"].original


def test_other_threads_see_the_patch():
    found = []
    with bj.patch_jax("numpy.cumsum"):
        thread = threading.Thread(target=lambda: found.append(ours_in(lambda x: jnp.cumsum(x), X)))
        thread.start()
        thread.join()
    assert found == [{"cumsum"}]


@pytest.mark.parametrize(
    "transformed",
    [
        lambda: jax.vmap(jnp.cumsum),
        lambda: jax.jit(jnp.cumsum),
        lambda: jax.checkpoint(jnp.cumsum),
        lambda: lambda x: jax.lax.map(jnp.cumsum, x),
        lambda: lambda x: jax.tree.map(jnp.cumsum, [x]),
        lambda: lambda x: jax.lax.cond(True, jnp.cumsum, jnp.cumsum, x),
        lambda: lambda x: jax.jvp(jnp.cumsum, (x,), (x,)),
        lambda: lambda x: jax.vjp(jnp.cumsum, x)[0],
        lambda: lambda x: jax.lax.scan(lambda c, row: (c, jnp.cumsum(row)), 0, x),
        lambda: jax.grad(lambda x: jax.vmap(jnp.cumsum)(x).sum()),
        lambda: jax.hessian(lambda x: (jnp.cumsum(x) ** 3).sum()),
        lambda: jax.jacfwd(jax.jacrev(lambda x: jnp.cumsum(x) ** 2)),
    ],
    ids=range(12),
)
def test_what_a_transformation_calls_is_the_programs(transformed):
    want = transformed()(X)
    with bj.patch_jax("numpy.cumsum"):
        fun = transformed()
        assert any(name.startswith("cumsum") for name in ours_in(fun, X))
        jax.tree.map(lambda y, z: np.testing.assert_allclose(y, z, rtol=1e-6), fun(X), want)


@pytest.mark.parametrize(
    "library",
    [
        lambda x: jax.nn.softmax(x),
        lambda x: jax.nn.standardize(x),
        lambda x: jax.scipy.special.logsumexp(x),
        lambda x: jax.nn.log_softmax(x),
        lambda x: jnp.ptp(x),
        lambda x: jnp.cov(x),
        lambda x: sparse.BCOO.fromdense(x, nse=4).data,
        lambda x: sparse.BCOO.fromdense(x, nse=4).sum_duplicates(nse=4).data,
        lambda x: x.sum(),
    ],
    ids=range(9),
)
def test_jaxs_own_code_keeps_jaxs_functions(library):
    """Its traces are cached: one with an op of baracuda_jax would be found by the op's own reference."""
    with bj.patch_jax(list(MIRRORS)):
        assert not ours_in(library, X)


@pytest.mark.parametrize("prefer", ["native", "xla"])
def test_no_op_is_made_of_itself(op, prefer):
    """Under a patch of everything, an op and its derivatives lower to the same programs as without."""
    example = Example(op, op.cases[0], "float32" if "float32" in op.dtypes else op.dtypes[0])

    def fun(x):
        with bj.prefer(prefer):
            return example.with_arguments(example.args).fun(x)

    def programs():
        jax.clear_caches()
        compat._trace.cache_clear()
        lowered = lambda fun, *args: jax.jit(fun).lower(*args).as_text()
        texts = [lowered(lambda x: fun(x), example.x)]
        if has_derivative(op):
            gradient = lambda x: jax.vjp(fun, x)[1](example.y)[0]
            texts += [lowered(gradient, example.x), lowered(jax.vmap(gradient), np.stack([example.x] * 2))]
            texts.append(lowered(lambda x: jax.jvp(gradient, (x,), (x,))[1], example.x))
        return texts

    with bj.patch_jax(list(MIRRORS)):
        patched = programs()
    assert patched == programs()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["sort", "argsort", "cumsum", "cumprod", "median"])
def test_a_reference_that_names_its_mirror_keeps_jaxs_function(name):
    """Called by itself and by its mirror, under grad too."""
    fun = lambda call: jax.jit(jax.grad(lambda x: (call(x[0]) * 1.0).sum()))
    with bj.patch_jax(list(MIRRORS)), bj.prefer("xla"):
        jax.clear_caches()
        compat._trace.cache_clear()
        found = fun(getattr(bj, name))(X), fun(getattr(jnp, name))(X)
    want = fun(getattr(jnp, name))(X)
    for dx in found:
        np.testing.assert_allclose(dx, want)


def test_traces_within_a_patch_do_not_reach_references():
    """JAX's functions may be traced first within a patch: what they cache has no op of baracuda_jax."""
    jax.clear_caches()
    with bj.patch_jax(list(MIRRORS)):
        jax.jit(lambda x: jnp.quantile(x, x[0, 1] / 2) + jnp.sum(x, initial=1.0) + jnp.nanmax(x) + jnp.sort(x)[0, 0])(X)
    with bj.prefer("xla"):
        assert not calls(jax.jit(lambda x: bj.median(x) + bj.sum(x) + bj.max(x)).lower(X).as_text())
        assert bj.median(X) == 5.5


def test_verbose_says_what_computes():
    lines = []
    with bj.patch_jax(["numpy.cumsum", "numpy.unique"], verbose=lines.append):
        with bj.prefer("native"):
            jnp.cumsum(X)
        with bj.prefer("xla"):
            jnp.cumsum(X)
        jnp.cumsum(X, dtype=jnp.int32)
        jnp.unique(X)
    assert lines == [
        "baracuda_jax: replaced jax.numpy.cumsum, jax.numpy.unique",
        "jax.numpy.cumsum: cumsum native (asked for)",
        "jax.numpy.cumsum: cumsum xla (asked for)",
        "jax.numpy.cumsum: JAX's function, for these arguments",
        "jax.numpy.unique: unique, of a size that depends on values",
    ]


def test_verbose_prints(capsys):
    with bj.patch_jax("ops.segment_sum", verbose=True):
        pass
    assert capsys.readouterr().out == "baracuda_jax: replaced jax.ops.segment_sum\n"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"only": "numpy.fft"}, ValueError, "has no mirror"),
        ({"only": ["ops", "ops.segment_sun"]}, ValueError, "segment_sun"),
        ({"only": 3}, TypeError, "only must be"),
        ({"verbose": "yes"}, TypeError, "verbose must be"),
    ],
)
def test_wrong_arguments_are_errors_and_replace_nothing(arguments, error, message):
    with pytest.raises(error, match=message):
        bj.patch_jax(**arguments)
    assert all(getattr(m.module, name.rpartition(".")[2]) is m.original for name, m in MIRRORS.items())


@pytest.mark.parametrize("aggregate", ["segment_sum", "segment_mean", "segment_max", "segment_min"])
def test_a_graph_network_of_jraph(aggregate):
    jraph = pytest.importorskip("jraph")
    rng = np.random.default_rng(0)
    graph = jraph.GraphsTuple(
        nodes=sent.asarray(rng.standard_normal((7, 3)), jnp.float32),
        edges=sent.asarray(rng.standard_normal((20, 3)), jnp.float32),
        senders=sent.asarray(rng.integers(0, 7, 20)), receivers=sent.asarray(rng.integers(0, 7, 20)),
        n_node=sent.asarray([7]), n_edge=sent.asarray([20]), globals=sent.zeros((1, 3)),
    )  # fmt: skip
    net = jraph.GraphNetwork(
        update_edge_fn=lambda edges, senders, receivers, _: jnp.tanh(edges + 2 * senders - receivers),
        update_node_fn=lambda nodes, sent, received, _: nodes + jnp.concatenate([sent, received], -1)[:, 1:4],
        aggregate_edges_for_nodes_fn=getattr(jraph, aggregate),
    )
    step = lambda: jax.value_and_grad(lambda nodes: (net(graph._replace(nodes=nodes)).nodes ** 2).sum())
    want = step()(graph.nodes)
    with bj.patch_jax():
        found = ours_in(step(), graph.nodes)
        assert any(name.startswith("segment") for name in found) and any(name.endswith("_backward") for name in found)
        jax.tree.map(lambda y, z: np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-5), step()(graph.nodes), want)


def test_what_is_faster_may_be_in_any_order_unless_asked():
    """The preference that a patched program's calls have, which choice.py reads."""

    def preferred(**kwargs):
        with bj.patch_jax("ops.segment_sum", **kwargs):
            jaxpr = jax.make_jaxpr(lambda x: jax.ops.segment_sum(x, IDS, 2))(X)
        return next(e.params["implementation"] for e in compat.equations(jaxpr) if e.primitive in PRIMITIVES)

    assert preferred() == bj.PlanPreference(deterministic=False)
    assert preferred(deterministic=True) == bj.PlanPreference()
    with bj.prefer("native"):
        assert preferred() == bj.PlanPreference("native")
    with bj.patch_jax(deterministic=True):  # of two patches the stricter one holds
        assert preferred() == bj.PlanPreference()
    with pytest.raises(TypeError, match="patch_jax: deterministic must be a bool, got 1"):
        bj.patch_jax(deterministic=1)
