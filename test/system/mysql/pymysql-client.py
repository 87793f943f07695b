"""Calls a MySQL by PyMySQL, by the name of the service over verified TLS. The settings are in the environment.

Prints what it read as one line of JSON.
"""

import datetime
import decimal
import json
import os

import pymysql

settings = {
    "host": os.environ["MYSQL_HOST"],
    "port": int(os.environ["MYSQL_PORT"]),
    "user": "app_user",
    "password": os.environ["MYSQL_PWD"],
    "database": "defaultdb",
}
tls = {"ssl_ca": os.environ["MYSQL_CA"], "ssl_verify_cert": True, "ssl_verify_identity": True}


def refusal(**changes):
    """Number of the error; 0 for a connection that opens."""
    try:
        pymysql.connect(**{**settings, **changes}).close()
        return 0
    except pymysql.err.OperationalError as error:
        return error.args[0]


connection = pymysql.connect(**settings, **tls)
with connection, connection.cursor() as cursor:
    cursor.execute(
        "CREATE TABLE by_python (id INT AUTO_INCREMENT PRIMARY KEY, name TEXT, price DECIMAL(10, 2), at DATETIME(6), data BLOB)"
    )
    at = datetime.datetime(2026, 3, 29, 2, 30, 0, 123456)
    rows = [("größe 😀", decimal.Decimal("10.50"), at, b"\x00'\xff"), (None, None, None, None)]
    cursor.executemany("INSERT INTO by_python (name, price, at, data) VALUES (%s, %s, %s, %s)", rows)
    connection.commit()
    cursor.execute("DELETE FROM by_python")
    connection.rollback()
    cursor.execute("SELECT name, price, at, data FROM by_python ORDER BY id")
    same = list(cursor.fetchall()) == rows
    cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'")
    version = cursor.fetchone()[1]
    cursor.execute("DROP TABLE by_python")

print(
    json.dumps(
        {
            "same": same,
            "tls": version,
            "without TLS": refusal(ssl_disabled=True),
            "another password": refusal(**tls, password="another"),
        }
    )
)
