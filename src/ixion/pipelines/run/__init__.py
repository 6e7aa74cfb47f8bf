"""A run: queries, progress, several pipelines at once, backfill, replay, the report and lineage events."""
