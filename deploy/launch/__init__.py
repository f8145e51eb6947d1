"""Studies over tables on this machine: keys, daemons, processes, containers."""
