"""The standard events of the specification, by who writes them."""

BY_SERVER = {
    "PlaybookExecutionRequested",
    "PlaybookRequestEvaluated",
    "WorkflowStarted",
    "TokenEnqueued",
    "TokenClaimed",
    "StepScheduled",
    "NextEvaluated",
    "WorkflowFinished",
    "PlaybookProcessed",
}
BY_WORKER = {
    "TaskStarted",
    "TaskProcessed",
    "StepDone",
    "StepFailed",
    "LoopStarted",
    "LoopIterationStarted",
    "LoopIterationCompleted",
    "LoopDone",
}
