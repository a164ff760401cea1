"""TICKIT: a ticket shop of three databases."""
