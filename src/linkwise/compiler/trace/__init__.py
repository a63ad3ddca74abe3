"""From functions over scalars, arrays and loops to programs: what ``linkwise.language`` does in a traced function."""
