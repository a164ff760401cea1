"""Measurements. Each prints ratios taken in one run; nothing here is a test."""
