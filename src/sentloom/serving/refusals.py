"""Why a request is refused, in the form that OpenAI's clients read."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sentloom.errors import plain_words

KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "server_error"} | {
    503: "overloaded_error"
}

NOT_OBJECT = "The body is not a JSON object. Send one, with the header Content-Type: application/json."
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
        first = error.errors()[0]
        return invalid(first["loc"][1:], first).response()
    if isinstance(error, HTTPException):
        nowhere, path = NOWHERE.get(error.status_code), request.url.path[:200]
        message = nowhere.format(path=path, method=request.method) if nowhere else error.detail
        return Refusal(error.status_code, message, **(error.headers or {})).response()
    return Refusal(500, "The server failed. Its log says why.").response()


def unknown_field(name: str) -> Refusal:
    """A field that the request does not have."""
    shown = name[:200].encode("utf-8", "replace").decode()  # JSON can have half of a surrogate pair
    return Refusal(422, f"{shown} is not a known field. Remove it or correct its name.", param=shown)


def invalid(location: tuple[str | int, ...], first: Mapping[str, Any]) -> Refusal:
    """One fault of a request, in plain words."""
    place = ".".join(part for part in location if isinstance(part, str))
    if first["type"] == "missing":
        message = f"{place or 'The body'} is missing. Add it."
    elif first["type"] == "value_error":
        message = str(first["ctx"]["error"])
    elif not place:
        message = NOT_OBJECT
    else:
        message = f"{place} is not valid. Expected {plain_words(first['msg'])}."
    return Refusal(422, message, param=place or None)
