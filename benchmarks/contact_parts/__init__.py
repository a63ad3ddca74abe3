"""Parts of the benchmarks of contact: robots that touch, their twins in MuJoCo, problems and reference solutions."""
