"""Results kept between runs: of lowering, of checking, and whatever else depends on nothing but its key."""
