"""What a refused statement claims to be, beside why it was refused. Empty for what is no statement, and for what was refused before."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column, outside everything that is signed."""
    op.execute("ALTER TABLE quarantine ADD COLUMN predicate_type TEXT")
