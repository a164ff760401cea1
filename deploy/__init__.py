"""What a job on a cluster needs, as files."""
