"""The engine of AMQP connections: frames, sessions, links, credit, settlement and `$cbs`, in front of `nodes.py`."""
