"""Secrets of HashiCorp Vault: the second version of its key-value engine."""

import asyncio
from collections.abc import Mapping
from typing import Any

from noetl.credentials.credential import mask_password
from noetl.ports.credentials import CredentialError

PATIENCE = 15.0
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
        import hvac  # noqa: F401, PLC0415 -- an extra, wanted only by those who use it
    except ModuleNotFoundError:
        message = "the client of Vault is not installed"
        raise CredentialError(message, "pip install 'noetl[vault]'") from None
    namespace = environment.get("VAULT_NAMESPACE")
    mount = str(fields.get("mount") or "secret")
    return await asyncio.to_thread(_read, str(url), token, namespace, mount, path, fields.get("version"))


def _read(  # noqa: PLR0917 -- what a request to Vault consists of
    url: str, token: str, namespace: str | None, mount: str, path: str, version: int | None
) -> dict[str, Any]:
    import hvac  # noqa: PLC0415 -- as above
    import hvac.exceptions as faults  # noqa: PLC0415
    import requests  # noqa: PLC0415 -- hvac's own

    place = f"`{mount}/{path}` in Vault at {mask_password(url)}"
    try:
        with requests.Session() as session:
            client = hvac.Client(url, token=token, namespace=namespace, timeout=PATIENCE, session=session)
            answer = client.secrets.kv.v2.read_secret_version(
                path, version=version, mount_point=mount, raise_on_deleted_version=True
            )
    except (faults.Forbidden, faults.Unauthorized):
        raise CredentialError(
            f"VAULT_TOKEN may not read {place}", "ask for a policy that allows it"
        ) from None
    except faults.InvalidPath:
        raise CredentialError(f"there is no {place}", "`path` is without the name of the engine") from None
    except (
        faults.VaultDown,
        faults.InternalServerError,
        faults.BadGateway,
        faults.RateLimitExceeded,
    ) as error:
        raise CredentialError(f"{place} cannot be read now: {_said(error)}", retryable=True) from None
    except faults.VaultError as error:
        raise CredentialError(f"{place} cannot be read: {_said(error)}") from None
    except requests.RequestException as error:
        raise CredentialError(f"{place} cannot be reached: {type(error).__name__}", retryable=True) from None
    data = answer.get("data", {}).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, dict):
        raise CredentialError(f"{place} is no secret of the key-value engine, version 2")
    return data


def _said(error: Exception) -> str:
    return str(error).partition(", on ")[0] or type(error).__name__
