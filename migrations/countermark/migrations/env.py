"""What Alembic runs for an upgrade. The connection, already inside a transaction, comes from the runner; there is no alembic.ini."""

from alembic import context

connection = context.config.attributes["connection"]
# Never batch mode: it copies a table row by row and leaves its triggers behind.
context.configure(connection=connection, target_metadata=None, render_as_batch=False)
with context.begin_transaction():
    context.run_migrations()
