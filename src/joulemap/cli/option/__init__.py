"""Options that commands share: each record is a group of them, and reads what was written into what is asked."""
