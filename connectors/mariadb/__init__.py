"""A MariaDB source: its server, its rights, its connector."""
