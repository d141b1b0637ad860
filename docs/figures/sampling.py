"""What samplers keep of a distribution, and how often they draw it."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, INK, ORANGE, tint

from baracuda_jax import min_p_sampling, top_k_sampling, top_p_sampling

key, n = jax.random.key(1), 100_000
chances = 1 / np.arange(1, 17) ** 0.8
chances /= chances.sum()
logits = jnp.broadcast_to(jnp.log(jnp.asarray(chances)), (n, 16))
drawn = {
    "top_k_sampling\nk=6": top_k_sampling(logits, key, 6),
    "top_p_sampling\np=0.8": top_p_sampling(logits, key, 0.8),
    "min_p_sampling\nmin_p=0.3": min_p_sampling(logits, key, 0.3),
}
figure, axes = plt.subplots(1, 3, figsize=(6.4, 2.6), layout="constrained", sharey=True)
for ax, (name, tokens) in zip(axes, drawn.items(), strict=True):
    shares = np.bincount(tokens, minlength=16) / n
    kept = shares > 0
    ax.bar(np.arange(16), chances, color=[tint(BLUE) if k else "white" for k in kept], edgecolor=INK, linewidth=0.5)
    ax.plot(np.flatnonzero(kept), shares[kept], "o", color=ORANGE, markersize=4)
    ax.set(xticks=[], yticks=[])
    ax.spines["left"].set_visible(False)
    ax.set_title(name, loc="left", family="monospace", fontsize=12)
