"""Options that commands share. Each record declares a group of options and converts their texts to settings."""
