"""ixion side by side with its peers, on the same machine in the same run. Start with README.md."""
