"""Claims of the landing page and of the README, which show the same headline numbers."""

from experiments.engine import headlines
from tests.claims.reading import THRESHOLD, is_open, lower_end, upper_end
from tests.claims.said import says


@says(
    "index",
    """Its NLL less that of the hierarchical network is {glue:text}`tie` (mean over the tasks and
    95 % interval): on these data no gain from sharing weights could be measured.""",
)
def test_no_gain_from_sharing_weights_could_be_measured_on_the_sources_data():
    assert is_open(headlines.chosen_less_hierarchical())


@says(
    "index",
    """it is {glue:text}`redrawn-tie`: sharing weights gains something, and much less than the
    choice of scales does""",
)
@says("README", "sharing weights gains something, and much less than the choice of scales.")
def test_sharing_weights_gains_something_and_much_less_than_the_choice_of_scales():
    sharing, choice = (
        headlines.paired_differences(),
        headlines.paired_differences("N(0, 1)", "chosen over tasks"),
    )
    assert lower_end(sharing) > 0 and lower_end(choice) > 4 * upper_end(sharing)


@says(
    "index",
    """the first layer alone may differ between tasks and the {term}`hyperprior` is wider, $N_+(0,
    5^2)$, it is {glue:text}`scaled`""",
)
@says(
    "README",
    """the first layer alone differs between tasks and the hyperprior is wider, N+(0, 5^2),
    it is""",
)
def test_the_first_layer_alone_gains_over_chosen_scales():
    assert lower_end(headlines.chosen_less_input_layer()) > THRESHOLD
