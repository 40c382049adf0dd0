"""What becomes of clients when servers fail."""
