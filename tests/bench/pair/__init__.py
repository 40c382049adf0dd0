"""pair: two nodes behind one address, and what moves it."""
