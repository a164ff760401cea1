"""What a source's catalogue says of its tables, and the models that declare them."""
