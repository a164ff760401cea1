"""Gold where people read it: a page, Glue, Athena, QuickSight."""
