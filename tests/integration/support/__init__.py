"""What the integration tests stand on: cases, the daemon under test, sockets, servers and clients."""
