import jax
import pytest
from small_networks import small_sizes

from counterpath.models import build_network


@pytest.mark.parametrize("widths", [(), (5,), (7, 4)])
def test_embedding_and_head_have_the_hidden_layers_that_were_asked_for(widths):
    network = build_network(small_sizes(embedding_widths=widths, head_widths=widths), None, key=jax.random.key(0))
    assert [layer.out_features for layer in network.outcome_head.network.layers[:-1]] == list(widths)
    assert [layer.out_features for layer in network.embedding.layers[:-1]] == list(widths)
