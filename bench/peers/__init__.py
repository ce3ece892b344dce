"""Other engines on the same workloads, installed from their registries into a folder of their own."""

from bench.peers import dbos_peer, prefect_peer, restate_peer
from bench.side import Side

PEERS: tuple[Side, ...] = (restate_peer, dbos_peer, prefect_peer)
