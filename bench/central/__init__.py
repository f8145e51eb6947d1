"""MST and AIM where one place sees all rows: what Synod's methods are compared with. Not for publishing anything."""
