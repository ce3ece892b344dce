"""What can go wrong, by what a caller does about it. In brackets is who raises it.

NoetlError
├── PlaybookInvalid        (noetl.dsl) the document is wrong: show its problems
├── SourceError            (noetl.dsl) the text is no YAML that documents may be: becomes a problem
├── UpgradeTooLarge        (noetl.dsl) an older document grows too large: becomes a problem
├── KindTaken              (noetl.dsl) two tools have one name: remove one
├── SourceUnreadable       (noetl.loader) a file cannot be read: show the message
├── PluginBroken           (noetl.loader) an installed package of tools cannot be loaded: mend or remove it
├── ToolRefused            (noetl.tools) a class or function cannot be a tool: mend its declaration
├── ToolError              (noetl.model) a tool's own code fails its task: becomes the task's error
├── NotJson                (noetl.model) a value has no form in JSON: refuse it where it came in
├── ExpressionError        (noetl.model) an expression is wrong, refused, or failed on the values it met
│   ├── ReferenceUnresolved  (noetl.expr) a value is stored elsewhere: fetch it and evaluate again
│   └── SecretRefused      (noetl.expr) a secret is needed: have its value restored, or fail
├── EventUnwritable        (noetl.events) a body holds what JSON cannot say: nothing was written
├── EventUnreadable        (noetl.events) a stored event is damaged, or a newer release wrote it
├── EventNameUnknown       (noetl.events) a filter names no event: show the hint
├── Refused                (noetl.kernel) a command does not apply to the execution as it is: say so
│   ├── ReportEarly        (noetl.kernel) a report that was sent before is missing: have it sent again
│   ├── CannotRepair       (noetl.engine) a repaired document changes what has ended: show what
│   └── KeyConflict        (noetl.engine) an idempotency key is that of another request: name its holder
├── NotOwner               (noetl.kernel) a report comes too late, the run has another owner: drop it
├── WrongSequence          (noetl.kernel) an event cannot follow: the history, or the engine, is damaged
├── Unfetched              (noetl.kernel) values are needed that are not at hand: fetch its keys, go on
├── MessageMalformed       (noetl.ports) what came from a worker or a server is no message: end its session
├── CredentialError        (noetl.ports) a credential cannot be had: show the hint
│   ├── CredentialRefused  (noetl.credentials) it is none of its kind: show what is wrong
│   ├── CredentialUnknown  (noetl.ports) there is none of this name
│   └── KeyWrong           (noetl.ports) there is no key, or not the one that was used
├── ResultError            (noetl.model) a stored value cannot be read or written: show the hint
│   ├── ResultMissing      (noetl.ports) nothing is stored under this key
│   │   └── ResultExpired  (noetl.ports) no longer: its time was over
│   ├── ResultDamaged      (noetl.ports) what is stored under this key is not what was written
│   └── BodyRefused        (noetl.worker) what a report needs cannot be stored: its run fails
├── StoreError             (noetl.ports) the store cannot be opened, read or written: show the hint
│   ├── StoreUnusable      (noetl.ports) this cannot be opened as a store: trying again does not help
│   │   └── StoreUrlWrong  (noetl.ports) and it is no URL of a store at all
│   ├── StoreBusy          (noetl.ports) somebody else held it for too long: try again
│   ├── StoreSlow          (noetl.ports) a list or search took too long: narrow it
│   ├── StoreFull          (noetl.ports) there is no room: nothing was written
│   ├── StoreDamaged       (noetl.ports) something in it is not what was written: restore it from a copy
│   ├── StoreClosed        (noetl.ports) it was closed before
│   ├── ExecutionUnknown   (noetl.ports) there is no such execution
│   ├── StoresDiffer       (noetl.engine) both stores have something by one name that is not the same
│   ├── WrittenElsewhere   (noetl.engine) somebody else wrote to an execution of ours: run it from one process
│   ├── PlaybookUnreadable  (noetl.engine) a stored document cannot be read as the playbook it was
│   └── HistoryUnreadable  (noetl.engine) a history cannot be read here: show the hint
├── ResultStoreUrlWrong    (noetl.stores) the settings name result stores that there cannot be
├── SettingsWrong          (noetl.settings) a setting cannot have its value, or does not exist
├── PlaybookMissing        (noetl.engine) no playbook has this path, or several have: show the message
├── CannotRun              (noetl.engine) a valid playbook needs what is not here: a tool, a playbook
├── CannotFork             (noetl.engine) there is nothing to copy, or the copy could not go on
├── NoSuchPart             (noetl.engine) a stored value has nothing at this path: say so
├── ViewRequestWrong       (noetl.engine) something is asked about that an execution does not have: say what
├── AlreadyRunning         (noetl.engine) another process runs this execution: ask that one
├── ServerUnavailable      (noetl.worker) the server does not answer for now: try again
├── FetchRefused           (noetl.worker) the server will not give this: the run cannot go on here
├── WorkerRejected         (noetl.worker) the server does not serve this worker: show the hint
├── ExecutionFailed        (noetl) an execution that was to complete did not: look at its error
├── ApiProblem             (noetl.server) a request ends here: it is the answer
├── NatsUrlWrong           (noetl.stores) a URL names no server of NATS, or nothing on it: show the hint
├── FeedError              (noetl.server) events cannot be published now: try again
│   └── FeedUnusable       (noetl.server) trying again does not help: show the hint
├── ListenFailed           (noetl.server) a server cannot listen as it was told: show the hint
├── RangeWrong             (noetl.server) a request asks for a part that a result does not have: say its size
├── ServerError            (noetl.client) a server refused a request: show the message
├── ServerUnreachable      (noetl.client) no server answered: start one, or name another
├── ServerRunning          (noetl.stores) a server uses this home already: ask that one, or stop it
├── ArchiveUnusable        (noetl.engine) a folder cannot be exported into: show the hint
├── BackupExists           (noetl.stores) a file stands where the backup shall: name another
├── GraphError             (noetl.graph) a picture cannot be drawn here: show the message
└── CommandFailure         (noetl.cli) a command ends here: print it and exit with its code
"""

from typing import Literal


class NoetlError(Exception):
    """The root of every error that this package raises on purpose."""


def quoted_text(text: str, limit: int) -> str:
    """What a message quotes. That it was cut is marked, so that of a secret the rest is masked."""
    return text if len(text) <= limit else text[:limit] + "…"


class ExpressionError(NoetlError):
    """An expression cannot be parsed, is refused, or failed.

    `offset` counts characters from the start of the expression's source text; None where the
    fault has no single place.
    """

    def __init__(self, message: str, *, offset: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint
        self.kind: Literal["expression", "limit", "credential"] = "expression"
        """What a failure that this causes is called."""


class ResultError(NoetlError):
    """A stored value cannot be read or written. `hint` says what to do about it.

    Of this class itself: the world failed, reading or writing did not work.
    """

    kind: Literal["store", "not_found", "limit", "tool", "input"] = "store"
    """What a failure that this causes is called."""

    @property
    def retryable(self) -> bool:
        """Whether the same may end well later."""
        return self.kind == "store"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
