"""A shop's sales by region in windows of time: as a stream, and in gold."""
