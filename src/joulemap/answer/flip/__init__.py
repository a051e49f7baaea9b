"""What would make the other of two hardware the better one."""
