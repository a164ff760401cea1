"""QuickSight as code: the requests as JSON, and one command that makes or updates them."""
