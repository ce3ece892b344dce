"""Why no answer came to an `http` task, in words."""

from collections.abc import Callable
from functools import partial

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError

from noetl.model.outcome import ErrorInfo
from noetl.ports.tool import TextMask
from noetl.tools.host.bounded_text import MAX_EXCERPT, shorten_text


def http_error(error: aiohttp.ClientError, label: str, mask: TextMask) -> ErrorInfo:
    """The error that stands for what the client raised; `label` is the request, for the message."""
    kind, reason, retryable = _classify(error, partial(shorten_text, limit=MAX_EXCERPT, mask=mask))
    if kind == "input":
        return ErrorInfo(kind="input", message=reason)
    if kind == "timeout":
        return ErrorInfo(kind="timeout", message=f"{label}: {reason}", retryable=True)
    return ErrorInfo(kind="connection", message=f"{label}: {reason}", retryable=retryable)


def _classify(error: aiohttp.ClientError, shorten: Callable[[str], str]) -> tuple[str, str, bool]:
    """Kind, reason, and whether another attempt may end well. The order is from special to general."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "timeout", "no connection within the time that `spec.timeout.connect` gives", True
        case aiohttp.ServerTimeoutError():
            return "timeout", "no data within the time that `spec.timeout.read` gives", True
        case aiohttp.TooManyRedirects():
            last = error.history[-1].headers.get("Location", "") if error.history else ""
            times = len(error.history) - 1
            reason = f"it redirects more than {times} times, the last to `{shorten(last)}`"
            return "connection", reason, False
        case aiohttp.RedirectClientError():
            return (
                "connection",
                f"it redirects to what is no HTTP address: {shorten(str(error))}",
                False,
            )
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return "input", f"`url` is no address: {shorten(str(error))}", False
        case aiohttp.ClientConnectorError():
            return "connection", *_classify_connect(error, shorten)
        case aiohttp.ClientHttpProxyError():
            busy = error.status in (408, 425, 429) or error.status >= 500
            return "connection", f"the proxy answers {error.status} {shorten(error.message)}", busy
        case aiohttp.ClientPayloadError(__cause__=ContentEncodingError(message=reason)):
            return "connection", f"the body cannot be unpacked: {shorten(reason)}", True
        case aiohttp.ClientPayloadError():
            return "connection", "the connection ended before the whole body was there", True
        case aiohttp.ClientResponseError(__cause__=HttpProcessingError(__cause__=ContentEncodingError())):
            return "connection", f"the body cannot be unpacked: {shorten(error.message)}", True
        case aiohttp.ClientResponseError():
            return "connection", f"what the server sent is not HTTP: {shorten(error.message)}", True
        case aiohttp.ServerDisconnectedError():
            return "connection", "the server closed the connection without an answer", True
        case _:
            return (
                "connection",
                f"the connection broke: {shorten(str(error) or type(error).__name__)}",
                True,
            )


def _classify_connect(error: aiohttp.ClientConnectorError, shorten: Callable[[str], str]) -> tuple[str, bool]:
    address = f"{error.host}:{error.port}"
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the host `{error.host}` is not found", True
        case aiohttp.ClientProxyConnectionError():
            return f"no connection to the proxy {address}: {_reason(error.os_error, shorten)}", True
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            hint = "`spec.verify` can name a file of authorities"
            return f"the certificate of {address} is not trusted: {reason}; {hint}", False
        case aiohttp.ClientSSLError():
            return f"no TLS connection to {address}: {_reason(error.os_error, shorten)}", True
        case _:
            return f"no connection to {address}: {_reason(error.os_error, shorten)}", True


def _reason(error: OSError, shorten: Callable[[str], str]) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "it is refused, so nothing may be listening there"
    return shorten(error.strerror or str(error) or type(error).__name__)
