"""Calls a service of MongoDB's API as applications in Python do, by pymongo, and prints the results as JSON."""

import json
import os

import pymongo
from bson import ObjectId
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError

client = pymongo.MongoClient(
    os.environ["MONGODB_URI"],
    password=os.environ["MONGODB_PASSWORD"],
    username="app_user",
    tlsCAFile=os.environ["MONGODB_CA"],
    serverSelectionTimeoutMS=10_000,
)
people = client.get_default_database()["python"]


def code_of(call):
    """Code of the error of a call; none if it succeeds."""
    try:
        call()
    except OperationFailure as error:
        return error.code
    except PyMongoError as error:
        return str(error)
    return None


def in_transaction():
    with client.start_session() as session, session.start_transaction():
        people.insert_one({"_id": "in a transaction"}, session=session)


def duplicate():
    try:
        people.insert_one({"_id": 1})
    except DuplicateKeyError as error:
        return error.code
    return None


inserted = people.insert_many([{"_id": n, "name": f"person {n % 5}", "tags": [n, n + 1]} for n in range(200)])
people.create_index([("name", pymongo.ASCENDING), ("_id", pymongo.DESCENDING)])
generated = people.insert_one({"name": "generated"}).inserted_id
bulk = people.bulk_write(
    [
        pymongo.UpdateMany({"name": "person 1"}, {"$push": {"tags": "more"}}),
        pymongo.ReplaceOne({"_id": 500}, {"name": "new"}, upsert=True),
        pymongo.DeleteOne({"_id": 0}),
    ]
)
groups = people.aggregate(
    [
        {"$match": {"name": {"$regex": "^person"}}},
        {"$group": {"_id": "$name", "count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
    ]
)
results = {
    "inserted": len(inserted.inserted_ids),
    "generated": isinstance(generated, ObjectId),
    "bulk": [bulk.modified_count, bulk.upserted_count, bulk.deleted_count],
    "groups": [group["count"] for group in groups],
    "found": [each["_id"] for each in people.find({"name": "person 2"}, batch_size=3).sort("_id", -1).limit(10)],
    "changed": people.find_one_and_update(
        {"_id": 7}, {"$set": {"name": "seven"}}, return_document=pymongo.ReturnDocument.AFTER
    )["name"],
    "indexes": sorted(people.index_information()),
    "duplicate": duplicate(),
    "transaction": code_of(in_transaction),
    "left": people.count_documents({"_id": "in a transaction"}),
    "watch": code_of(lambda: people.watch().next()),
    "create_user": code_of(lambda: client.admin.command("createUser", "intruder", pwd="a secret", roles=[])),
}
print(json.dumps(results))
