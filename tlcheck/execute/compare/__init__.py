"""Run both levels of a kernel and compare what they leave."""
