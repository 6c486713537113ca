"""The statement of migration 0002, when words had a separate table and a queue."""

from typing import Final

QUEUE_ALL: Final = """
    INSERT INTO store_words_pending SELECT id FROM store_memory WHERE true ON CONFLICT DO NOTHING
"""
