"""Calls a Kafka as applications in Python do, by librdkafka, and prints the results as one line of JSON."""

import json
import os

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

SETTINGS = json.loads(os.environ["CLIENT_SETTINGS"])
WITHIN_S = 60


def produce(values, transactional_id=None, end="commit", **more):
    """Writes the values, and returns the number of acknowledged ones."""
    acknowledged = []

    def delivered(error, message):
        if error is None:
            acknowledged.append(message.offset())

    settings = {**SETTINGS, "acks": "all", "enable.idempotence": True, **more}
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    producer = Producer(settings)
    if transactional_id is not None:
        producer.init_transactions(WITHIN_S)
        producer.begin_transaction()
    for value in values:
        producer.produce("python", key=value, value=value, headers={"kind": "text"}, on_delivery=delivered)
    producer.flush(WITHIN_S)
    if transactional_id is not None:
        producer.commit_transaction(WITHIN_S) if end == "commit" else producer.abort_transaction(WITHIN_S)
    return len(acknowledged)


def consume(group, count, isolation="read_committed"):
    """Values of the topic from the group's offsets on, which are committed."""
    consumer = Consumer(
        {**SETTINGS, "group.id": group, "auto.offset.reset": "earliest", "isolation.level": isolation}
    )
    consumer.subscribe(["python"])
    values = []
    while len(values) < count:
        message = consumer.poll(WITHIN_S)
        if message is None:
            break
        if message.error() is not None:
            raise KafkaException(message.error())
        values.append(message.value().decode())
    if values:
        consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(values)


def error_of(call):
    try:
        call()
    except KafkaException as error:
        return error.args[0].name()
    return None


admin = AdminClient(SETTINGS)
created = admin.create_topics([NewTopic("python", num_partitions=3)])["python"]
created.result(WITHIN_S)
refused = admin.create_topics([NewTopic("holdfast.mine", num_partitions=1)])["holdfast.mine"]
codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
results = {
    "written": sum(produce([codec], **{"compression.type": codec}) for codec in codecs),
    "aborted": produce(["aborted"], "mover", "abort"),
    "committed": produce(["committed"], "mover"),
    "read": consume("readers", len(codecs) + 1),
    "read_later": produce(["later"]) and consume("readers", 1),
    "uncommitted": consume("others", len(codecs) + 3, "read_uncommitted"),
    "refused": error_of(lambda: refused.result(WITHIN_S)),
    "topics": sorted(admin.list_topics(timeout=WITHIN_S).topics),
}
print(json.dumps(results))
