"""The OAuth endpoints for `/mcp`. `accounts.oauth` has the rules."""
