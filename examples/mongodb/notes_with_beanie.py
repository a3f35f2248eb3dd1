"""Notes with beanie: pydantic models, asynchronous, with links between documents."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from beanie import Document, Indexed, Link, init_beanie
from pymongo import AsyncMongoClient


class Author(Document):
    name: Annotated[str, Indexed(unique=True)]


class Note(Document):
    text: str
    stars: int = 0
    author: Link[Author]


async def main(connection: str) -> None:
    client: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(connection)
    try:
        await client.drop_database("notes_example")
        await init_beanie(database=client["notes_example"], document_models=[Author, Note])
        author = await Author(name="Mira").insert()
        await Note(text="Buy bread", stars=1, author=author).insert()
        note = await Note(text="Call Jan", author=author).insert()
        await note.update({"$inc": {"stars": 3}})
        best = await Note.find(Note.stars > 1, fetch_links=True).sort("-stars").first_or_none()
        print(best.text, best.stars, best.author.name)
        print(await Note.find_all().sum(Note.stars))
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
