"""The published algorithms, one file each, over any scalar."""
