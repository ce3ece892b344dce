"""Executions as tables: what every store gives, and what is written as Parquet."""
