"""Why a request is refused, in the form that OpenAI's clients read."""

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sentloom.errors import plain_words

KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "server_error"} | {
    503: "overloaded_error"
}

NOWHERE = {
    404: "There is nothing at {path}. /openapi.json lists what there is.",
    405: "{path} does not take {method}. /openapi.json lists what there is.",
}


class Refusal(HTTPException):
    """A status, and a sentence that says what is wrong and what to change."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, **headers: str
    ) -> None:
        """Set the answer; a header such as `retry_after` is written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, message, headers=named)
        self.param, self.code = param, code

    def response(self) -> JSONResponse:
        """The answer."""
        kind = KINDS.get(self.status_code, "invalid_request_error")
        error = {"message": self.detail, "type": kind, "param": self.param, "code": self.code}
        return JSONResponse({"error": error}, self.status_code, dict(self.headers or {}))


async def refused(request: Request, error: Exception) -> JSONResponse:
    """The answer to a request for which a Refusal, or an error of FastAPI's own, was raised."""
    if isinstance(error, Refusal):
        return error.response()
    if isinstance(error, RequestValidationError):
        return _invalid(error.errors()[0]).response()
    if isinstance(error, HTTPException):
        nowhere, path = NOWHERE.get(error.status_code), request.url.path[:200]
        message = nowhere.format(path=path, method=request.method) if nowhere else error.detail
        return Refusal(error.status_code, message, **(error.headers or {})).response()
    return Refusal(500, "The server failed. Its log says why.").response()


def _invalid(first: dict[str, Any]) -> Refusal:
    """One fault of a body, in plain words."""
    place = ".".join(part for part in first["loc"][1:] if isinstance(part, str))
    if first["type"] == "json_invalid":
        message = "The body is not valid JSON."
    elif first["type"] == "extra_forbidden":
        message = f"{place} is not a known field. Remove it or correct its name."
    elif first["type"] == "missing":
        message = f"{place or 'The body'} is missing. Add it."
    elif first["type"] == "value_error":
        message = str(first["ctx"]["error"])
    elif not place:
        message = "The body is not a JSON object. Send one, with the header Content-Type: application/json."
    else:
        message = f"{place} is not valid. Expected {plain_words(first['msg'])}."
    return Refusal(422, message, param=place or None)
