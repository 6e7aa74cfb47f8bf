"""Random delays, drawn before the clock starts and the same in every round."""

from __future__ import annotations

import math
import random
from array import array

SEED = 7
DRAWN = 100_000  # different ones; beyond that they repeat, or drawing would take longer than measuring


def delays(count: int, low: int, high: int) -> array[int]:
    """COUNT whole numbers in [LOW, HIGH); an array, because ten million Python ints would weigh more than the tasks."""
    draw = random.Random(SEED).random
    drawn = array("q", [low + int(draw() * (high - low)) for _ in range(min(count, DRAWN))])
    return (drawn * math.ceil(count / DRAWN))[:count]
