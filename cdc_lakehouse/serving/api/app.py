"""The HTTP side: endpoints and their OpenAPI page, tags, the key, limits, metrics."""

# No `from __future__ import annotations`: FastAPI evaluates those of inner functions.

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from cdc_lakehouse import __version__
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.api.answers import Answers
from cdc_lakehouse.serving.api.questions import Column, Question

logger = logging.getLogger("api")
request_seconds = Histogram(
    "cdc_lakehouse_api_request_seconds", "Seconds of requests", ["endpoint", "status"]
)
# Outcomes: unchanged (the caller has it), cached, computed.
answers_given = Counter(
    "cdc_lakehouse_api_answers", "Answers, by where they came from", ["outcome"]
)

DESCRIPTION = """
Each endpoint is a table of gold, or a question over such tables, and answers with rows.
Where a key is needed, the button *Authorize* takes it, `Authorization: Bearer …` elsewhere.

- **Filter** by a column's name, `?country=Germany`, or by its range, both ends included:
  `?order_month.min=1997-01-01&order_month.max=1997-12-01`.
- **Sort** by `order`, once for each column, with `-` where it descends:
  `?order=-revenue&order=customer_id`.
- **Page** by `limit` and `offset`; `next_offset` is the next page's, null on the last one.
- `commits` tells when the commit of each table began that the rows are of. Where that
  changes between two pages, begin with the first page again.
- An answer's `ETag`, sent back as `If-None-Match`, is answered with 304 and no rows while
  no table has a newer commit.
- Decimal numbers have all their digits. Who must not lose any reads them as decimals.
"""
ERRORS = {
    304: "No table has a newer commit than those of the tag that was sent.",
    401: "The key is missing or wrong.",
    503: "It cannot be answered now; the server's log says why.",
    504: "It took too long.",
}
RANGES = {"": "", ".min": "At least. ", ".max": "At most. "}
PAGING = ("limit", "offset", "order")
DEFAULT_LIMIT = 100
LONGEST_TEXT = 500


def create_app(
    questions: Sequence[Question], answers: Answers, *, key: str | None, max_rows: int
) -> FastAPI:
    """The API.

    Args:
        questions: what can be asked.
        answers: answers it.
        key: what callers must have; None where only this machine can call.
        max_rows: the most rows of an answer.
    """
    app = FastAPIOffline(
        title="Gold", version=__version__, description=DESCRIPTION, redoc_url=None
    )
    if key is None:
        # A page in a browser could call by a name of its own that leads here.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    protected = [] if key is None else [Depends(_check_of(key))]

    @app.middleware("http")
    async def measure(
        request: Request, call: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        start = time.monotonic()
        response = await call(request)
        # The route, not the path: callers make no series of their own.
        endpoint = getattr(request.scope.get("route"), "path", "other")
        seconds = time.monotonic() - start
        request_seconds.labels(endpoint, response.status_code).observe(seconds)
        return response

    @app.exception_handler(UserError)
    async def unavailable(request: Request, error: UserError) -> Response:
        logger.warning("%s: %s", request.url.path, error)
        return JSONResponse({"detail": ERRORS[503]}, 503, {"Retry-After": "5"})

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("docs")

    for question in questions:
        folder, _, name = question.path.partition("/")
        app.get(
            f"/{question.path}",
            tags=[folder],
            summary=name,
            description=question.description,
            operation_id=f"{folder}_{name}",
            dependencies=protected,
            response_model=_page_model(question),
            responses={code: {"description": text} for code, text in ERRORS.items()},
        )(_endpoint(question, answers, max_rows))

    @app.get("/health", tags=["operation"], responses={503: {"description": ERRORS[503]}})
    def health() -> dict[str, str]:
        """Whether the lake can be read."""
        for question in questions[:1]:
            answers.commits(question)
        return {"status": "ok"}

    @app.get("/metrics", tags=["operation"], dependencies=protected)
    def metrics() -> Response:
        """What Prometheus scrapes."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return app


def _check_of(key: str) -> Callable[..., None]:
    bearer = Depends(HTTPBearer(auto_error=False, description="The API's key."))

    def check(sent: Annotated[HTTPAuthorizationCredentials | None, bearer]) -> None:
        given = sent.credentials if sent else ""
        # A header is Latin-1; a key, and what is sent of it, may be UTF-8.
        if not hmac.compare_digest(given.encode("latin-1"), key.encode()):
            raise HTTPException(401, ERRORS[401], {"WWW-Authenticate": "Bearer"})

    return check


def _endpoint(
    question: Question, answers: Answers, max_rows: int
) -> Callable[..., Awaitable[Response]]:
    # By its field, because a column may have any name.
    filters = {
        f"filter_{number}_{operator[1:]}": (column, operator)
        for number, column in enumerate(question.columns)
        for operator in RANGES
        if column.kind and f"{column.name}{operator}" not in PAGING
    }
    parameters = _parameters_model(question, filters, max_rows)

    async def endpoint(
        asked: Annotated[parameters, Query()],  # type: ignore[valid-type]  # made above
        if_none_match: Annotated[str, Header(description="A tag that is known.")] = "",
    ) -> Response:
        given: Any = asked
        values = [
            (column.name, operator, value)
            for field, (column, operator) in filters.items()
            if (value := getattr(given, field)) is not None
        ]
        # One row more than asked for tells whether there is another page.
        statement = question.statement(values, given.order, given.offset, given.limit + 1)
        answer = await run_in_threadpool(answers.look_up, question, statement)
        headers = {"ETag": f'"{answer.tag}"', "Cache-Control": "private, no-cache"}
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        if known & {"*", headers["ETag"]}:
            answers_given.labels("unchanged").inc()
            return Response(status_code=304, headers=headers)
        body = answer.body
        if body is None:
            computed = asyncio.wrap_future(answers.compute(answer))
            try:
                # Others may wait for it, too.
                body = await asyncio.wait_for(asyncio.shield(computed), answers.seconds)
            except TimeoutError as error:
                raise HTTPException(504, ERRORS[504]) from error
        answers_given.labels("computed" if answer.body is None else "cached").inc()
        return Response(body, headers=headers, media_type="application/json")

    return endpoint


def _parameters_model(
    question: Question, filters: dict[str, tuple[Column, str]], max_rows: int
) -> type[BaseModel]:
    sortable = [column.name for column in question.columns if column.kind]
    choice: Any = Literal
    choice = choice[tuple(f"{sign}{name}" for name in sortable for sign in ("", "-"))]
    fields: dict[str, Any] = {
        "limit": (int, Field(min(DEFAULT_LIMIT, max_rows), ge=1, le=max_rows)),
        "offset": (int, Field(0, ge=0, lt=2**31)),
        "order": (list[choice], Field([], max_length=len(sortable))),
    }
    for field, (column, operator) in filters.items():
        bounds: dict[type | None, dict[str, Any]] = {
            int: {"ge": -(2**63), "lt": 2**63},
            float: {"allow_inf_nan": False},
            str: {"max_length": LONGEST_TEXT},
        }
        if column.kind is Decimal:
            digits, places = column.type.precision, column.type.scale
            bounds[Decimal] = {"max_digits": digits, "decimal_places": places}
        fields[field] = (
            Annotated[column.kind, Field(**bounds.get(column.kind, {}))] | None,
            Field(
                None,
                alias=f"{column.name}{operator}",
                description=RANGES[operator] + column.description,
            ),
        )
    name = f"{question.path}_parameters"
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _page_model(question: Question) -> type[BaseModel]:
    """What a body is; it only documents, as bodies come from the cache."""
    fields: dict[str, Any] = {}
    for number, column in enumerate(question.columns):
        kind: Any = column.kind or Any
        if kind is Decimal:
            kind = Annotated[Decimal, WithJsonSchema({"type": "number"})]
        about = Field(alias=column.name, description=column.description)
        fields[f"column_{number}"] = kind | None, about
    name = question.path.replace("/", "_")
    row: Any = create_model(f"{name}_row", **fields)
    return create_model(
        f"{name}_page",
        rows=(list[row], ...),
        next_offset=(int | None, ...),
        commits=(dict[str, datetime], ...),
    )
