"""Quantiles of the beta, Student t and normal distributions, to about 1e-9, from the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_STEPS = 100_000  #: the fraction needs about the square root of its larger parameter
_CLOSE = 1e-16
_TINY = 1e-300
_HALVINGS = 120  #: of the unit interval: 2**-120 is finer than a float near any quantile in use


def regularized_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), the chance that a Beta(a, b) variable is at most *x*.

    Numerical Recipes, 3rd edition, section 6.4: the continued fraction 6.4.9, on the side where it converges fast.

    Raises:
        ValueError: a or b is not positive, or x is outside 0 to 1.
    """
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"I_{x}({a}, {b}) is undefined: a and b must be positive, x from 0 to 1")
    if x in (0, 1):
        return float(x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(value - before) <= _CLOSE * abs(value):
            return value
    raise ArithmeticError(f"the beta fraction did not converge for a={a}, b={b}, x={x}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _solve(increasing: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return where *increasing* reaches *target* between *low* and *high*, by halving."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if increasing(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def inverse_regularized_beta(a: float, b: float, p: float) -> float:
    """Return the x with I_x(a, b) = *p*: the *p* quantile of a Beta(a, b) variable.

    Raises:
        ValueError: a or b is not positive, or p is outside 0 to 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"{p} is not a probability")
    regularized_beta(a, b, 0.5)  # refuses wrong parameters also when p is 0 or 1
    return float(p) if p in (0, 1) else _solve(lambda x: regularized_beta(a, b, x), p, 0.0, 1.0)


def normal_quantile(p: float) -> float:
    """Return the *p* quantile of the standard normal distribution.

    Raises:
        ValueError: p is not between 0 and 1, both excluded.
    """
    _check_open(p)
    return _solve(lambda x: math.erfc(-x / math.sqrt(2)) / 2, p, -40.0, 40.0)


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Return the *p* quantile of Student's t distribution with *df* degrees of freedom, which need not be whole.

    Abramowitz and Stegun 26.7.1: the chance of |T| > t is I_x(df/2, 1/2) with x = df / (df + t^2). Of x and 1 - x the
    smaller one is solved for, because a difference from 1 would lose its digits.

    Raises:
        ValueError: p is not between 0 and 1, both excluded, or df is not positive.
    """
    _check_open(p)
    if not df > 0:
        raise ValueError(f"{df} degrees of freedom: give a positive number")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    x = inverse_regularized_beta(df / 2, 0.5, 2 * (1 - p))
    if x < 0.5:
        return math.sqrt(df * (1 - x) / x)
    y = inverse_regularized_beta(0.5, df / 2, 2 * p - 1)
    return math.sqrt(df * y / (1 - y))


def _check_open(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"{p} is not a probability between 0 and 1")
