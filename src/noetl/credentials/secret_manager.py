"""Secrets of secret managers: of those of clouds, over their own web interfaces, and of HashiCorp Vault."""

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from noetl.credentials.credential import mask_password
from noetl.ports.credentials import CredentialError

TIMEOUT_SECONDS = 15.0
"""Seconds in which a secret must be had."""

_METADATA = "metadata.google.internal"
_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
_GCP = "https://secretmanager.googleapis.com/"


async def read_managed_secret(fields: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> str:
    """The text of a secret of a cloud. Raises CredentialError."""
    match fields.get("provider"):
        case "gcp":
            read = _from_gcp
        case "aws":
            read = _from_aws
        case None:
            raise CredentialError("it has no `provider`", "give `gcp` or `aws`")
        case provider:
            message = f"there is no client for the secret manager of `{provider}`"
            raise CredentialError(message, "`provider` is `gcp` or `aws`")
    # None of the requests follows a redirect: it would take a token to whatever host it names.
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), aiohttp.ClientSession() as session:
            return await read(session, fields, str(fields.get("secret") or name), environment)
    except (aiohttp.ClientError, ValueError) as error:
        message = f"the secret manager cannot be reached: {type(error).__name__}"
        raise CredentialError(message, retryable=True) from None
    except TimeoutError:
        message = f"the secret manager gave no answer within {TIMEOUT_SECONDS:g} s"
        raise CredentialError(message, retryable=True) from None


async def _from_gcp(
    session: aiohttp.ClientSession, fields: Mapping[str, Any], name: str, environment: Mapping[str, str]
) -> str:
    project = fields.get("project") or environment.get("GOOGLE_CLOUD_PROJECT")
    if not project:
        raise CredentialError("there is no `project`", "give it, or set GOOGLE_CLOUD_PROJECT")
    token = environment.get("GOOGLE_OAUTH_ACCESS_TOKEN") or await _machine_token(session, environment)
    endpoint = environment.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER") or _GCP
    version = quote(str(fields.get("version") or "latest"), safe="")
    secret_path = f"projects/{quote(str(project), safe='')}/secrets/{quote(name, safe='')}/versions/{version}"
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{endpoint.rstrip('/')}/v1/{secret_path}:access"
    async with session.get(url, headers=headers, allow_redirects=False) as response:
        answer_fields = await _answer_fields(response, f"`{secret_path}`")
    payload = answer_fields.get("payload")
    return _decode_base64(payload.get("data") if isinstance(payload, dict) else None, secret_path)


async def _machine_token(session: aiohttp.ClientSession, environment: Mapping[str, str]) -> str:
    """The token of the machine's own account."""
    host = environment.get("GCE_METADATA_HOST") or _METADATA
    try:
        headers = {"Metadata-Flavor": "Google"}
        async with session.get(f"http://{host}/{_TOKEN}", headers=headers, allow_redirects=False) as response:
            answer_fields = await _answer_fields(response, "the token of this machine")
    except aiohttp.ClientError:
        answer_fields = {}
    token = answer_fields.get("access_token")
    if not isinstance(token, str):
        message = "there is no account of Google Cloud here"
        raise CredentialError(message, "set GOOGLE_OAUTH_ACCESS_TOKEN, or run it on a machine that has one")
    return token


async def _from_aws(
    session: aiohttp.ClientSession, fields: Mapping[str, Any], name: str, environment: Mapping[str, str]
) -> str:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if not region:
        raise CredentialError("there is no region of AWS", "set AWS_REGION where the worker runs")
    if not key or not secret:
        raise CredentialError("there is no key of AWS", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    url = (
        environment.get("AWS_ENDPOINT_URL_SECRETS_MANAGER")
        or environment.get("AWS_ENDPOINT_URL")
        or f"https://secretsmanager.{region}.amazonaws.com"
    )
    request = {"SecretId": name, **({"VersionId": str(fields["version"])} if fields.get("version") else {})}
    body = msgspec.json.encode(request)
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": urlsplit(url).netloc,
        "x-amz-date": datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"),
        "x-amz-target": "secretsmanager.GetSecretValue",
    }
    if token := environment.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    headers["authorization"] = aws_signature("POST", headers, body, f"{region}/secretsmanager", (key, secret))
    request_url = f"{url.rstrip('/')}/"
    async with session.post(request_url, data=body, headers=headers, allow_redirects=False) as response:
        answer_fields = await _answer_fields(response, f"the secret `{name}`")
    text = answer_fields.get("SecretString")
    return text if isinstance(text, str) else _decode_base64(answer_fields.get("SecretBinary"), name)


def aws_signature(
    method: str, headers: Mapping[str, str], body: bytes, scope: str, account: tuple[str, str]
) -> str:
    """The `Authorization` of a request to `/` of AWS, by version 4 of its signatures.

    `scope` is `REGION/SERVICE`, `account` the id of a key and its secret. Headers are named in lower case.
    """
    key, secret = account
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    request = f"{method}\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    timestamp = headers["x-amz-date"]
    scope = f"{timestamp[:8]}/{scope}/aws4_request"
    string_to_sign = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signing_key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    digest = hmac.new(signing_key, string_to_sign.encode(), "sha256").hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={digest}"


async def _answer_fields(response: aiohttp.ClientResponse, subject: str) -> dict[str, Any]:
    """What the answer says. Raises CredentialError if it is no success."""
    try:
        answer_fields = await response.json(content_type=None)
    except ValueError:
        answer_fields = None
    if response.status == 200 and isinstance(answer_fields, dict):
        return answer_fields
    reason = f"it answers {response.status}"
    if isinstance(answer_fields, dict):
        error_field = answer_fields.get("error")
        error = error_field if isinstance(error_field, dict) else answer_fields
        reason_text = next((error[name] for name in ("message", "Message", "__type") if error.get(name)), "")
        reason += f", {reason_text}" if reason_text else ""
    retryable = response.status == 429 or response.status >= 500
    raise CredentialError(f"the secret manager does not give {subject}: {reason}", retryable=retryable)


def _decode_base64(data: object, subject: str) -> str:
    """The text that comes as base64. Raises CredentialError if it is none."""
    try:
        return base64.b64decode(data if isinstance(data, str) else "?", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CredentialError(f"`{subject}` holds no text") from None


async def read_vault_secret(
    fields: Mapping[str, Any], path: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The data of a secret of the key-value engine, in its second version.

    `VAULT_ADDR`, `VAULT_TOKEN` and `VAULT_NAMESPACE` say what fields do not. Raises CredentialError.
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
        _read_vault_version, str(url), token, namespace, mount, path, fields.get("version")
    )


def _read_vault_version(  # noqa: PLR0917 - what a request to Vault consists of
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
        raise CredentialError(
            f"{subject} cannot be read now: {_vault_message(error)}", retryable=True
        ) from None
    except faults.VaultError as error:
        raise CredentialError(f"{subject} cannot be read: {_vault_message(error)}") from None
    except requests.RequestException as error:
        raise CredentialError(
            f"{subject} cannot be reached: {type(error).__name__}", retryable=True
        ) from None
    data = response.get("data", {}).get("data") if isinstance(response, dict) else None
    if not isinstance(data, dict):
        raise CredentialError(f"{subject} is no secret of the key-value engine, version 2")
    return data


def _vault_message(error: Exception) -> str:
    # hvac goes on with the URL, in which a password may stand.
    return str(error).partition(", on ")[0] or type(error).__name__
