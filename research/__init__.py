"""Studies of the papers: claims and printed values, and the table of records. Not a part of the installed package."""
