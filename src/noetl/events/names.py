from noetl.events.event_kind import kind_named

__all__ = ["kind_named"]
