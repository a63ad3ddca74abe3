"""Parts of ``walking_identification.py``: robots that walk in MuJoCo, and other packages."""
