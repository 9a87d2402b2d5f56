"""Claims of the page ``table-networks``: tables with groups."""

from tests.claims.reading import stored
from tests.claims.said import says

SLOPES, NETWORK, OWN = "line, slopes a group", "network", "network, weights a group"


def ends(table, arm, of="rows", than="line", mixed=True):
    """The ends of the interval of what a model's log density is more than a line's."""
    (row,) = (
        row
        for row in stored("your_table/six_tables")
        if (row["table"], row["arm"], row["of"]) == (table, arm, of)
    )
    assert row["mixed"] == mixed
    return row[f"more than {than}"]["low"], row[f"more than {than}"]["high"]


def is_open(interval):
    """Whether an interval holds 0."""
    low, high = interval
    return low < 0 < high


@says(
    "table-networks",
    """Of the models that mixed a line with slopes for each group is ahead on births, and has the
    best mean on reaction times.""",
    "For a country that is new slopes lose a little",
)
def test_slopes_are_ahead_where_groups_change_differently():
    assert ends("fertility", SLOPES)[0] > 0
    for arm in (NETWORK, "splines"):
        for of in ("rows", "groups"):
            low, high = ends("sleepstudy", arm, of, SLOPES)
            assert low + high < 0
    low, high = ends("sleepstudy", SLOPES)
    assert low + high > 0
    low, high = ends("fertility", SLOPES, "groups")
    assert -20 < low + high < 0 and high < 3


@says("table-networks", "its average over chains would lead all others by far: a hint")
def test_weights_of_each_country_would_lead_by_chains_that_have_not_mixed():
    for of in ("rows", "groups"):
        for than in ("line", SLOPES):
            assert ends("fertility", OWN, of, than, mixed=False)[0] > 10


@says(
    "table-networks",
    """On the firms both networks predict left-out years better than the plain line does, and are
    level with slopes.""",
)
def test_networks_bend_for_firms():
    for arm in (NETWORK, OWN):
        assert ends("grunfeld", arm)[0] > 0
        assert is_open(ends("grunfeld", arm, than=SLOPES))


@says(
    "table-networks",
    """On ticks, affairs and schools no network is shown to be ahead of the plain line or behind
    it.""",
    "On affairs, whose groups are six jobs, slopes for each are behind",
)
def test_elsewhere_no_network_is_shown_to_differ():
    for table, arms in {
        "grouseticks": (NETWORK, OWN), "fair": (NETWORK, OWN), "star98": (NETWORK,),
    }.items():  # fmt: skip
        assert all(is_open(ends(table, arm)) for arm in arms)
    assert ends("fair", SLOPES)[1] < 0


@says(
    "table-networks",
    """The network with weights for each group did not mix on reaction times and births""",
)
def test_what_did_not_mix():
    refused = {
        (row["table"], row["arm"]) for row in stored("your_table/six_tables") if not row["mixed"]
    }
    assert refused == {("sleepstudy", OWN), ("fertility", OWN)}
