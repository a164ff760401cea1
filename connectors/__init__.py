"""Where the events come from: the source database, its connectors, a local stack."""
