"""The demonstration: recorded Northwind events, from landing files to gold."""
