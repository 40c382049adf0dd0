"""What the integration tests stand on: cases, the daemon, sockets, servers and clients."""
