"""From the nodes of a canonical document to a playbook, with every problem on the way."""
