"""What is wrong with rows: cleaning, near-duplicates, leaks, languages, inspection."""
