"""Parts of ``whole_body.py``: the same problems in other libraries."""
