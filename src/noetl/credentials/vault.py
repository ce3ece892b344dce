"""Secrets of HashiCorp Vault: the second version of its key-value engine."""

import asyncio
from collections.abc import Mapping
from typing import Any

from noetl.credentials.credential import mask_password
from noetl.ports.credentials import CredentialError

TIMEOUT_SECONDS = 15.0
"""Seconds in which the server must answer."""


async def read_vault_secret(
    fields: Mapping[str, Any], path: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The data of a secret. `VAULT_ADDR`, `VAULT_TOKEN` and `VAULT_NAMESPACE` say what fields do not.

    Raises CredentialError.
    """
    url = fields.get("url") or environment.get("VAULT_ADDR")
    token = environment.get("VAULT_TOKEN")
    if not url:
        raise CredentialError("there is no address of Vault", "give `url`, or set VAULT_ADDR")
    if not token:
        raise CredentialError("there is no token for Vault", "set VAULT_TOKEN where the worker runs")
    try:
        import hvac  # noqa: F401, PLC0415 - an extra, wanted only by those who use it
    except ModuleNotFoundError:
        message = "the client of Vault is not installed"
        raise CredentialError(message, "pip install 'noetl[vault]'") from None
    namespace = environment.get("VAULT_NAMESPACE")
    mount = str(fields.get("mount") or "secret")
    return await asyncio.to_thread(
        _read_version, str(url), token, namespace, mount, path, fields.get("version")
    )


def _read_version(  # noqa: PLR0917 - what a request to Vault consists of
    url: str, token: str, namespace: str | None, mount: str, path: str, version: int | None
) -> dict[str, Any]:
    import hvac  # noqa: PLC0415 - an extra, wanted only by those who use it
    import hvac.exceptions as faults  # noqa: PLC0415 - part of that extra
    import requests  # noqa: PLC0415 - comes with hvac

    class OneHostSession(requests.Session):
        def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
            """Called for every redirect: the token, which is no usual header, would go to any host."""
            if self.should_strip_auth(response.request.url, prepared_request.url):
                raise CredentialError(
                    f"{subject} cannot be read: it redirects to another host, which does not get VAULT_TOKEN",
                    "set VAULT_ADDR to the address that answers itself",
                )
            super().rebuild_auth(prepared_request, response)

    subject = f"`{mount}/{path}` in Vault at {mask_password(url)}"
    try:
        # A session of our own, which ends here: hvac would leave its own open.
        with OneHostSession() as session:
            client = hvac.Client(
                url, token=token, namespace=namespace, timeout=TIMEOUT_SECONDS, session=session
            )
            response = client.secrets.kv.v2.read_secret_version(
                path, version=version, mount_point=mount, raise_on_deleted_version=True
            )
    except (faults.Forbidden, faults.Unauthorized):
        raise CredentialError(
            f"VAULT_TOKEN may not read {subject}", "ask for a policy that allows it"
        ) from None
    except faults.InvalidPath:
        raise CredentialError(f"there is no {subject}", "`path` is without the name of the engine") from None
    except (
        faults.VaultDown,
        faults.InternalServerError,
        faults.BadGateway,
        faults.RateLimitExceeded,
    ) as error:
        raise CredentialError(f"{subject} cannot be read now: {_error_text(error)}", retryable=True) from None
    except faults.VaultError as error:
        raise CredentialError(f"{subject} cannot be read: {_error_text(error)}") from None
    except requests.RequestException as error:
        raise CredentialError(
            f"{subject} cannot be reached: {type(error).__name__}", retryable=True
        ) from None
    data = response.get("data", {}).get("data") if isinstance(response, dict) else None
    if not isinstance(data, dict):
        raise CredentialError(f"{subject} is no secret of the key-value engine, version 2")
    return data


def _error_text(error: Exception) -> str:
    # hvac goes on with the URL, in which a password may stand.
    return str(error).partition(", on ")[0] or type(error).__name__
