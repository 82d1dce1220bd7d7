"""No passes."""
