"""From plans to models: stages are run one after another, and what is done is cached and not done again."""
