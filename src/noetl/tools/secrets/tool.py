"""Runs the kind `secrets`."""

from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, inputs_of
from noetl.tools.secrets.kind import SecretsInputs, check


class SecretsTool:
    """Proves that secrets can be had, and gives what stands for them: no value leaves the keychain."""

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(_look_up(call))

    async def close(self) -> None:
        """Nothing is held."""


async def _look_up(call: Call) -> Outcome:
    inputs = inputs_of(call, SecretsInputs)
    for fault in check(call.inputs, call.spec):
        raise ToolError("input", fault.message)
    if call.credentials is None:
        raise ToolError("credential", "there are no credentials here")
    provider = inputs.provider or ""
    if inputs.names is None:
        secret = await call.credentials.find(inputs.name or call.task, provider)
        return succeeded(dict(secret.markers))
    return succeeded(
        {name: dict((await call.credentials.find(name, provider)).markers) for name in inputs.names}
    )
