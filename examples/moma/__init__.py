"""MoMA: artists and artworks of a museum, made up, as files of change events."""
