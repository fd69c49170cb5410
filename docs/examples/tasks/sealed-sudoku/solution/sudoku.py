"""Solves sudokus by trying the cell with the fewest choices first."""

from __future__ import annotations

import sys


def choices(grid, cell):
    row, column = divmod(cell, 9)
    seen = {grid[row * 9 + n] for n in range(9)} | {grid[n * 9 + column] for n in range(9)}
    corner = row // 3 * 27 + column // 3 * 3
    seen |= {grid[corner + n // 3 * 9 + n % 3] for n in range(9)}
    return [digit for digit in "123456789" if digit not in seen]


def solve(grid):
    empty = [cell for cell in range(81) if grid[cell] == "."]
    if not empty:
        return grid
    cell = min(empty, key=lambda cell: len(choices(grid, cell)))
    for digit in choices(grid, cell):
        found = solve(grid[:cell] + digit + grid[cell + 1 :])
        if found:
            return found
    return None


for line in sys.stdin.read().split():
    print(solve(line) or "none")
