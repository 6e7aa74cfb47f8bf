"""What a benchmark is made of; see benchmarks/README.md for the recipe."""

from benchmarks.framework.java import JavaPeer
from benchmarks.framework.model import Benchmark, Contender, Curve, Goal, Row, Session
from benchmarks.framework.process import fresh

__all__ = ["Benchmark", "Contender", "Curve", "Goal", "JavaPeer", "Row", "Session", "fresh"]
