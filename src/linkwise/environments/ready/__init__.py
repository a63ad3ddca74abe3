"""Ready tasks, one file each: the published definitions, written over scalars."""
