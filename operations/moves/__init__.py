"""Moving what is remembered into another engine, with every decision that people made about it."""
