"""The body of a request: JSON of a known shape, within its size and within its time, or an answer that says why not."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

LINGER = 32  # times the limit: what is read and thrown away, so that the client hears the answer
SECONDS = 30.0  # for a body to arrive

Shape = TypeVar("Shape", bound=BaseModel)


async def read_json(request: Request, shape: type[Shape], most: int) -> Shape:
    """The body as `shape`. 408, 413, 415 or 422 otherwise."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"the body must be application/json, got {shortened(kind) or 'no content type'}")
    coding = ", ".join(request.headers.getlist("content-encoding")).strip().lower()
    if coding not in ("", "identity"):
        message = f"the body must come as it is, without Content-Encoding: {shortened(coding)}"
        raise HTTPException(415, message, {"Accept-Encoding": "identity"})
    try:
        async with asyncio.timeout(SECONDS):
            body = await read_bytes(request, most)
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None  # nobody is there to read this
    except TimeoutError:
        message = f"the body did not arrive within {SECONDS:.0f} seconds"
        raise HTTPException(408, message, {"Connection": "close"}) from None
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(422, explain(error)) from None


async def read_bytes(request: Request, most: int) -> bytes:
    too_large = HTTPException(413, f"the body may have {most:,} bytes", {"Connection": "close"})
    announced = request.headers.get("content-length", "0")
    if int(announced) > most * LINGER:
        raise too_large
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
        elif size > most * LINGER:
            break
    if size > most:
        raise too_large
    return b"".join(chunks)


def explain(error: ValidationError) -> str:
    """The first thing that is wrong, without repeating what came: it may be huge, or no Unicode."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return shortened(f"{place}: {first['msg']}{more}" if place else f"{first['msg']}{more}")


def shortened(text: str, most: int = 300) -> str:
    """Printable, and no longer than an error message should be."""
    text = "".join(character if character.isprintable() else "�" for character in text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"
