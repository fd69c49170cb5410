"""Quantiles against tables and against fifty digits computed elsewhere."""

from __future__ import annotations

import pytest

from agentcompass.core.metrics.distributions import (
    inverse_regularized_beta,
    normal_quantile,
    regularized_beta,
    t_quantile,
)


@pytest.mark.parametrize(
    ("p", "df", "value"),
    [
        (0.975, 1, 12.706204736174694),
        (0.975, 2, 4.302652729749462),
        (0.975, 4, 2.7764451051977934),
        (0.975, 11, 2.2009851600916392),
        (0.95, 30, 1.6972608865939574),
        (0.975, 163, 1.974624620966361),
        (0.995, 3.7, 4.8692522532278275),
        (0.975, 9999, 1.9602012636213573),
        (0.9995, 1, 636.6192487687897),
        (0.6, 5, 0.2671808657041451),
    ],
)
def test_t_quantiles_are_those_of_the_tables(p, df, value):
    """Few and many, whole and broken degrees of freedom; both tails alike."""
    assert pytest.approx(value, rel=1e-10) == t_quantile(p, df)
    assert pytest.approx(-value, rel=1e-9) == t_quantile(1 - p, df)


def test_t_quantiles_approach_the_normal_ones():
    """A million degrees of freedom differ from the normal quantile by (z^3 + z) / 4 df."""
    z = 1.9599639845400543

    assert pytest.approx(z + (z**3 + z) / 4e6, abs=1e-9) == t_quantile(0.975, 1_000_000)


@pytest.mark.parametrize(
    ("a", "b", "x", "value"),
    [
        (2, 3, 0.5, 0.6875),
        (0.5, 0.5, 0.25, 1 / 3),
        (5000, 0.5, 0.9996, 0.04548406464914929),
        (8, 3, 0.7, 0.3827827864),
        (0.01, 5, 0.1, 0.9940726309296224),
        (300, 400, 0.45, 0.8738250286734266),
        (0.5, 2, 1e-9, 4.74341648867143e-05),
        (2, 3, 0.0, 0.0),
        (2, 3, 1.0, 1.0),
    ],
)
def test_the_incomplete_beta_function_is_accurate(a, b, x, value):
    """Both sides of the continued fraction, small and large parameters."""
    assert pytest.approx(value, rel=1e-10) == regularized_beta(a, b, x)


@pytest.mark.parametrize(
    ("a", "b", "p", "value"),
    [
        (8, 3, 0.025, 0.44390453769235844),
        (9, 2, 0.975, 0.9747892736731666),
        (1, 30, 0.025, 0.0008435709266304787),
        (51, 114, 0.5, 0.30831788609248784),
        (0.5, 2, 0.9, 0.5318774334735805),
        (8, 3, 0.0, 0.0),
        (8, 3, 1.0, 1.0),
    ],
)
def test_the_inverse_beta_function_is_accurate(a, b, p, value):
    """Beta quantiles, including both ends."""
    assert pytest.approx(value, rel=1e-11) == inverse_regularized_beta(a, b, p)


@pytest.mark.parametrize(
    ("p", "value"), [(0.975, 1.9599639845400543), (0.995, 2.575829303548901), (0.001, -3.0902323061678136), (0.5, 0.0)]
)
def test_normal_quantiles_are_those_of_the_tables(p, value):
    """Both tails and the middle."""
    assert pytest.approx(value, rel=1e-12, abs=1e-12) == normal_quantile(p)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, float("nan")])
def test_quantiles_of_no_probability_are_refused(p):
    """An open distribution has no quantile at the ends of the unit interval."""
    with pytest.raises(ValueError, match="not a probability"):
        normal_quantile(p)
    with pytest.raises(ValueError, match="not a probability"):
        t_quantile(p, 3)


def test_impossible_parameters_are_refused():
    """Degrees of freedom and beta parameters are positive."""
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_quantile(0.975, 0)
    with pytest.raises(ValueError, match="undefined"):
        regularized_beta(0, 1, 0.5)
    with pytest.raises(ValueError, match="undefined"):
        inverse_regularized_beta(1, -1, 0.0)
    with pytest.raises(ValueError, match="not a probability"):
        inverse_regularized_beta(1, 1, 1.5)
