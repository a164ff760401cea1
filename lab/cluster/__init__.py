"""A Spark cluster, a Hive metastore and an S3 server on this machine, for developers."""
