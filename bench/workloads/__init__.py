"""Our side of the workloads: one process, one store on disk, everything durable as by default."""
