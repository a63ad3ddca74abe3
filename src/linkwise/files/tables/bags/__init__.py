"""Joint states from rosbags: version 1, and version 2 in SQLite and MCAP files.

The files are read from their beginning, record by record, without the index at their end: a recording that was cut off
is read as far as it goes. Only messages of type sensor_msgs/JointState are decoded.
"""

from linkwise.files.tables.bags.joint_states import read_bag

__all__ = ["read_bag"]
