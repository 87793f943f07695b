# A client that writes as applications do: it has the addresses of all nodes, and retries a row without acknowledgment.
import os
import sys
import time

import psycopg2

dsn, seconds = sys.argv[1], float(sys.argv[2])
connection = None
acknowledged = 0
longest = 0.0
last_success = time.monotonic()
deadline = last_success + seconds
while time.monotonic() < deadline or connection is None:
    try:
        if connection is None:
            connection = psycopg2.connect(dsn, connect_timeout=2, options="-c statement_timeout=2000")
            connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO judged VALUES (%s) ON CONFLICT DO NOTHING", (acknowledged + 1,)
            )
        acknowledged += 1
        longest = max(longest, time.monotonic() - last_success)
        last_success = time.monotonic()
        # Time: the rate of the writer.
        time.sleep(0.02)
    except psycopg2.Error:
        if connection is not None:
            connection.close()
        connection = None
        # Time: the rate of reconnections.
        time.sleep(0.1)
print(acknowledged, round(longest, 2))
