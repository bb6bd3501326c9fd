"""A model server and a trainer on PyTorch for the token-level windows of Rollbook."""
