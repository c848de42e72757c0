"""One file for each family of rows."""

from . import footprint, http, life, save, ssh, state, terminal, websocket  # noqa: F401
