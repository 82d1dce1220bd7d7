"""Describe how far what was executed reaches: which blocks, inputs and sizes an agreed output holds for."""
