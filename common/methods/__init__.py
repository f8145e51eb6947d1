"""One file a method: its parameters, their resolution, its checks and its plan."""
