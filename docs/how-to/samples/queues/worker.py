"""Sends three messages to a queue, claims them, acknowledges two and returns one: python3 worker.py <queue>"""
import json
import sys
import uuid

import psycopg2

queue = sys.argv[1]
# The environment has the connection's parameters: PGHOST, PGUSER and so on.
connection = psycopg2.connect("")
connection.autocommit = True
cursor = connection.cursor()

for number in range(3):
    cursor.execute("SELECT mdb_queue.enqueue(%s, %s)", (queue, json.dumps({"number": number})))

worker = str(uuid.uuid4())  # one for each claim
cursor.execute("SELECT id, payload FROM mdb_queue.claim(%s, %s, 10)", (queue, worker))
messages = cursor.fetchall()

done, failed = [], []
for id, payload in messages:
    (failed if payload["number"] == 1 else done).append(id)

cursor.execute("SELECT id, done FROM mdb_queue.ack(%s, %s, %s)", (queue, worker, done))
for id, is_done in cursor.fetchall():
    print("acked" if is_done else "lost", id)
cursor.execute("SELECT id, done FROM mdb_queue.nack(%s, %s, %s, 60, 'not yet')", (queue, worker, failed))
for id, is_done in cursor.fetchall():
    print("given back" if is_done else "lost", id)
connection.close()
