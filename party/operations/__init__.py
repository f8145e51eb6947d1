"""What keeps a party's daemon going: backups of its state, their way back, and what its monitoring may see."""
