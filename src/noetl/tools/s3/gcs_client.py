"""The client of Google Cloud Storage, whose objects the kind `s3` handles like those of S3."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import json
from obstore.store import GCSStore

from noetl.model.outcome import ToolError

_TOKENS = ("access_token", "token", "value")
_KEYS = ("service_account_json", "service_account_key", "credentials", "key")
_NO_ACCOUNT = ("Error performing token request", "GCP credential error")
_NOTHING_TO_SIGN_IN_WITH = (
    "there is nothing to sign in to Google Cloud Storage with: give `auth`, or set GOOGLE_SERVICE_ACCOUNT"
)


def open_gcs_store(bucket: str, config: dict[str, Any]) -> GCSStore:
    return GCSStore(
        bucket,
        config=config,  # type: ignore[arg-type]  # a mapping of known keys
        # Whether it is encrypted is what the endpoint says; that of Google is.
        client_options={"allow_http": True, "timeout": "3600s", "connect_timeout": "10s"},
        # Retries are the engine's: an attempt that tried again by itself could not be counted or bounded.
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )


def gcs_credential_error(message: str, config: Mapping[str, Any]) -> ToolError | None:
    """What the client says when it could not sign in; None if it says something else."""
    if not any(words in message for words in _NO_ACCOUNT):
        return None
    is_key = any("service" in name for name in config)
    return ToolError(
        "credential",
        "the credential is no key of a service account" if is_key else _NOTHING_TO_SIGN_IN_WITH,
    )


def gcs_client_config(auth: Any) -> dict[str, Any]:
    """What a credential says, in the words of the client; empty: the environment says it."""
    if auth is not None and not isinstance(auth, Mapping):
        raise ToolError("credential", f"the credential `{auth}` is not there")
    fields = auth or {}
    config: dict[str, Any] = {}
    if base_url := fields.get("endpoint"):
        config["base_url"] = str(base_url)
    if key := _first(fields, _KEYS) or (fields if "private_key" in fields else None):
        config["service_account_key"] = key if isinstance(key, str) else json.encode(key).decode()
    elif token := _first(fields, _TOKENS):
        config["bearer_token"] = str(token)
    elif auth is not None and "endpoint" not in fields:
        message = "the credential has nothing to sign in to Google Cloud Storage with"
        raise ToolError("credential", f"{message}: `access_token`, or `service_account_json`")
    # The client panics on these.
    if not re.fullmatch(r"[!-~]*", config.get("bearer_token", "")):
        raise ToolError("credential", "there is a space or a line break in the credential's token")
    if not re.match(r"https?://[^/]", config.get("base_url", "http://default")):
        raise ToolError("credential", f"`{base_url}` does not begin with `http://` or `https://`")
    return config


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name)), None)
