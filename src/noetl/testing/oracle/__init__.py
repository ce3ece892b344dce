"""An oracle: what the specification says must come of a playbook, told by a model that is slow and obvious."""
