"""Parts of the benchmarks of task-space control: arms, and what touches them while a law runs."""
