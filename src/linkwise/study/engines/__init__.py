"""What computes the chunks of a study: threads, processes, clusters, GPUs."""
