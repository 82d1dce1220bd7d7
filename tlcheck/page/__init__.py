"""Reports as one HTML page, and pictures of layouts."""
