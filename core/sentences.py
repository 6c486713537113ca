"""Sentences of services in the language of a page.

Services, the REST API and what is stored speak English; only pages translate, and here. A sentence is looked up whole,
then among those with places for names and numbers, in the order below; what stands in a place is looked up in turn, so
that a cause keeps its translation inside another sentence. What is not known stays English.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

SENTENCES: Final = (
    # what is not there, or not as it would have to be
    _("There is no such memory."),
    _("There is no such session."),
    _("There is no such resource."),
    _("There is no such user."),
    _("There is no such key."),
    _("There is no such token."),
    _("There is no such operator."),
    _("There is no such job."),
    _("There is no such version."),
    _("This memory is not in the trash."),
    _("This session is not in the trash."),
    _("This memory is in the trash: restore it first."),
    _("This session is in the trash: restore it before adding to it."),
    _("This session was deleted for good."),
    _("This session was deleted for good: choose another session_id."),
    _("This session was deleted; what comes later is not taken."),
    _("This user was erased."),
    _("This message is not a memory yet: flush its session first."),
    _("No correction of this memory is in force."),
    _("This resource was deleted already."),
    _("This archive is not there any more: an archive is kept for a day."),
    _("This cannot be undone."),
    _("This cannot be stopped."),
    _("This was undone already, is still under way, or cannot be undone."),
    _("This selection is not one that the list made."),
    _("This undo was not offered here, or it is older than 30 days."),
    _("This is nothing that can be done with many memories."),
    _("This is nothing that can be done with deleted sessions."),
    _("This needs the permission %(permission)s."),
    _("MEMORY_GATEWAY_TRASH_DAYS is 0, which keeps the trash for ever: say how old it must be."),
    _("No move has broken off."),
    _("Another move is under way."),
    _("An error that the server's log describes."),
    _("several of your scopes have this memory: send app_id and project_id"),
    # what may be written
    _("must hold words, and no NUL characters"),
    _("must be at most %(number)s characters; upload more as a file"),
    _("must be at most %(number)s characters in one line"),
    _("must be one of %(choices)s"),
    _("must be one or more of %(choices)s"),
    _("must be between 0 and 1"),
    _("must be 1 to 64 characters of A-Z a-z 0-9 _ . @ + - and not '.' or '..'"),
    _("must be 1 to %(number)s characters without control characters"),
    _("must be 0 to %(number)s seconds"),
    _("must lie in the future, within ten years"),
    _("must be an active member of the staff"),
    _("must be an object"),
    _("must be true or false"),
    _("must be a date such as 2026-06-30"),
    _("must be a time such as 2026-06-10T10:00:00+00:00"),
    _("must be a time such as 2027-01-31T12:00:00+00:00"),
    _("must hold at most %(number)s entries"),
    _("must hold neither NUL characters nor halves of characters"),
    _("is required"),
    _("is not a field of this document"),
    _("at most %(number)s at once; select by a filter instead"),
    _("%(method)s needs the setting %(setting)s; use keyword or hybrid"),
    # keys, tokens, documents
    _("This user exists already."),
    _("A user has at most %(number)s live keys: revoke one first."),
    _("This key is expired or revoked: make a new one instead of rotating it."),
    _("This is your last key: make another one first, or rotate this one."),
    _(
        "This user's key can no longer be read: it was kept under another MEMORY_GATEWAY_SECRET_KEY. Put the old "
        "secret into MEMORY_GATEWAY_SECRET_KEY_FALLBACKS, or make a new key."
    ),
    _("A token belongs either to an operator or to a user."),
    _("Too many failed attempts: try again in %(minutes)s minutes."),
    _("A document must be at most %(number)s bytes of JSON."),
    _("The document has changed: its ETag is %(etag)s now. Read it again."),
    _("This document is disabled: an operator has to enable it first."),
    _("%(path)s: several entries have this name; send the whole list without merge_lists."),
    # taking, storing and giving back files
    _("must be at most %(number)s bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES)"),
    _("is %(type)s, which may not be uploaded here; allowed are %(types)s"),
    _("The file is %(type)s and contains a web page as well: send one or the other."),
    _(
        "The file's content is %(type)s, but its name or the type sent with it says %(said)s: send it under the name "
        "and type that it has."
    ),
    _("of an unknown binary type"),
    _("A file in a message must be at most %(number)s bytes."),
    _("This file is being uploaded and deleted again and again at this moment: try again."),
    _("This file is in the trash with its session %(session)s: restore the session first."),
    _("You have %(files)s files, and a user may have %(most)s (MEMORY_GATEWAY_QUOTA_FILES): delete some first."),
    _(
        "You have %(held)s bytes of files, this one has %(size)s, and a user may have %(most)s "
        "(MEMORY_GATEWAY_QUOTA_BYTES): delete some first."
    ),
    _("The disk of this gateway is full: nothing was stored. Try again later."),
    _(
        "Storing this would leave less than %(floor)s bytes free (MEMORY_GATEWAY_MIN_FREE_DISK_BYTES): nothing was "
        "stored. Try again later."
    ),
    _("This file was registered where it lies elsewhere: the gateway keeps no copy of it."),
    _("The file of this resource is gone: upload it again."),
    _("The stored file is missing: upload it again."),
    _("The file is no longer in the storage."),
    # what reading files may find
    _("The document is encrypted or protected by a password: remove the protection and send it again."),
    _("The document is damaged: open it in the program that it was made with, save it anew and send it again."),
    _("The document unpacks to more than we read: send it in smaller parts."),
    _("The document holds more text than we read: send it in smaller parts."),
    _("The document has more pages than we read: send it in smaller parts."),
    _("The document has more than %(number)s parts inside, which no real one has."),
    _("The document declares XML entities or a document type, which no office program writes."),
    _("The document is packed in a way that office programs do not use: save it anew and send it again."),
    _("The document could not be read just now."),
    _("The process that reads documents could not be started."),
    _("Files of type %(type)s hold no text that can be read."),
    _("Reading the document took longer than %(number)s seconds."),
    _("Reading the document needed more than %(number)s MB of memory."),
    # what fetching files may find
    _("The file is larger than %(number)s bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES)."),
    _("The file is %(type)s, which is not taken here; allowed are %(types)s."),
    _("The file could not be kept for reading: the disk of this gateway is full."),
    _("There is no such file that the gateway may read."),
    _("Too many files are being fetched at this moment."),
    _("timestamp: EverOS holds no messages from before 9 September 2001; the embedded engine does."),
    _("An address of %(scheme)s:// cannot be read: an https:// address of the file is needed."),
    _("The address broke off in the middle of the file."),
    _("The address answered %(status)s."),
    _("The address leads on to another one: give the address where the file itself is."),
    _("The address sends the file compressed in a way that is not read here."),
    _("The address did not answer in time."),
    _("The address could not prove by its TLS certificate that it is its host."),
    _("The address cannot be reached."),
    _("The address answered with something that is no file over HTTP."),
    _("The address names something that is not a file."),
    _("The address %(cause)s."),
    _(
        "must be file:/// with a plain path below one of the folders of MEMORY_GATEWAY_FILE_URI_ROOTS; upload the file "
        "instead, or ask an operator to add its folder"
    ),
    # ingestion
    _("Given up after %(number)s tries: upload it again, or have an operator run `manage.py ingest --failed`."),
    _("The gateway itself failed while ingesting; it tries again."),
    _("Its source_uri only says where it lies: reading it takes an ingest_uri, which serves for one ingestion."),
    _("Register it again with a fresh ingest_uri."),
    _("The memory service failed while extracting and now holds nothing of it: delete it and upload it again."),
    # the engine
    _("The memory database is busy or cannot be reached; try again."),
    _("The memory database does not answer."),
    _("The keyword index was built by another version: run `manage.py rebuild_index`."),
    _("A part of the message has neither text nor file nor address."),
    _("No embedding endpoint is set (MEMORY_GATEWAY_EMBEDDING_BASE_URL): searched by keyword alone."),
    _("The embedding model does not know the question's script: searched by keyword alone."),
    _("The memory service has no embedding model, so only keywords were compared."),
    _("The memory service made nothing of what was said in this session."),
    _("The memory service has not shown yet what it made."),
    _("The memory service failed while extracting and lost what it held of this session."),
    _("The memory service may still be extracting this session."),
    _("The memory service cannot be reached."),
    _("The memory service did not answer in time."),
    _("The memory service returned an unexpected response."),
    _("The memory service is busy or lacks its own services (%(status)s)."),
    _("The memory service did not answer its proxy (%(status)s)."),
    _("The memory service failed at this call (%(status)s)."),
    _("A proxy of the memory service failed (%(status)s)."),
    _("The memory service has too much to do."),
    _("The memory service says of itself: %(status)s"),
    _("The memory service refused: %(cause)s."),
    _("the memory service lacks the model for it; use keyword or hybrid."),
    _("it answered 404 (is the address right?)"),
    _("the content is too large for it"),
    _("it cannot read this file, whose type it does not know or which is not at its address"),
    _("it does not accept this content"),
    _("it lacks what this type of content needs"),
    _("it answered %(status)s"),
    _("Connection refused"),
    _("The host name cannot be resolved"),
    _("No answer in time"),
    _("Connection reset"),
    _("The TLS certificate was not accepted"),
    _("The TLS connection failed"),
    _("The connection failed"),
    _("The connection was closed before the response"),
    _("The response is not HTTP"),
    _("The head of the response does not end"),
    _("The head of the response contradicts itself"),
    _("The compressed body ends early"),
    _("The compressed body is damaged"),
    _("The body is compressed as %(encoding)s"),
    _("The body is larger than %(number)s bytes"),
    # the endpoints
    _("The LLM endpoint"),
    _("The embedding endpoint"),
    _("%(said)s Searched by keyword alone."),
    _("%(said)s Searched without it."),
    _("%(said)s What was found is in the order in which it was found."),
    _("%(said)s It is asked again later."),
    _("%(endpoint)s answered with status %(status)s."),
    _("%(endpoint)s does not accept the key (status %(status)s)."),
    _("%(endpoint)s wants fewer calls (status 429)."),
    _("%(endpoint)s did not answer in JSON."),
    _("%(endpoint)s gave an answer that cannot be read."),
    _("%(endpoint)s gave an answer without a message."),
    _("%(endpoint)s gave an answer without vectors."),
    _("%(endpoint)s gave another number of vectors than texts."),
    _("%(endpoint)s gave something else than vectors."),
    _("%(endpoint)s gave vectors without a direction."),
    _("%(endpoint)s gives vectors of different lengths."),
    _("%(endpoint)s gives vectors of %(length)s dimensions instead of %(expected)s."),
    _("%(endpoint)s cannot be reached."),
    _("%(endpoint)s took too long."),
    _("%(endpoint)s broke off."),
    # what an erasure leaves
    _("Lines already written to the request log name the user id and paths until the logs are rotated away."),
    _(
        "The memory service behind this gateway has no deletion: it still holds what `upstream` names. No user of this "
        "gateway can reach it any more, whatever their name."
    ),
    _("Backups and archives made before hold what they held."),
    _(
        "PostgreSQL keeps deleted rows in its data files until it vacuums them and reuses the space, and longer in its "
        "write-ahead log and in backups: run VACUUM FULL for what must be gone at once."
    ),
    _(
        "The database file is large and was not rewritten: deleted text may stand in its free pages until "
        "`manage.py doctor --fix --compact` ran."
    ),
    _(
        "The database was busy: deleted text may stand in its write-ahead log or free pages until "
        "`manage.py doctor --fix --compact` ran."
    ),
)
_PLACE: Final = re.compile(r"%\((\w+)\)s")
_OF_FIELD: Final = re.compile(r"([a-z][\w.]*): (.+)", re.DOTALL)


def told(sentence: str) -> str:
    """The sentence in the language of this thread."""
    if (found := _known(sentence)) is not None:
        return found
    if (of_field := _OF_FIELD.fullmatch(sentence)) and (found := _known(of_field[2])) is not None:
        return f"{of_field[1]}: {found}"
    return sentence


def _known(sentence: str) -> str | None:
    if sentence in SENTENCES:
        return gettext(sentence)
    for template, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            return gettext(template) % {name: told(value) for name, value in found.groupdict().items()}
    return None


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(one, _pattern(one)) for one in SENTENCES if _PLACE.search(one)]


def _pattern(template: str) -> re.Pattern[str]:
    """`split` gives words and names of places in turn."""
    parts = _PLACE.split(template)
    pieces = [f"(?P<{part}>.+)" if number % 2 else re.escape(part) for number, part in enumerate(parts)]
    return re.compile("".join(pieces), re.DOTALL)
