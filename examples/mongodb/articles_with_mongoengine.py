"""A blog with mongoengine: classes for documents, indexes that they declare, queries in Python."""

from __future__ import annotations

import sys
from typing import ClassVar

from mongoengine import Document, IntField, ListField, StringField, connect, disconnect


class Article(Document):
    title = StringField(required=True)
    tags = ListField(StringField())
    readers = IntField(default=0)

    meta: ClassVar = {"indexes": ["tags", "-readers"]}


def main(connection: str) -> None:
    connect("blog_example", host=connection)
    try:
        Article.drop_collection()
        Article(title="Partitions", tags=["data", "scale"]).save()
        Article(title="Hot keys", tags=["data"], readers=5).save()
        Article.objects(title="Partitions").update_one(inc__readers=7)
        print([article.title for article in Article.objects(tags="data").order_by("-readers")])
        print(Article.objects.aggregate([{"$unwind": "$tags"}, {"$sortByCount": "$tags"}]).next())
    finally:
        disconnect()


if __name__ == "__main__":
    main(sys.argv[1])
