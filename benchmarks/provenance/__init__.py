"""How often the provenance rules are right, beside the substring baseline."""
