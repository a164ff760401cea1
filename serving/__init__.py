"""What reads the lake from outside Spark, and what shows it to people."""
