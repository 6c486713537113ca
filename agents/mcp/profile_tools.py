"""MCP tools for the user's two documents."""

from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, Field

from agents.tools.arguments import StrictArguments, Text
from agents.tools.caller import Caller
from agents.tools.results import Result, framed, quoted, result
from profiles import services
from profiles.documents import Document
from profiles.schemas import MODELS, Kind
from store.admission import Offer, require, texts_in

_FIELDS: Final = "; ".join(f"`{kind}` has {', '.join(model.model_fields)}" for kind, model in MODELS.items())
_QUOTED: Final = '"{}"'
DocumentKind = Annotated[Kind, Field(description="The document: `user` (who they are) or `work` (how they work).")]
ETag = Annotated[str, Field(description="The version of the document, for profile_update.")]


class GetArguments(StrictArguments):
    kind: DocumentKind


class UpdateArguments(StrictArguments):
    kind: DocumentKind
    content: dict[str, Any] = Field(
        description=f"The fields to change. Absent fields stay, and null resets a field. {_FIELDS}. Entries of lists "
        "are marked as inferred by you; give those that the user stated the `meta` `source: user_stated`."
    )
    merge_lists: bool = Field(
        True,
        description="True merges lists of named entries by `name`; an entry with `$remove: true` is removed. False "
        "replaces each list in `content`. Lists of plain values are always replaced.",
    )
    etag: Text | None = Field(
        None, description="The `etag` of profile_get, to refuse the change if the document has changed since."
    )


class ProfileDocument(BaseModel):
    kind: DocumentKind
    etag: ETag
    content: dict[str, Any] | None = Field(
        description="The document, as `GET /api/v1/memories/schema/{kind}` describes it; null while it is disabled."
    )


class Changed(BaseModel):
    kind: DocumentKind
    etag: ETag


def get(caller: Caller, arguments: GetArguments) -> Result:
    document = services.read(caller.owner.user_pk, arguments.kind)
    content = None if document.readable is None else document.readable.model_dump()
    if content is None:
        text = "This document is disabled. Ask the operator to enable it."
    else:
        text = f"The document {document.kind}:\n\n{framed([quoted(orjson.dumps(content).decode())])}"
    return result(text, kind=document.kind, etag=_etag(document), content=content)


def update(caller: Caller, arguments: UpdateArguments) -> Result:
    """Change a document. Raises: `NotKept`, and the errors of `profiles.services.patch`."""
    said = orjson.dumps(arguments.content).decode()
    require(caller.owner.user_pk, Offer("agents", said, others=tuple(texts_in(arguments.content))))
    document = services.patch(
        caller.owner.user_pk,
        arguments.kind,
        arguments.content,
        merge_lists=arguments.merge_lists,
        actor=caller.actor,
        agent_id=caller.agent_id,
        if_match=None if arguments.etag is None else [_QUOTED.format(arguments.etag.strip('"'))],
    )
    return result(f"The document {document.kind} is up to date.", kind=document.kind, etag=_etag(document))


def _etag(document: Document) -> str:
    """Return the ETag without its quotation marks, which language models leave out."""
    return document.etag.strip('"')
