"""What a document is: its text as nodes with positions, its shapes and kinds, the playbook, its problems."""
