"""Tables: columns with types → features."""
