"""Whether a search finds what answers a question, over REST."""
