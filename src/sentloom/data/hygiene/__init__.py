"""Find and fix problems in data: cleaning, near duplicates, leaks, languages, inspection."""
