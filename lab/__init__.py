"""Servers on one machine to try things with, demonstrations, benchmarks."""
